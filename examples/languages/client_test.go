package languages_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/server"
)

const clientSource = "../../clients/typescript"

// TestTypeScriptClient has the client enqueue a job by a real server, wait for it, and read the
// code of an error; and compares its types with those that the API's document makes today.
func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	dir := compiled(t, clientSource)
	t.Run("enqueues and waits", func(t *testing.T) {
		t.Parallel()
		p := &program{
			DB: daybooktest.New(t), t: t,
			command: []string{found(t, "node"), filepath.Join(dir, "example", "enqueue.mjs")},
		}
		pages, err := server.New(t.Context(), server.Options{Pool: p.Pool})
		require.NoError(t, err)
		defer func() { _ = pages.Close() }()
		_, secret, err := tokens.Create(t.Context(), p.Pool,
			tokens.NewToken{OrgID: "shop", Name: "test", Scopes: []tokens.Scope{tokens.ScopeEnqueue, tokens.ScopeRead}})
		require.NoError(t, err)
		serving := httptest.NewServer(pages)
		defer serving.Close()
		p.env = []string{"DAYBOOK_URL=" + serving.URL, "DAYBOOK_TOKEN=" + secret}
		assert.JSONEq(t, `{"state": "completed", "result": {"confirmed": "order-1"}, "refused": "KEY_REUSED"}`,
			p.run("order-1"))
	})
	t.Run("has the types of the API", func(t *testing.T) {
		t.Parallel()
		document, err := server.OpenAPI("")
		require.NoError(t, err)
		require.True(t, json.Valid(document))
		path, out := filepath.Join(t.TempDir(), "openapi.json"), filepath.Join(t.TempDir(), "schema.ts")
		require.NoError(t, os.WriteFile(path, document, 0o600))
		command := exec.CommandContext(t.Context(), found(t, "node"),
			filepath.Join("node_modules", "openapi-typescript", "bin", "cli.js"), path, "-o", out)
		command.Dir = dir
		output, err := command.CombinedOutput()
		require.NoError(t, err, string(output))
		want, err := os.ReadFile(out)
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(clientSource, "src", "schema.ts"))
		require.NoError(t, err)
		assert.True(t, string(want) == string(got), "the API has changed: run make client, and look at what that changes for users of the client") //nolint:testifylint // the difference has thousands of lines
	})
}
