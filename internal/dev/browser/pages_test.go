//go:build browser

package browser_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/server"
)

// links are the addresses below the console's root that elements of the page lead to.
func (b *tab) links(selector string) []string {
	b.t.Helper()
	var paths []string
	for _, address := range evaluate[[]string](b,
		`[...document.querySelectorAll(`+"`"+selector+"`"+`)].map(a => a.href)`) {
		u, err := url.Parse(address)
		require.NoError(b.t, err)
		if path, ok := strings.CutPrefix(u.RequestURI(), server.ConsoleRoot); ok && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// all are the addresses of every page that the menu leads to, and of the first page of each sort
// that those lead to.
func (b *tab) all() []string {
	b.t.Helper()
	b.visit("?org=acme")
	paths := b.links("nav a")
	require.GreaterOrEqual(b.t, len(paths), 10, "the menu's pages")
	sorts := map[string]bool{}
	for _, path := range slices.Clone(paths) {
		b.visit(path)
		for _, to := range b.links("main a:not([href*='/file?'])") {
			if sort := sortOf(to); !sorts[sort] && !slices.Contains(paths, to) {
				sorts[sort] = true
				paths = append(paths, to)
			}
		}
	}
	// What differs in the values of its query alone, or stands behind another page.
	return append(paths, "statements?org=acme&kind=income&by=cost_centre", "statements?org=acme&kind=cash&period=2026-03",
		"statements?org=acme&kind=income&compare=year", "period?org=acme&from=2026-02-01", "period?org=acme&from=2026-03-01",
		"documents?org=acme&document=EXP-1",
		"accounts/edit?org=acme&account=1200")
}

// sortOf is an address without what differs between pages of one sort: ids and the values of its
// query.
func sortOf(path string) string {
	path, query, _ := strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	for i := 1; i < len(parts); i++ {
		parts[i] = "…"
	}
	values, _ := url.ParseQuery(query)
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(parts, "/") + "?" + strings.Join(names, "&")
}

func TestEveryPage(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	b.world()
	b.signIn("", tokens.Scopes()...)
	paths := b.all()
	t.Logf("%d pages: %s", len(paths), strings.Join(paths, "  "))
	for _, path := range paths {
		b.as(1280, 900, "light")
		b.visit(path)
		text := b.text()
		assert.NotContains(t, text, "could not be rendered", path)
		assert.NotContains(t, text, "hunter2", "%s shows a secret", path)
		assert.NotContains(t, text, "`", "%s shows the mark of a command, not the command", path)
		b.wholeWords(path)
		b.accessible(path + ", light")
		b.as(1280, 900, "dark")
		b.accessible(path + ", dark")
		b.as(390, 844, "light")
		b.fits(path)
		b.wholeWords(path + ", phone")
		b.accessible(path + ", phone")
	}
}

// fits fails the test when a page is wider than the screen: a person would have to move it to read
// it. Tables move in themselves, but for those of the ledger, whose rows become lists.
func (b *tab) fits(path string) {
	b.t.Helper()
	wide := evaluate[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`)
	assert.LessOrEqual(b.t, wide, 0, "%s is wider than a phone's screen by so many pixels", path)
	const cut = `[...document.querySelectorAll(".stack, .stack :is(td, th)")].filter(e => e.scrollWidth > e.clientWidth + 1).
		filter(e => getComputedStyle(e).position !== "absolute" && !e.closest("thead")).map(e => e.innerText.slice(0, 80))`
	assert.Empty(b.t, evaluate[[]string](b, cut), "%s has a table whose rows are wider than a phone's screen", path)
}

// wholeWords fails the test when a cell of a table breaks a word of up to 20 letters: a column of
// single letters cannot be read.
func (b *tab) wholeWords(path string) {
	b.t.Helper()
	const find = `(() => {
		const broken = new Set(), range = document.createRange();
		for (const cell of document.querySelectorAll("th, td")) {
			const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
			while (texts.nextNode()) for (const word of texts.currentNode.data.matchAll(/\b\w{2,20}\b/g)) {
				range.setStart(texts.currentNode, word.index);
				range.setEnd(texts.currentNode, word.index + word[0].length);
				if (new Set([...range.getClientRects()].map(r => r.top)).size > 1) broken.add(word[0]);
			}
		}
		return [...broken];
	})()`
	assert.Empty(b.t, evaluate[[]string](b, find), "%s breaks words", path)
}

func TestAnotherOrganizationSeesNothing(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	b.world()
	b.signIn("", tokens.ScopeRead)
	paths := b.all()
	b.do(chromedp.Navigate("about:blank"))

	other := openOn(t, b.DB, nil)
	other.signIn("globex", tokens.Scopes()...)
	for _, path := range paths {
		other.visit(path)
		text := other.text()
		for _, secret := range []string{"INV-10", "connection refused", "acme"} {
			if strings.Contains(path, secret) {
				continue // the address itself says it
			}
			assert.NotContains(t, text, secret, path)
		}
	}
}
