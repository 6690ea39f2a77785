package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.yaml.in/yaml/v3"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/dev/pages"
	"github.com/daybook-dev/daybook/workers"
)

// chart reads a file of the Helm chart. What the chart renders is tested by make test-chart; here the texts
// are compared with the program, without Helm.
func chart(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../deploy/helm/daybook", path))
	require.NoError(t, err)
	return string(text)
}

// Every secret of the documentation is refused in plain, and what says where secrets are is not.
func TestChartKnowsTheSecrets(t *testing.T) {
	t.Parallel()
	helpers := chart(t, "templates/_helpers.tpl")
	pattern := func(name string) *regexp.Regexp {
		found := regexp.MustCompile(`\$` + name + ` := "(.*)" -}}`).FindStringSubmatch(helpers)
		require.NotEmpty(t, found, name)
		return regexp.MustCompile(found[1])
	}
	secret, plain := pattern("secret"), pattern("plain")
	refused := func(name string) bool { return secret.MatchString(name) && !plain.MatchString(name) }
	text, err := os.ReadFile("../../docs/job-types.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(text), "\n## Secrets\n")
	section, _, _ = strings.Cut(section, "\n## ")
	names := regexp.MustCompile(`(?m)^\|.*\| `+"`(DAYBOOK_[A-Z_]+)`"+` \|`).FindAllStringSubmatch(section, -1)
	require.Greater(t, len(names), 10)
	for _, name := range names {
		assert.True(t, refused(name[1]), name[1])
	}
	for _, name := range []string{
		"DAYBOOK_SECRETS_DIR", "DAYBOOK_SECRET_ORGS_ORDERS", "DAYBOOK_SLACK_URL", "DAYBOOK_FCM_URL", "DAYBOOK_PLAID_TOKEN_FUNCTION",
		"DAYBOOK_TWILIO_API_KEY_SID",
	} {
		assert.False(t, refused(name), name)
	}
}

func TestChartStartsCommandsThatThereAre(t *testing.T) {
	t.Parallel()
	a, err := cli.New(strings.NewReader(""), io.Discard, io.Discard)
	require.NoError(t, err)
	var values struct {
		Migrate struct{ Args []string }
	}
	require.NoError(t, yaml.Unmarshal([]byte(chart(t, "values.yaml")), &values))
	started := [][]string{values.Migrate.Args}
	words := regexp.MustCompile(`"([^"]*)"`)
	for _, file := range []string{"templates/worker.yaml", "templates/server.yaml"} {
		list := regexp.MustCompile(`concat \(list (.*?)\)`).FindStringSubmatch(chart(t, file))
		require.NotEmpty(t, list, file)
		var args []string
		for _, word := range words.FindAllStringSubmatch(list[1], -1) {
			args = append(args, word[1])
		}
		started = append(started, args)
	}
	for i, name := range []string{"daybook migrate up", "daybook worker", "daybook serve"} {
		command, rest, err := newRoot(a).Find(started[i])
		require.NoError(t, err)
		require.Equal(t, name, command.CommandPath())
		require.NoError(t, command.ParseFlags(rest), name)
		require.Empty(t, command.Flags().Args(), name)
	}
}

// TestChartHasWhatThePagesName: the values that helm is told to set, and the objects that kubectl is
// asked for.
func TestChartHasWhatThePagesName(t *testing.T) {
	t.Parallel()
	var values map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(chart(t, "values.yaml")), &values))
	set := regexp.MustCompile(`--set '?([\w.]+)=`)
	object := regexp.MustCompile(`\b(?:deploy/|job[/ ])daybook-([a-z]+)`)
	found := 0
	for _, program := range []string{"helm", "kubectl", "--set"} {
		commands, err := pages.Commands(program)
		require.NoError(t, err)
		for _, c := range commands {
			for _, m := range set.FindAllStringSubmatch(c.String(), -1) {
				found++
				var value any = values
				for name := range strings.SplitSeq(m[1], ".") {
					inner, _ := value.(map[string]any)
					assert.Contains(t, inner, name, "%s:%d: %s", c.Page, c.Line, m[0])
					value = inner[name]
				}
			}
			for _, m := range object.FindAllStringSubmatch(c.String(), -1) {
				found++
				assert.FileExists(t, filepath.Join("../../deploy/helm/daybook/templates", m[1]+".yaml"), "%s:%d: %s", c.Page, c.Line, m[0])
			}
			if program == "helm" && len(c.Words) > 3 && c.Words[1] == "install" {
				assert.FileExists(t, filepath.Join("../..", c.Words[3], "Chart.yaml"))
			}
		}
	}
	assert.GreaterOrEqual(t, found, 7)
}

func TestChartGivesTimeToStop(t *testing.T) {
	t.Parallel()
	type stops struct {
		Grace int `yaml:"terminationGracePeriodSeconds"`
	}
	var values struct{ Worker, Server stops }
	require.NoError(t, yaml.Unmarshal([]byte(chart(t, "values.yaml")), &values))
	grace := func(s stops) time.Duration { return time.Duration(s.Grace) * time.Second }
	// Five more seconds are for the last metrics, which are pushed after the drain.
	assert.GreaterOrEqual(t, grace(values.Worker), workers.DrainTimeout+5*time.Second)
	assert.Contains(t, chart(t, "templates/server.yaml"), "preStop: {sleep: {seconds: 5}}")
	assert.GreaterOrEqual(t, grace(values.Server), 5*time.Second+workers.DrainTimeout+5*time.Second)
	assert.Contains(t, chart(t, "values.schema.json"), `"grace": {"type": "integer", "minimum": 30,`)
}

// TestChartProbesWhatIsServed asks a server for every address that a probe of the chart names.
func TestChartProbesWhatIsServed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	addresses, stop := logged(t, b, []string{"showing metrics", "serving"}, "serve", "--listen", "127.0.0.1:0",
		"--metrics-listen", "127.0.0.1:0")
	defer stop()
	// A worker shows its metrics by the same function.
	ports := map[string]string{
		"http": addresses["serving"], "metrics": strings.TrimSuffix(addresses["showing metrics"], "/metrics"),
	}
	probe := regexp.MustCompile(`httpGet: \{path: (\S+), port: (\w+)\}`)
	for file, probes := range map[string]int{"templates/worker.yaml": 3, "templates/server.yaml": 3} {
		found := probe.FindAllStringSubmatch(chart(t, file), -1)
		require.Len(t, found, probes, file)
		for _, p := range found {
			status, body := get(t, ports[p[2]]+p[1], "")
			assert.Equal(t, http.StatusOK, status, "%s: %s: %s", file, p[0], body)
		}
	}
}

// TestChartsCertificatesAreUsed sets the variables by which the chart names certificates, and reads what the
// clients of PostgreSQL and Temporal make of them.
func TestChartsCertificatesAreUsed(t *testing.T) {
	folder := t.TempDir()
	writeCertificate(t, folder)
	helpers := chart(t, "templates/_helpers.tpl")
	set := regexp.MustCompile(`set \$env "(PGSSL\w+|TEMPORAL_TLS\w*)" (?:"([^"]*)"|\.serverName)`)
	found := set.FindAllStringSubmatch(helpers, -1)
	require.Len(t, found, 9)
	inFolder := regexp.MustCompile(`^/etc/daybook/\w+`)
	for _, s := range found {
		t.Setenv(s[1], inFolder.ReplaceAllString(s[2], folder))
	}
	t.Setenv("TEMPORAL_TLS_SERVER_NAME", "temporal.internal")

	pool, err := pgxpool.ParseConfig("postgres://daybook@db.internal/daybook")
	require.NoError(t, err)
	assert.Empty(t, pool.ConnConfig.Fallbacks, "never without TLS")
	require.NotNil(t, pool.ConnConfig.TLSConfig)
	assert.Equal(t, "db.internal", pool.ConnConfig.TLSConfig.ServerName)
	assert.NotNil(t, pool.ConnConfig.TLSConfig.RootCAs)
	assert.Len(t, pool.ConnConfig.TLSConfig.Certificates, 1)

	temporal, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{DisableFile: true})
	require.NoError(t, err)
	settings := temporal.ConnectionOptions.TLS
	require.NotNil(t, settings)
	assert.Equal(t, "temporal.internal", settings.ServerName)
	assert.NotNil(t, settings.RootCAs)
	assert.Len(t, settings.Certificates, 1)
}

// writeCertificate writes a certificate as a Secret of Kubernetes is mounted: ca.crt, tls.crt and tls.key.
func writeCertificate(t *testing.T, folder string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{
		"ca.crt":  {Type: "CERTIFICATE", Bytes: certificate},
		"tls.crt": {Type: "CERTIFICATE", Bytes: certificate},
		"tls.key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600))
	}
}
