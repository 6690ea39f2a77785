package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/start"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.run("tokens", "create", "--name", "shop", "--scope", "read,enqueue", "--scope", "read", "--org", "acme",
		"--create")
	require.Zero(t, r.exit, r.err)
	secret := strings.TrimSpace(r.out)
	assert.True(t, strings.HasPrefix(secret, "dbk_"))
	assert.NotContains(t, r.err, secret, "what is data goes to the standard output alone")
	var created start.CreatedToken
	b.json(&created, "tokens", "create", "--name", "ops", "--scope", "operate", "--all-orgs")
	assert.Nil(t, created.OrgID)
	assert.Len(t, created.Secret, 47)

	var list struct{ Tokens []tokens.Token }
	b.json(&list, "tokens", "list")
	require.Len(t, list.Tokens, 2)
	assert.Equal(t, created.ID, list.Tokens[0].ID)
	b.json(&list, "tokens", "list", "--org", "acme")
	require.Len(t, list.Tokens, 1)
	assert.Equal(t, []tokens.Scope{tokens.ScopeRead, tokens.ScopeEnqueue}, list.Tokens[0].Scopes)
	assert.NotContains(t, b.ok("tokens", "list")+b.ok("tokens", "list", "--json"), secret)

	assert.Equal(t, "revoked "+created.ID+" (ops)\n", b.ok("tokens", "revoke", created.ID))
	r = b.run("tokens", "revoke", "nothing", "--json")
	assert.Equal(t, failure.ExitNotFound, r.exit)
	assert.Contains(t, r.err, "TOKEN_NOT_FOUND")
	for _, args := range [][]string{
		{"--name", "x", "--scope", "admin", "--all-orgs"},
		{"--name", "x", "--scope", "read"},
		{"--name", " ", "--scope", "read", "--all-orgs"},
		{"--name", "x", "--scope", "read", "--all-orgs", "--org", "acme"},
		{"--scope", "read", "--all-orgs"},
		{"--name", "x", "--all-orgs"},
	} {
		assert.Equal(t, failure.ExitUsage, b.run(append([]string{"tokens", "create"}, args...)...).exit, args)
	}
}

func TestTokensHaveEveryScope(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var all []string
	for _, scope := range tokens.Scopes() {
		all = append(all, string(scope))
	}
	var created start.CreatedToken
	b.json(&created, "tokens", "create", "--name", "t", "--scope", strings.Join(all, ","), "--all-orgs")
	assert.Len(t, created.Scopes, len(all))
}

// lines hands over what is logged, line by line.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	// whole is all that was logged.
	whole bytes.Buffer
	next  chan string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	l.whole.Write(p)
	for {
		line, err := l.text.ReadString('\n')
		if err != nil {
			l.text.WriteString(line)
			return len(p), nil
		}
		select {
		case l.next <- line:
		default:
		}
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	b := setup(t)
	secret := strings.TrimSpace(b.ok("tokens", "create", "--name", "shop", "--scope", "read,operate", "--all-orgs"))
	ctx, stop := context.WithCancel(t.Context())
	log := &lines{next: make(chan string, 100)}
	var out bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"--database-url", b.URL, "serve", "--listen", "127.0.0.1:0"}, strings.NewReader(""),
			&out, log)
	}()
	var begun struct{ Msg, Address string }
	select {
	case line := <-log.next:
		require.NoError(t, json.Unmarshal([]byte(line), &begun), line)
	case exit := <-ended:
		require.Fail(t, "it ended", "exit %d", exit)
	case <-time.After(time.Minute):
		require.Fail(t, "it does not serve")
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	send := func(method, path, token string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, begun.Address+path, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := client.Do(r)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(body)
	}
	for _, c := range []struct {
		method, path, token string
		status              int
	}{
		{http.MethodGet, "/readyz", "", http.StatusOK},
		{http.MethodGet, "/api/stats", secret, http.StatusOK},
		{http.MethodGet, "/api/stats", "dbk_x", http.StatusUnauthorized},
	} {
		status, body := send(c.method, c.path, c.token)
		assert.Equal(t, c.status, status, body)
	}
	b.background("nobody_works_this", "--org", "acme")
	status, body := send(http.MethodPost, "/api/jobs/run", secret)
	assert.Equal(t, http.StatusOK, status)
	assert.JSONEq(t, `{"processed":0,"completed":0,"retried":0,"rescheduled":0,"failed":0,"cancelled":0,"running":0}`,
		body, "it leaves a type that it has no handler for")
	r := b.run("serve", "--listen", strings.TrimPrefix(begun.Address, "http://"))
	assert.Equal(t, failure.ExitConflict, r.exit, r.err)
	client.CloseIdleConnections()
	stop()
	assert.Equal(t, failure.ExitOK, <-ended)
	assert.Empty(t, out.String())
}

func TestServeRefusesAddressesThatOthersReach(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{":8080", "0.0.0.0:8080", "[::]:8080", "192.0.2.1:80"} {
		r := call(t.Context(), "", "serve", "--listen", listen)
		assert.Equal(t, failure.ExitUsage, r.exit, listen)
		assert.Contains(t, r.err, "--expose", listen)
	}
	assert.Equal(t, failure.ExitUsage, call(t.Context(), "", "serve", "--listen", "8080").exit)
}
