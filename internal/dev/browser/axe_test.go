//go:build browser

package browser_test

import (
	"os"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// violation is something that axe-core finds wrong with a page.
type violation struct {
	ID     string   `json:"id"`
	Impact string   `json:"impact"`
	Help   string   `json:"help"`
	Nodes  []string `json:"nodes"`
}

// accessible fails the test when axe-core finds anything wrong with the page as it is shown now.
func (b *tab) accessible(what string) {
	b.t.Helper()
	source, err := os.ReadFile(os.Getenv("DAYBOOK_AXE"))
	require.NoError(b.t, err, "DAYBOOK_AXE names axe.min.js: run `make test-browser`")
	evaluate[bool](b, string(source)+";true")
	found := evaluate[[]violation](b,
		`axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(r =>
		r.violations.map(v => ({id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.slice(0, 5).map(n => n.html + " :: " + n.failureSummary)})))`,
		chromedp.EvalAwaitPromise)
	assert.Empty(b.t, found, what)
}

func TestSignInIsAccessible(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	b.visit("")
	for _, scheme := range []string{"light", "dark"} {
		b.as(1280, 900, scheme)
		b.accessible("sign in, " + scheme)
	}
	b.as(390, 844, "light")
	b.accessible("sign in, phone")
}
