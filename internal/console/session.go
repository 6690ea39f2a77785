package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/daybook-dev/daybook/internal/failure"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// sessionCookie holds the token itself: the database keeps nothing of a session, and a token that is revoked ends it at once. No script
// reads it (HttpOnly), no other site's request carries it (SameSite), no other path receives it.
const sessionCookie = "daybook_session"

var errScope = failure.New(failure.Forbidden, "the token that you signed in with lacks a scope")

// session adds signing in and out.
func (c *console) session() {
	c.mux.HandleFunc("GET "+Root+"sign-in", func(w http.ResponseWriter, r *http.Request) {
		c.signIn(w, r, http.StatusOK, "")
	})
	c.mux.HandleFunc("POST "+Root+"sign-in", c.checkToken)
	c.mux.HandleFunc("POST "+Root+"sign-out", func(w http.ResponseWriter, r *http.Request) {
		c.setCookie(w, r, sessionCookie, "", -1)
		http.Redirect(w, r, Root+"sign-in", http.StatusSeeOther)
	})
}

func (c *console) signIn(w http.ResponseWriter, r *http.Request, status int, message string) {
	c.render(w, &request{Request: r}, &view{
		Title: "Sign in", Template: "sign-in", Status: status, Data: map[string]any{"Message": message, "Next": localPath(r.FormValue("next"))},
	})
}

func (c *console) checkToken(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	secret := strings.TrimSpace(r.PostFormValue("token"))
	token, err := tokens.Find(r.Context(), c.Pool, secret)
	switch {
	case errors.Is(err, tokens.ErrRefused):
		c.signIn(w, r, http.StatusUnauthorized, "This token is unknown or revoked. Create one with `daybook tokens create`.")
		return
	case err != nil:
		c.fail(w, &request{Request: r}, err)
		return
	case !token.Allows(tokens.ScopeRead):
		c.signIn(w, r, http.StatusForbidden, "This token lacks the scope read, which the console needs.")
		return
	}
	c.setCookie(w, r, sessionCookie, secret, sessionSeconds)
	http.Redirect(w, r, localPath(r.PostFormValue("next")), http.StatusSeeOther) //nolint:gosec // localPath keeps it on these pages
}

const (
	sessionSeconds = 12 * 60 * 60
	maxForm        = 64 << 10
)

func (c *console) setCookie(w http.ResponseWriter, r *http.Request, name, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure follows the request: over plain HTTP the console answers this machine alone
		Name: name, Value: value, Path: Root, MaxAge: seconds, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"),
	})
}

// signedIn returns the request with its token, or answers: with the page to sign in, or with what the token lacks.
func (c *console) signedIn(w http.ResponseWriter, raw *http.Request, scope tokens.Scope) (*request, bool) {
	r := &request{Request: raw, now: c.now()}
	cookie, err := raw.Cookie(sessionCookie)
	if err == nil {
		r.Token, err = tokens.Find(raw.Context(), c.Pool, cookie.Value)
	}
	switch {
	case errors.Is(err, http.ErrNoCookie), errors.Is(err, tokens.ErrRefused):
		next := Root
		if raw.Method == http.MethodGet {
			next = raw.URL.RequestURI()
		}
		http.Redirect(w, raw, Root+"sign-in?next="+url.QueryEscape(next), http.StatusSeeOther)
		return nil, false
	case err != nil:
		c.fail(w, r, err)
		return nil, false
	case !r.Token.Allows(scope):
		c.fail(w, r, fmt.Errorf("%w: this needs %q", errScope, scope))
		return nil, false
	}
	return r, true
}

// localPath keeps a redirect on these pages.
func localPath(next string) string {
	if strings.HasPrefix(next, Root) && !strings.Contains(next, "\\") {
		return next
	}
	return Root
}
