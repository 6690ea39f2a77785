package console

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// flash is a message that the page after an action shows once.
type flash struct{ Text string }

const (
	flashCookie = "daybook_flash"
	flashLasts  = time.Minute
	// flashBytes keeps the message within what browsers take as a cookie.
	flashBytes = 1000
)

func setFlash(w http.ResponseWriter, r *http.Request, text string) {
	if len(text) > flashBytes {
		text = text[:flashBytes] + "…"
	}
	if text != "" {
		setCookie(w, r, flashCookie, url.QueryEscape(text), flashLasts)
	}
}

func takeFlash(w http.ResponseWriter, r *http.Request) *flash {
	value, ok := cookieOf(r, flashCookie)
	if !ok {
		return nil
	}
	setCookie(w, r, flashCookie, "", -time.Second)
	text, err := url.QueryUnescape(value)
	if err != nil {
		return nil
	}
	return &flash{Text: text}
}

// done is what an action led to.
type done struct {
	// To is the page to show next; empty: the page that it was asked from.
	To string
	// Show is a page to answer with, in place of leading to one; nil: To is led to.
	Show *view
	// Text says what was done.
	Text string
	// Org and Subject are what it was about, for the log of actions: Subject is a job's id, a
	// document's, a type …
	Org, Subject string
	// Details are what was asked for, for the log of actions: no secrets and no payloads.
	Details map[string]any
}

// unless says instead that nothing was changed, and why, unless something was. The log of actions
// says it as well.
func (d *done) unless(changed bool, why string) {
	if d.Details == nil {
		d.Details = map[string]any{}
	}
	d.Details["changed"] = changed
	if !changed {
		d.Text = "Nothing was changed: " + why + "."
	}
}

// action adds a POST of a form by a caller who is signed in with the scope. name is what the log of
// actions calls it, such as jobs.retry.
//
// Each call is in the log. do may add it in the transaction of its change, by actions.Note with the
// context that it gets and what done would have; otherwise it is written directly afterwards.
func (c *console) action(pattern string, scope tokens.Scope, name string, do func(ctx context.Context, r *request) (done, error)) {
	c.handle("POST "+pattern, func(w http.ResponseWriter, raw *http.Request) {
		r, ok := c.signedIn(w, raw, scope)
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(raw.Context(), pageTimeout)
		defer cancel()
		if err := c.hosts.Check(ctx); err != nil {
			c.fail(w, r, err)
			return
		}
		ctx, taken := actions.Begin(ctx,
			actions.Action{Via: actions.Console, Action: name, TokenID: &r.Token.ID, Actor: r.Token.Name})
		var d done
		// A form that cannot be read has empty fields, and those mean "none", or all.
		err := raw.ParseForm()
		if err == nil {
			d, err = do(ctx, r)
		} else {
			err = unreadableForm(err)
		}
		if org := r.Token.OrgID; org != nil {
			d.Org = *org // whatever organization it named: nothing is written into the log of another one
		}
		taken.About(d.Org, d.Subject, d.Details)
		if noted := taken.End(ctx, c.Pool, err); noted != nil {
			c.log.ErrorContext(ctx, "an action is not in the log of actions", "action", name, "token", r.Token.ID, "error",
				noted)
		}
		if err != nil {
			c.refuse(w, r, err)
			return
		}
		if d.Show != nil {
			c.render(w, r, d.Show)
			return
		}
		setFlash(w, raw, d.Text)
		if d.To == "" {
			d.To = localPath(raw.PostFormValue("next"))
		}
		http.Redirect(w, raw, d.To, http.StatusSeeOther) //nolint:gosec // actions name pages of their own, and localPath keeps the rest here
	})
}
