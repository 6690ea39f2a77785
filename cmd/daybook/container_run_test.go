package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/work"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
)

// engineOfImage and builtImage name a container engine (docker, podman) and the image that it has
// built of Dockerfile: scripts/release/image.sh sets them.
const (
	engineOfImage = "DAYBOOK_TEST_ENGINE"
	builtImage    = "DAYBOOK_TEST_IMAGE"
)

// containers runs an image, as docs/docker.md says that it can be run.
type containers struct {
	t             *testing.T
	engine, image string
}

// try calls the engine, and returns what the call printed to its output.
func (c containers) try(args ...string) (string, error) {
	out, err := exec.CommandContext(c.t.Context(), c.engine, args...).Output()
	return strings.TrimSpace(string(out)), err
}

func (c containers) ok(args ...string) string {
	c.t.Helper()
	out, err := c.try(args...)
	require.NoError(c.t, err, "%s %s: %s", c.engine, strings.Join(args, " "), out)
	return out
}

// locked are the arguments of a container that may write nothing, has no rights, and reaches the
// tests' servers.
func (c containers) locked(databaseURL string, flags ...string) []string {
	return slices.Concat([]string{
		"run", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--network", "host",
		"--env", "DAYBOOK_DATABASE_URL=" + databaseURL, "--env", "TEMPORAL_ADDRESS", "--env", "TEMPORAL_NAMESPACE",
	}, flags, []string{c.image})
}

// TestImageRuns: the image says what it is, has the licences, is healthy on a schema that fits it
// alone, and its worker works without a file system that it may write, and stops in an orderly way.
func TestImageRuns(t *testing.T) {
	c := containers{t, os.Getenv(engineOfImage), os.Getenv(builtImage)}
	if c.image == "" {
		t.Skipf("%s names no image", builtImage)
	}
	server := temporaltest.Shared(t)
	inNamespace(t, server, server.Namespace(t))
	b := setup(t)

	name := temporaltest.Unique("daybook-image")
	t.Cleanup(func() { _, _ = c.try("rm", "--force", name) })
	c.ok(append(c.locked(b.URL, "--detach", "--name", name), "worker", "--name", "contained")...)
	var config struct {
		User        string
		Labels      map[string]string
		Healthcheck struct{ Test []string }
	}
	require.NoError(t, json.Unmarshal([]byte(c.ok("inspect", "--format", "{{json .Config}}", name)), &config))
	assert.Equal(t, "nonroot:nonroot", config.User)
	var says versionInfo
	require.NoError(t, json.Unmarshal([]byte(c.ok("exec", name, "daybook", "version", "--json")), &says))
	assert.Equal(t, config.Labels["org.opencontainers.image.version"], says.Version)
	assert.Equal(t, config.Labels["org.opencontainers.image.revision"], says.Commit)
	assert.Regexp(t, `^[0-9a-f]{40}$`, says.Commit)

	licences := t.TempDir()
	c.ok("cp", name+":/usr/share/doc/daybook/.", licences)
	assert.Contains(t, read(t, filepath.Join(licences, "LICENSE")), "Apache License")
	assert.Contains(t, read(t, filepath.Join(licences, "THIRD_PARTY_LICENSES")), "go.temporal.io/sdk ")

	require.Equal(t, "CMD", config.Healthcheck.Test[0])
	health := config.Healthcheck.Test[1:]
	c.ok(append([]string{"exec", name}, health...)...)
	_, err := c.try(append(c.locked(pgtest.NewEmpty(t).URL, "--rm"), health[1:]...)...)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "no schema")
	assert.Equal(t, failure.ExitSchema, exit.ExitCode())

	c.ok("exec", name, "daybook", "workflow", "start")
	b.sample("es")
	b.ok("import", "ndjson", "dev/documents.ndjson", "--create")
	require.Eventually(t, func() bool {
		var d work.ShownAccountingJob
		b.json(&d, "accounting", "show", "es", "invoice-1")
		return len(d.History) == 1 && d.History[0].Worker == "contained"
	}, pgtest.Patience, 100*time.Millisecond, "posted by the container")
	c.ok("stop", "--time", "35", name)
	assert.Equal(t, "0", c.ok("inspect", "--format", "{{.State.ExitCode}}", name))
}
