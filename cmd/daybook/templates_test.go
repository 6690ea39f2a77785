package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/failure"
)

// Templates are listed and previewed without a database, as a worker makes them.
func TestTemplatesCommands(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "preview")
	for name, text := range map[string]string{
		"welcome.subject.txt": "Hi {{.name}}", "welcome.html": "<p>{{.name}}</p>",
		"welcome.txt": "Hello {{.name}}",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	r := call(t.Context(), "", "templates", "list", "--dir", dir)
	assert.Regexp(t, `reminder +text, html +Daybook\n`, r.out)
	assert.Regexp(t, `welcome +text, html +the directory\n`, r.out)

	r = call(t.Context(), `{"name": "<Ada>"}`, "templates", "preview", "welcome", "--dir", dir, "--params", "-")
	assert.Equal(t, "Subject: Hi <Ada>\n\nHello <Ada>\n\n<p>&lt;Ada&gt;</p>\n", r.out, r.err)
	r = call(t.Context(), `{"name": "<Ada>"}`, "templates", "preview", "welcome", "--dir", dir, "--params", "-", "--html")
	assert.Equal(t, "<p>&lt;Ada&gt;</p>", r.out)

	r = call(t.Context(), "{}", "templates", "preview", "welcome", "--dir", dir, "--params", "-")
	assert.Equal(t, failure.ExitUsage, r.exit)
	assert.Contains(t, r.err, "does not have: name")
	r = call(t.Context(), "", "templates", "preview", "other", "--dir", dir)
	assert.Contains(t, r.err, `no template "other"`)

	r = call(t.Context(), `{"name": "Ada"}`, "templates", "preview", "welcome", "--dir", dir, "--params", "-", "--out",
		out)
	assert.Equal(t, failure.ExitOK, r.exit, r.err)
	written, err := os.ReadFile(filepath.Join(out, "welcome.txt"))
	require.NoError(t, err)
	assert.Equal(t, "Hello Ada", string(written))
}

// A payload is tried with its template before its job is enqueued, where the directory of templates
// is known.
func TestTemplatesAreTriedWhenAJobIsEnqueued(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "welcome.subject.txt"), []byte("Hi {{.name}}"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "welcome.txt"), []byte("Hello"), 0o600))
	t.Setenv(cli.MailTemplatesVariable, dir)
	for raw, want := range map[string]string{
		`{"to": "a@example.com", "template": "welcome", "templateParams": {"name": "Ada"}}`: "",
		`{"to": "a@example.com", "template": "welcome"}`:                                    "does not have: name",
		`{"to": "a@example.com", "template": "welcom"}`:                                     `no template "welcom"`,
	} {
		_, err := cli.CheckBuiltinType("email", []byte(raw))
		if want == "" {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, want)
		}
	}
	_, err := cli.CheckBuiltinType("notification",
		[]byte(`{"eventType": "reminder", "email": {"to": "a@example.com", "template": "welcome"}}`))
	require.ErrorContains(t, err, "does not have: name")
}
