package console

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/server/internal/clientaddress"
	"github.com/daybook-dev/daybook/server/internal/entry"
)

const (
	// sessionCookie holds a random secret of the session, not the token: signing out ends it in the
	// database, and so does revoking the token (docs/decisions/0013). No script reads it (HttpOnly),
	// and no other site's form carries it (SameSite).
	sessionCookie = "daybook_session"
	// hostPrefix has browsers keep a cookie only if this very host set it over TLS.
	hostPrefix = "__Host-"
	// maxForm is how many bytes of any request's body are read; the form with the source of a rule
	// set is the largest.
	maxForm = 1 << 20
)

// session adds signing in and out.
func (c *console) session() {
	c.mux.HandleFunc("GET "+Root+"sign-in", func(w http.ResponseWriter, r *http.Request) {
		c.signIn(w, r, http.StatusOK, "")
	})
	c.mux.HandleFunc("POST "+Root+"sign-in", c.checkToken)
	c.mux.HandleFunc("POST "+Root+"sign-out", c.signOut)
}

func (c *console) signIn(w http.ResponseWriter, r *http.Request, status int, message string) {
	c.render(w, &request{Request: r}, &view{
		Title: "Sign in", Template: "sign-in", Status: status,
		Data: map[string]any{"Message": message, "Next": localPath(r.FormValue("next"))},
	})
}

func (c *console) checkToken(w http.ResponseWriter, r *http.Request) {
	from := clientaddress.Of(r)
	if wait := c.attempts.begin(from, c.now()); wait > 0 {
		c.tooMany(w, &request{Request: r}, wait, errThrottled)
		return
	}
	token, err := tokens.Find(r.Context(), c.Pool, strings.TrimSpace(r.PostFormValue("token")))
	switch {
	case errors.Is(err, tokens.ErrRefused):
		c.signIn(w, r, http.StatusUnauthorized,
			"This token is unknown or revoked. Create one with `daybook tokens create`.")
		return
	case err != nil:
		c.attempts.succeeded(from)
		c.fail(w, &request{Request: r}, err)
		return
	}
	c.attempts.succeeded(from)
	if !c.counted(w, &request{Request: r}, &token) {
		return
	}
	if !token.Allows(tokens.ScopeRead) {
		c.signIn(w, r, http.StatusForbidden, "This token lacks the scope read, which the console needs.")
		return
	}
	secret, err := tokens.BeginSession(r.Context(), c.Pool, token.ID)
	if err != nil {
		c.fail(w, &request{Request: r}, err)
		return
	}
	setCookie(w, r, sessionCookie, secret, tokens.SessionLength)
	http.Redirect(w, r, localPath(r.PostFormValue("next")), http.StatusSeeOther) //nolint:gosec // localPath keeps it on these pages
}

func (c *console) signOut(w http.ResponseWriter, r *http.Request) {
	if secret, ok := cookieOf(r, sessionCookie); ok {
		if err := tokens.EndSession(r.Context(), c.Pool, secret); err != nil {
			c.fail(w, &request{Request: r}, err)
			return
		}
	}
	setCookie(w, r, sessionCookie, "", -time.Second)
	http.Redirect(w, r, Root+"sign-in", http.StatusSeeOther)
}

// secure reports whether the browser speaks TLS, with the server or with a proxy before it.
func secure(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

func cookieName(r *http.Request, name string) string {
	if secure(r) {
		return hostPrefix + name
	}
	return name
}

func cookieOf(r *http.Request, name string) (value string, ok bool) {
	cookie, err := r.Cookie(cookieName(r, name))
	if err != nil || cookie.Value == "" {
		return "", false
	}
	return cookie.Value, true
}

// setCookie gives the browser a cookie for a time; a negative one removes it.
func setCookie(w http.ResponseWriter, r *http.Request, name, value string, lasts time.Duration) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure follows the request: over plain HTTP the console answers this machine alone
		Name: cookieName(r, name), Value: value, Path: "/", MaxAge: int(lasts.Seconds()), HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: secure(r),
	})
}

// counted counts a request of the token for its rate, and answers one too many.
func (c *console) counted(w http.ResponseWriter, r *request, token *tokens.Token) bool {
	wait := entry.Note(r.Context(), token)
	if wait <= 0 {
		return true
	}
	c.tooMany(w, r, wait, errTooMany)
	return false
}

// tooMany answers a request that may come again after the wait.
func (c *console) tooMany(w http.ResponseWriter, r *request, wait time.Duration, why error) {
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	c.fail(w, r, why)
}

// signedIn returns the request with its token, or answers: with the page to sign in, or with what
// the token lacks.
func (c *console) signedIn(w http.ResponseWriter, raw *http.Request, scope tokens.Scope) (*request, bool) {
	r := &request{Request: raw, now: c.now()}
	err := tokens.ErrRefused
	if secret, ok := cookieOf(raw, sessionCookie); ok {
		r.Token, err = tokens.OfSession(raw.Context(), c.Pool, secret)
	}
	switch {
	case errors.Is(err, tokens.ErrRefused):
		next := Root
		if raw.Method == http.MethodGet {
			next = raw.URL.RequestURI()
		}
		http.Redirect(w, raw, Root+"sign-in?next="+url.QueryEscape(next), http.StatusSeeOther)
		return nil, false
	case err != nil:
		c.fail(w, r, err)
		return nil, false
	case !c.counted(w, r, &r.Token):
		return nil, false
	case !r.Token.Allows(scope):
		c.fail(w, r, fmt.Errorf("%w: this needs %q", errScope, scope))
		return nil, false
	}
	return r, true
}
