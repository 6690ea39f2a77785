package handlers

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
)

// templatesOf opens a directory with these files.
func templatesOf(t *testing.T, files map[string]string) (*MailTemplates, error) {
	t.Helper()
	return OpenMailTemplates(templateDir(t, files))
}

func templateDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

// welcome are the files of a template with everything.
func welcome() map[string]string {
	return map[string]string{
		"welcome.subject.txt": "Welcome, {{.name}}\n", "welcome.txt": "Hello {{.name}}",
		"welcome.html": `<p>Hello <a href="{{.link}}">{{.name}}</a></p>`,
		"layout.html":  `<main>{{template "content" .}}</main>`, "layout.txt": `{{template "content" .}} -- the shop`,
		"plain.subject.txt": "s", "plain.html": "<p>{{.a}}</p>", "plain.layout.html": "", "README.md": "not a template",
	}
}

func TestTemplatesRender(t *testing.T) {
	t.Parallel()
	all, err := templatesOf(t, welcome())
	require.NoError(t, err)
	mail, err := all.Render("welcome", map[string]any{"name": `<b>Ada & "co"`, "link": "javascript:alert(1)"})
	require.NoError(t, err)
	assert.Equal(t, `Welcome, <b>Ada & "co"`, mail.Subject)
	assert.Equal(t, `Hello <b>Ada & "co" -- the shop`, mail.Text)
	assert.Equal(t, `<main><p>Hello <a href="#ZgotmplZ">&lt;b&gt;Ada &amp; &#34;co&#34;</a></p></main>`, mail.HTML,
		"escaped for the place")

	var params TemplateParams
	require.NoError(t, json.Unmarshal([]byte(`{"a": 12345678901234567890}`), &params))
	mail, err = all.Render("plain", params)
	require.NoError(t, err)
	assert.Equal(t, Mail{Subject: "s", HTML: "<p>12345678901234567890</p>"}, mail,
		"a layout of its own, and numbers as they came")

	assert.Equal(t, []MailTemplate{
		{Name: "plain", HTML: true},
		{Name: "reminder", Text: true, HTML: true, BuiltIn: true},
		{Name: "status_change", Text: true, HTML: true, BuiltIn: true},
		{Name: "submission_receipt", Text: true, HTML: true, BuiltIn: true},
		{Name: "welcome", Text: true, HTML: true},
	}, all.List())
}

func TestTemplatesNameWhatIsMissing(t *testing.T) {
	t.Parallel()
	files := welcome()
	files["loop.subject.txt"], files["loop.txt"] = "s", "{{range .list}}{{$.big}}{{end}}"
	files["break.subject.txt"], files["break.txt"] = "a{{.name}}", "t"
	all, err := templatesOf(t, files)
	require.NoError(t, err)
	for _, c := range []struct {
		template string
		params   map[string]any
		want     string
	}{
		{"welcome", nil, "needs the parameters that templateParams does not have: name, link"},
		{"welcome", map[string]any{"name": "Ada"}, "does not have: link"},
		{"welcom", nil, `there is no template "welcom": there are break, loop, plain, reminder`},
		{"loop", map[string]any{"list": make([]any, 300), "big": strings.Repeat("x", 10_000)}, "more than 1048576 bytes"},
		{"break", map[string]any{"name": "x\r\nBcc: eve@example.com"}, "line breaks"},
		{"break", map[string]any{"name": strings.Repeat("ü", 300)}, "more than 250 characters"},
		{"loop", map[string]any{"list": 5.5}, "cannot make its text"},
	} {
		_, err := all.Render(c.template, c.params)
		require.ErrorContains(t, err, c.want)
		var f *failure
		require.ErrorAs(t, err, &f)
		assert.Equal(t, models.CodePayloadInvalid, f.code)
	}
}

// The three templates of notifications need no parameter, and show those that they know.
func TestTemplatesBuiltIn(t *testing.T) {
	t.Parallel()
	all, err := OpenMailTemplates("")
	require.NoError(t, err)
	require.Len(t, all.List(), 3)
	for _, m := range all.List() {
		empty, err := all.Render(m.Name, nil)
		require.NoError(t, err)
		assert.NotContains(t, empty.Text+empty.HTML+empty.Subject, "no value")
		mail, err := all.Render(m.Name, map[string]any{
			"applicantName": "Ada <1>", "programName": "Grants", "link": "https://example.com/?a=1&b=2",
			"submissionId": "s-7", "message": "More.",
		})
		require.NoError(t, err)
		for _, said := range []string{"Ada <1>", "Grants", "https://example.com/?a=1&b=2", "s-7", "More."} {
			assert.Contains(t, mail.Text, said, m.Name)
		}
		assert.Contains(t, mail.HTML, "Ada &lt;1&gt;")
		assert.Contains(t, mail.HTML, `<a href="https://example.com/?a=1&amp;b=2">`)
		assert.NotEmpty(t, mail.Subject)
	}
}

// A template of the directory replaces the whole of a built-in one, and the directory's layout is
// around those that remain.
func TestTemplatesReplaceBuiltIn(t *testing.T) {
	t.Parallel()
	all, err := templatesOf(t,
		map[string]string{
			"reminder.subject.txt": "Soon", "reminder.txt": "{{.when}}",
			"layout.txt": `{{template "content" .}} The shop`,
		})
	require.NoError(t, err)
	mail, err := all.Render("reminder", map[string]any{"when": "today"})
	require.NoError(t, err)
	assert.Equal(t, Mail{Subject: "Soon", Text: "today The shop"}, mail)
	mail, err = all.Render("status_change", nil)
	require.NoError(t, err)
	assert.True(t, strings.HasSuffix(mail.Text, "The shop"))
}

func TestTemplatesRefuseFiles(t *testing.T) {
	t.Parallel()
	for want, files := range map[string]map[string]string{
		"has no subject: write a.subject.txt":  {"a.txt": "t"},
		"has neither a.txt nor a.html":         {"a.subject.txt": "s"},
		"A.txt is no file of a template":       {"A.txt": "t"},
		"a.body.html is no file of a template": {"a.body.html": "t"},
		"layout.layout.txt is no file":         {"layout.layout.txt": "t"},
		"a.txt: template":                      {"a.subject.txt": "s", "a.txt": "{{.name"},
		"there is no template a":               {"a.layout.html": ""},
		"a.html: html/template":                {"a.subject.txt": "s", "a.html": `<a href='{{if .a}}"{{end}}`},
		"a.txt has more than 262144 bytes":     {"a.subject.txt": "s", "a.txt": strings.Repeat("x", 262145)},
	} {
		_, err := templatesOf(t, files)
		require.ErrorContains(t, err, want)
	}
	_, err := OpenMailTemplates(filepath.Join(t.TempDir(), "missing"))
	require.ErrorContains(t, err, "mail templates")
}
