package console

import (
	"context"
	"net/http"
	"net/url"

	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// flash is a message that the page after an action shows once.
type flash struct{ Text string }

const flashCookie = "daybook_flash"

func (c *console) setFlash(w http.ResponseWriter, r *http.Request, text string) {
	if text != "" {
		c.setCookie(w, r, flashCookie, url.QueryEscape(text), 60)
	}
}

func takeFlash(w http.ResponseWriter, r *http.Request) *flash {
	cookie, err := r.Cookie(flashCookie)
	if err != nil {
		return nil
	}
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Path: Root, MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteLaxMode}) //nolint:gosec // it removes the cookie
	text, err := url.QueryUnescape(cookie.Value)
	if err != nil {
		return nil
	}
	return &flash{Text: text}
}

// done is what an action led to.
type done struct {
	// To is the page to show next; empty: the page that it was asked from.
	To string
	// Text says what was done.
	Text string
}

// action adds a POST of a form by a caller who is signed in with the scope. name is what the log of actions calls it.
func (c *console) action(pattern string, scope tokens.Scope, name string, do func(ctx context.Context, r *request) (done, error)) {
	c.mux.HandleFunc("POST "+pattern, func(w http.ResponseWriter, raw *http.Request) {
		raw.Body = http.MaxBytesReader(w, raw.Body, maxForm)
		r, ok := c.signedIn(w, raw, scope)
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(raw.Context(), pageTimeout)
		defer cancel()
		d, err := do(ctx, r)
		if err != nil {
			c.fail(w, r, err)
			return
		}
		c.log.InfoContext(ctx, "action", "action", name, "token", r.Token.ID)
		c.setFlash(w, raw, d.Text)
		if d.To == "" {
			d.To = localPath(raw.PostFormValue("next"))
		}
		http.Redirect(w, raw, d.To, http.StatusSeeOther) //nolint:gosec // actions name pages of their own, and localPath keeps the rest here
	})
}
