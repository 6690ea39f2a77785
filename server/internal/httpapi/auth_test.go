package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// scopeOf reads from the document which scope an operation wants.
func scopeOf(r *route) tokens.Scope {
	scopes := r.operation["security"].([]any)[0].(map[string]any)["bearer"].([]any)
	return tokens.Scope(scopes[0].(string))
}

// address fills a path's parameters.
func (r *route) address() string {
	return strings.NewReplacer("{id}", "nothing", "{documentId}", "nothing", "{name}", "nothing").Replace(r.path)
}

func TestEveryOperationWantsItsScope(t *testing.T) {
	t.Parallel()
	b := setup(t)
	secrets := map[tokens.Scope]string{}
	for _, s := range tokens.Scopes() {
		secrets[s] = b.token("", s)
	}
	for _, r := range b.spec.secured() {
		name := r.method + " " + r.path
		for scope, token := range secrets {
			a := b.send(token, r.method, r.address(), nil)
			if scope == scopeOf(&r) {
				assert.NotContains(t, []int{http.StatusUnauthorized, http.StatusForbidden}, a.status, "%s with %s: %s", name,
					scope, a.body)
				continue
			}
			assert.Equal(t, http.StatusForbidden, a.status, "%s with %s", name, scope)
			assert.Equal(t, "FORBIDDEN", a.code(), name)
		}
		for _, token := range []string{
			"", "dbk_", "dbk_" + strings.Repeat("A", 43),
			strings.TrimPrefix(b.everything, "dbk_"), b.everything + "A", "x y",
		} {
			a := b.send(token, r.method, r.address(), nil)
			assert.Equal(t, http.StatusUnauthorized, a.status, "%s with token %q", name, token)
			assert.Equal(t, "UNAUTHORIZED", a.code(), name)
			assert.Equal(t, `Bearer realm="daybook"`, a.header.Get("WWW-Authenticate"), name)
		}
	}
}

func TestOtherSchemesAreNoTokens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for header, want := range map[string]int{
		"Basic " + b.everything: http.StatusUnauthorized, b.everything: http.StatusUnauthorized,
		"Bearer":                 http.StatusUnauthorized,
		"bearer " + b.everything: http.StatusOK, "BEARER  " + b.everything: http.StatusOK,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/api/jobs", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", header)
		assert.Equal(t, want, b.do(r).status, strings.ReplaceAll(header, b.everything, "…"))
	}
}

func TestRevokedTokensAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	token, secret, err := tokens.Create(t.Context(), b.Pool,
		tokens.NewToken{OrgID: "acme", Name: "test", Scopes: []tokens.Scope{tokens.ScopeRead}})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, b.send(secret, http.MethodGet, "/api/jobs", nil).status)
	first, _, err := tokens.Revoke(t.Context(), b.Pool, token.ID)
	require.NoError(t, err)
	assert.Equal(t, http.StatusUnauthorized, b.send(secret, http.MethodGet, "/api/jobs", nil).status)
	again, changed, err := tokens.Revoke(t.Context(), b.Pool, token.ID)
	require.NoError(t, err)
	assert.Equal(t, first.RevokedAt, again.RevokedAt)
	assert.False(t, changed)
	_, _, err = tokens.Revoke(t.Context(), b.Pool, "nothing")
	assert.ErrorIs(t, err, tokens.ErrNotFound)
}

func TestTokensAreHashedAndTheirUseIsNoted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	token, secret, err := tokens.Create(t.Context(), b.Pool,
		tokens.NewToken{OrgID: "acme", Name: "test", Scopes: []tokens.Scope{tokens.ScopeRead}})
	require.NoError(t, err)
	used := func() *time.Time {
		var at *time.Time
		require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT last_used_at FROM daybook.api_tokens WHERE id = $1`,
			token.ID).Scan(&at))
		return at
	}
	assert.Nil(t, used())
	var rows string
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`SELECT string_agg(t::text, '') FROM daybook.api_tokens t`).Scan(&rows))
	assert.NotContains(t, rows, strings.TrimPrefix(secret, tokens.Prefix))

	b.send(secret, http.MethodGet, "/api/jobs", nil)
	first := used()
	require.NotNil(t, first)
	b.send(secret, http.MethodGet, "/api/jobs", nil)
	assert.Equal(t, first, used(), "it is written once a minute at most")
	_, err = b.Pool.Exec(t.Context(),
		`UPDATE daybook.api_tokens SET last_used_at = last_used_at - interval '61 s' WHERE id = $1`, token.ID)
	require.NoError(t, err)
	b.send(secret, http.MethodGet, "/api/jobs", nil)
	assert.True(t, used().After(*first))
}

func TestTokensWantAScope(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, scopes := range [][]tokens.Scope{nil, {"admin"}} {
		_, _, err := tokens.Create(t.Context(), b.Pool, tokens.NewToken{Name: "test", Scopes: scopes})
		assert.ErrorIs(t, err, store.ErrInvalid)
	}
}
