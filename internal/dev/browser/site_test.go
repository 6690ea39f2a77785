//go:build browser && site

package browser_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// siteFolder is where `make site` has built the documentation of one version.
func siteFolder(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("DAYBOOK_SITE")
	require.NotEmpty(t, folder, "DAYBOOK_SITE names the folder of a version: run `make test-site`")
	return folder
}

// openSite returns a page of the documentation, which a server of files serves.
func openSite(t *testing.T, path string) *tab {
	t.Helper()
	serving := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(siteFolder(t)))))
	t.Cleanup(serving.Close)
	b := openTab(t, serving.URL+"/"+filepath.Base(siteFolder(t))+"/")
	b.do(chromedp.Navigate(b.url+path), ready())
	return b
}

// A reader searches without the mouse, and comes to the section that has the words.
func TestSiteIsSearched(t *testing.T) {
	t.Parallel()
	b := openSite(t, "index.html")
	b.do(chromedp.KeyEvent("/"), chromedp.SendKeys(chromedp.CSS("#search input"), "SCHEMA_NEW"),
		chromedp.WaitVisible(chromedp.CSS("#found a")))
	assert.Contains(t, evaluate[string](b, `document.querySelector("#found a").innerText`), "SCHEMA_NEW")
	_, err := chromedp.RunResponse(b.ctx, chromedp.SendKeys(chromedp.CSS("#search input"), kb.Enter))
	require.NoError(t, err)
	b.do(ready())
	assert.NotContains(t, evaluate[string](b, `location.href`), "index.html")
	b.see("SCHEMA_NEW")

	b.do(chromedp.SendKeys(chromedp.CSS("#search input"), "lease"), chromedp.WaitVisible(chromedp.CSS("#found a")),
		chromedp.SendKeys(chromedp.CSS("#search input"), kb.ArrowDown+kb.ArrowDown))
	assert.True(t, evaluate[bool](b, `document.activeElement === document.querySelectorAll("#found a")[1]`))
	b.do(chromedp.KeyEvent(kb.Escape), chromedp.WaitNotVisible(chromedp.CSS("#found")))
	evaluate[string](b, `document.querySelector("#search input").value = ""`)
	b.do(chromedp.SendKeys(chromedp.CSS("#search input"), "zzxqqy"))
	b.see("Nothing found.")
}

// Light or dark is as the system has it, until the reader chooses; that is kept.
func TestSiteKeepsTheColours(t *testing.T) {
	t.Parallel()
	b := openSite(t, "index.html")
	ground := func() string {
		return evaluate[string](b, `getComputedStyle(document.documentElement).backgroundColor`)
	}
	const light, dark = "rgb(255, 255, 255)", "rgb(19, 21, 24)"
	assert.Equal(t, light, ground())
	b.as(1280, 900, "dark")
	assert.Equal(t, dark, ground())
	b.do(chromedp.Click(chromedp.CSS("#colours")))
	assert.Equal(t, light, ground())
	b.do(chromedp.Navigate(b.url+"jobs.html"), ready())
	assert.Equal(t, light, ground())
}

// Each page can be read on a phone without moving it sideways, and the menu is behind a button.
func TestSiteOnAPhone(t *testing.T) {
	t.Parallel()
	b := openSite(t, "index.html")
	b.as(390, 844, "light")
	pages := 0
	require.NoError(t, fs.WalkDir(os.DirFS(siteFolder(t)), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".html") {
			return err
		}
		pages++
		b.do(chromedp.Navigate(b.url+path), ready())
		assert.LessOrEqual(t, evaluate[int](b, `document.documentElement.scrollWidth`), 390, path)
		return nil
	}))
	assert.Greater(t, pages, 50)
	b.do(chromedp.Click(chromedp.CSS("#menu-button")), chromedp.WaitVisible(chromedp.CSS("#menu")))
	b.accessible("the menu on a phone")
}

// The pages are accessible in both schemes, their menu says where the reader is, and a diagram is
// drawn.
func TestSiteIsAccessible(t *testing.T) {
	t.Parallel()
	b := openSite(t, "states.html")
	b.do(chromedp.WaitVisible(chromedp.CSS(".mermaid svg")))
	for _, path := range []string{"index.html", "jobs.html", "cli.html", "states.html"} {
		b.do(chromedp.Navigate(b.url+path), ready())
		if path != "index.html" {
			assert.Equal(t, b.url+path, evaluate[string](b, `document.querySelector("#menu a[aria-current]").href`))
		}
		for _, scheme := range []string{"light", "dark"} {
			b.as(1280, 900, scheme)
			b.accessible(path + ", " + scheme)
		}
	}
}

// A page that is opened as a file works as well.
func TestSiteAsFiles(t *testing.T) {
	t.Parallel()
	b := openTab(t, "file://"+siteFolder(t)+"/")
	b.do(chromedp.Navigate(b.url+"jobs.html"), ready(), chromedp.SendKeys(chromedp.CSS("#search input"), "backoff"),
		chromedp.WaitVisible(chromedp.CSS("#found a")))
	assert.Equal(t, filepath.Base(siteFolder(t)), evaluate[string](b, `document.getElementById("version").value`))
}
