package main

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCheckFindsLinksThatLeadNowhere(t *testing.T) {
	t.Parallel()
	site := fstest.MapFS{
		"index.html": {Data: []byte(`<h2 id="run">Run</h2><link rel="stylesheet" href="./site.css"><a href="https://temporal.io">T</a>
<a href="#run">r</a><a href="./jobs.html#steps">s</a><a href="decisions/0001.html">d</a><img src="images/a.png">`)},
		"jobs.html":           {Data: []byte(`<h2 id="steps">Steps</h2>`)},
		"decisions/0001.html": {Data: []byte(`<a href="../jobs.html">j</a>`)},
		"images/a.png":        {},
		"site.css":            {Data: []byte(`a { background: url(data:image/png;base64,AA) }`)},
	}
	wrong, err := check(site)
	require.NoError(t, err)
	assert.Empty(t, wrong)

	site["broken.html"] = &fstest.MapFile{Data: []byte(`<a href="gone.html">g</a><a href="jobs.html#gone">a</a><a href="#gone">b</a>
<a href="decisions/">f</a><img src="images/gone.png"><script src="https://cdn.example/x.js"></script><link href="//cdn.example/x.css">`)}
	site["site.css"] = &fstest.MapFile{Data: []byte(`@font-face { src: url("https://fonts.example/f") }`)}
	wrong, err = check(site)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"broken.html: gone.html: there is no such file",
		"broken.html: jobs.html#gone: the page has no such heading",
		"broken.html: #gone: the page has no such heading",
		"broken.html: decisions/: it is a folder: name its page, as a site that is opened as files needs it",
		"broken.html: images/gone.png: there is no such file",
		"broken.html: https://cdn.example/x.js: the page loads it from elsewhere",
		"broken.html: //cdn.example/x.css: the page loads it from elsewhere",
		`site.css: url("https://: it loads something from elsewhere`,
	}, wrong)
}

func TestFirstPageLeadsToTheNewestRelease(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range []string{"main", "v0.9.0", "v0.10.0"} {
		require.NoError(t, os.Mkdir(filepath.Join(folder, name), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name, "index.html"), nil, 0o600))
	}
	require.NoError(t, finish(folder, "main"))
	first, err := os.ReadFile(filepath.Join(folder, "index.html"))
	require.NoError(t, err)
	assert.Contains(t, string(first), "url=v0.10.0/index.html")
	versions, err := os.ReadFile(filepath.Join(folder, "versions.js"))
	require.NoError(t, err)
	assert.JSONEq(t, `[{"name": "v0.10.0", "pages": ["index.html"]}, {"name": "v0.9.0", "pages": ["index.html"]}, {"name": "main", "pages": ["index.html"]}]`,
		string(versions[len("window.versions = "):len(versions)-2]))
}
