package newapp

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
)

func TestMain(m *testing.M) { pgtest.Main(m, temporaltest.Stop) }

// root is the checkout.
const root = "../../../.."

// made is an application that uses this checkout.
func made(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shop")
	paths, err := Make(Options{Dir: dir, Version: "(devel)", Replace: root})
	require.NoError(t, err)
	for _, path := range paths {
		assert.FileExists(t, path)
	}
	// The sums of the modules that Daybook has: they need not be asked for. That they are old has the
	// Makefile tidy them.
	sums := filepath.Join(dir, "go.sum")
	text, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(sums, text, 0o600))
	require.NoError(t, os.Chtimes(sums, time.Time{}, time.Now().Add(-time.Hour)))
	return dir
}

// TestAppRunsAsMade calls what the next steps name, as they name it, but for servers that run
// already: the application's tests pass, and a worker posts an order.
func TestAppRunsAsMade(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it compiles another program and its tests")
	}
	dir := made(t)
	db, server := pgtest.New(t), temporaltest.Shared(t)
	environment := append(os.Environ(), "DAYBOOK_DATABASE_URL="+db.URL, "TEMPORAL_ADDRESS="+server.Address,
		"TEMPORAL_NAMESPACE="+server.Namespace(t), "TEMPORAL_CONFIG_FILE="+os.DevNull)
	in := func(name string, args ...string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir, c.Env = dir, environment
		return c
	}
	began := time.Now()
	out, err := in("make", "test").CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("make test: %s\n%s", time.Since(began).Round(time.Second), out)

	out, err = in("go", "build", "-o", "app", ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	worker := in(filepath.Join(dir, "app"), "work")
	var log bytes.Buffer
	worker.Stdout, worker.Stderr = &log, &log
	require.NoError(t, worker.Start())
	ended := make(chan error, 1)
	go func() { ended <- worker.Wait() }()
	require.Eventually(t, func() bool {
		return fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.organizations WHERE id = 'app'`) == 1
	}, time.Minute, 20*time.Millisecond)
	out, err = in("make", "order").CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "order 1 of Ada: completed\n")
	require.Eventually(t, func() bool {
		return fixture.Count(t, db.Pool, `SELECT count(*) FROM app.receipts`) == 1
	}, time.Minute, 20*time.Millisecond)
	assert.EqualValues(t, 11900, fixture.Balance(t, db.Pool, "app", "1200", "EUR"))
	require.NoError(t, worker.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-ended, log.String())
}

// TestModuleOfARelease: the application requires the program's own version.
func TestModuleOfARelease(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "shop")
	for version, o := range map[string]Options{
		"v0.1.0": {Dir: dir, Version: "v0.1.0"}, "v1.2.3-rc.1": {Dir: dir, Version: "v1.2.3-rc.1"},
	} {
		text, err := o.goMod()
		require.NoError(t, err)
		assert.Equal(t, "module example.com/shop\n\ngo 1.26.0\n\nrequire github.com/daybook-dev/daybook "+version+"\n",
			string(text))
	}
}

// TestRefused: what cannot be made is refused before anything is written.
func TestRefused(t *testing.T) {
	t.Parallel()
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "notes"), nil, 0o600))
	dir := filepath.Join(t.TempDir(), "shop")
	for name, c := range map[string]struct {
		o     Options
		words string
		class *failure.Class
	}{
		"not empty":  {Options{Dir: full, Version: "v0.1.0", Module: "x"}, "notes", failure.FileExists},
		"module":     {Options{Dir: dir, Version: "v0.1.0", Module: "a b"}, "--module", failure.Usage},
		"checkout":   {Options{Dir: dir, Version: "(devel)"}, "--replace", failure.Usage},
		"unreleased": {Options{Dir: dir, Version: "v0.1.1-0.20260101000000-abcdefabcdef+dirty"}, "--replace", failure.Usage},
		"replace":    {Options{Dir: dir, Replace: full}, "checkout", failure.Usage},
	} {
		_, err := Make(c.o)
		require.ErrorContains(t, err, c.words, name)
		assert.Equal(t, c.class, failure.Of(err), name)
	}
	assert.NoDirExists(t, dir)
}

// TestVersionsAreDaybooks: the language version, the images and the servers' settings are those of
// this checkout.
func TestVersionsAreDaybooks(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(text)
	}
	assert.Contains(t, read(filepath.Join(root, "go.mod")), "\ngo "+goVersion+"\n")
	images := regexp.MustCompile(`image: .*|FROM \S*golang:.*`)
	for _, name := range []string{"docker-compose.yml", "Dockerfile"} {
		theirs := read(filepath.Join(root, name))
		found := images.FindAllString(read(filepath.Join("app", name)), -1)
		require.NotEmpty(t, found, name)
		for _, image := range found {
			assert.Contains(t, theirs, image, name)
		}
	}
	type service = map[string]any
	var ours, theirs struct{ Services map[string]service }
	require.NoError(t, yaml.Unmarshal([]byte(read(filepath.Join(root, "docker-compose.yml"))), &ours))
	require.NoError(t, yaml.Unmarshal([]byte(read("app/docker-compose.yml")), &theirs))
	for server, settings := range map[string][]string{
		"postgres": {"healthcheck", "volumes"}, "temporal": {"command", "healthcheck", "volumes"},
	} {
		for _, setting := range settings {
			require.NotEmpty(t, ours.Services[server][setting], "%s of %s", setting, server)
			assert.Equal(t, ours.Services[server][setting], theirs.Services[server][setting], "%s of %s", setting, server)
		}
	}
}
