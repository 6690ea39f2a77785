//go:build browser

package browser_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/server"
)

// patience is how long a page may take to show what a test waits for.
const patience = 30 * time.Second

var (
	browsing     sync.Once
	browser      context.Context
	browserError error
)

func TestMain(m *testing.M) {
	pgtest.Main(m, temporaltest.Stop, func() error {
		if browser == nil {
			return nil
		}
		return chromedp.Cancel(browser)
	})
}

// chromium returns the browser that all tests share. Each test has a profile of its own in it.
func chromium(t *testing.T) context.Context {
	t.Helper()
	browsing.Do(func() {
		options := []chromedp.ExecAllocatorOption{chromedp.WSURLReadTimeout(time.Minute)}
		if path := os.Getenv("CHROME"); path != "" {
			options = append(options, chromedp.ExecPath(path))
		}
		if os.Geteuid() == 0 {
			options = append(options, chromedp.NoSandbox) // Chromium refuses root otherwise
		}
		// TestMain ends it
		browser, _ = chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(options...))
		browserError = chromedp.Do(browser)
	})
	require.NoError(t, browserError, "start Chromium: CHROME names its program")
	return browser
}

// tab is a page of the browser, with the database of the console that it shows; nil: it shows none.
type tab struct {
	*pgtest.DB
	t   *testing.T
	ctx context.Context
	url string
}

// open starts a console and returns a page of it that has loaded nothing yet. The test fails when a
// page has errors of scripts or styles.
func open(t *testing.T, temporal client.Client) *tab {
	t.Helper()
	return openOn(t, pgtest.New(t), temporal)
}

// openOn is open on a database that is there.
func openOn(t *testing.T, db *pgtest.DB, temporal client.Client) *tab {
	t.Helper()
	pages, err := server.New(t.Context(),
		server.Options{
			Pool: db.Pool, Temporal: server.TemporalOptions{Client: temporal}, Version: "test",
			CheckPayload: mailsAndCalls("").CheckPayload,
		})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pages.Close()) })
	serving := httptest.NewServer(pages)
	t.Cleanup(serving.Close)
	b := openTab(t, serving.URL)
	b.DB = db
	return b
}

// openTab returns a page of what an address serves, which has loaded nothing yet.
func openTab(t *testing.T, url string) *tab {
	t.Helper()
	problems := &problems{}
	t.Cleanup(func() { require.Empty(t, problems.all(), "errors in the browser's console") })
	ctx, closeTab := chromedp.NewContext(chromium(t), chromedp.WithNewBrowserContext(),
		chromedp.WithListener(problems.note))
	t.Cleanup(closeTab)
	require.NoError(t, chromedp.Do(ctx))
	b := &tab{t: t, ctx: ctx, url: url}
	b.as(1280, 900, "light")
	return b
}

// do has the browser do something, within patience.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		address, _ := chromedp.Run(b.ctx, chromedp.Location())
		text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body ? document.body.innerText : ""`))
		require.NoError(b.t, err, "on %s, which shows:\n%s", address, text)
	}
}

// evaluate returns the value of an expression in the page.
func evaluate[T any](b *tab, expression string, options ...chromedp.EvaluateOption) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, options...))
	require.NoError(b.t, err)
	return value
}

// token makes a token for an organization, or for all when org is empty, and returns its secret.
func (b *tab) token(org string, scopes ...tokens.Scope) string {
	b.t.Helper()
	_, secret, err := tokens.Create(b.t.Context(), b.Pool, tokens.NewToken{OrgID: org, Name: "on call", Scopes: scopes})
	require.NoError(b.t, err)
	return secret
}

// signIn signs in as a person does: by typing a token into the page.
func (b *tab) signIn(org string, scopes ...tokens.Scope) {
	b.t.Helper()
	b.do(
		chromedp.Navigate(b.url+server.ConsoleRoot), chromedp.WaitVisible(chromedp.CSS("#token")),
		chromedp.SendKeys(chromedp.CSS("#token"), b.token(org, scopes...)+kb.Enter),
		chromedp.WaitNotPresent(chromedp.CSS("#token")), ready(),
	)
}

// ready waits until a page is there.
func ready() chromedp.Action[chromedp.Void] { return chromedp.WaitVisible(chromedp.CSS("main h1")) }

// visit goes to a page of the console: an address below its root.
func (b *tab) visit(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.url+server.ConsoleRoot+path), ready())
}

// text returns what the page shows.
func (b *tab) text() string {
	b.t.Helper()
	return evaluate[string](b, `document.body.innerText`)
}

// see waits until the page shows a text. A page that is loaded anew meanwhile is looked at again.
func (b *tab) see(text string) {
	b.t.Helper()
	require.EventuallyWithT(b.t, func(c *assert.CollectT) { assert.Contains(c, b.text(), text) }, patience,
		100*time.Millisecond)
}

// click follows the first link, or presses the first button, whose text is or has these words, and
// waits for the page that it leads to.
func (b *tab) click(words string) {
	b.t.Helper()
	const find = `(() => {
		document.querySelectorAll("[data-clicked]").forEach(e => e.removeAttribute("data-clicked"));
		const words = %q, all = [...document.querySelectorAll("a, button, summary")].filter(e => e.offsetParent !== null);
		const it = all.find(e => e.innerText.trim() === words) || all.find(e => e.innerText.includes(words));
		if (!it) return "";
		it.setAttribute("data-clicked", "1");
		return it.tagName;
	})()`
	found := evaluate[string](b, fmt.Sprintf(find, words))
	require.NotEmpty(b.t, found, "there is nothing to click with the words %q on:\n%s", words, b.text())
	if found == "SUMMARY" {
		b.do(chromedp.Click(chromedp.CSS(`[data-clicked="1"]`)))
		return
	}
	b.press(`[data-clicked="1"]`)
}

// press presses what a selector finds, and waits for the page that it leads to.
func (b *tab) press(selector string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	_, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(selector)))
	require.NoError(b.t, err, "press %s", selector)
	b.do(ready())
}

// fill gives a field a value.
func (b *tab) fill(selector, value string) {
	b.t.Helper()
	b.do(chromedp.SetValue(chromedp.CSS(selector), value))
}

// as shows the page as a screen of this size does, in light or dark, for a person who wants nothing
// to move.
func (b *tab) as(width, height int64, scheme string) {
	b.t.Helper()
	b.do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: scheme},
				{Name: "prefers-reduced-motion", Value: "reduce"},
			},
		})
		return chromedp.Void{}, err
	}, chromedp.EmulateViewport(width, height))
}

// picture takes a screenshot into docs/images when SCREENSHOTS asks for it.
func (b *tab) picture(name string) {
	b.t.Helper()
	if os.Getenv("SCREENSHOTS") == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	data, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	data = inFewColours(b.t, data)
	assert.LessOrEqual(b.t, len(data), 150_000, "the bytes of %s", name)
	require.NoError(b.t, os.WriteFile(filepath.Join("..", "..", "..", "docs", "images", name+".png"), data, 0o600))
}
