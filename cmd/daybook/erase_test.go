package main

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/server"
)

// TestErasureFindsRequestsForALink: a request for all jobs of a person, by the command line, the API or
// the console, leaves the person's id in the log of actions. An erasure takes it out, and leaves what
// was asked for of another person.
func TestErasureFindsRequestsForALink(t *testing.T) {
	t.Parallel()
	const ada, other = `ada, "the [first]"=1`, "grace"
	b := setup(t)
	for _, id := range []string{ada, other} {
		b.deadLetter(b.background("webhook", "--org", "acme", "--link", "customer="+id, "--skip-validation"), "TIMEOUT")
	}
	s, err := server.New(t.Context(), server.Options{Pool: b.Pool, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	serving := httptest.NewServer(s)
	defer serving.Close()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	client := &http.Client{Jar: jar, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	secret := strings.TrimSpace(b.ok("tokens", "create", "--name", "ops", "--scope", "read,operate", "--all-orgs"))
	send := func(path, contentType, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, serving.URL+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		if strings.HasPrefix(path, "/api/") {
			r.Header.Set("Authorization", "Bearer "+secret)
		}
		answer, err := client.Do(r)
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		said, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, answer.StatusCode, "%s: %s", path, said)
	}
	form := func(path string, values url.Values) {
		t.Helper()
		send(path, "application/x-www-form-urlencoded", values.Encode())
	}

	form("/console/sign-in", url.Values{"token": {secret}})
	for _, id := range []string{ada, other} {
		b.ok("jobs", "retry", "--all", "--org", "acme", "--link", "customer="+id)
		for _, kind := range []string{"customer", ""} {
			body, err := json.Marshal(map[string]any{"all": true, "mode": "now", "filter": map[string]any{"linkKind": kind, "linkId": id}})
			require.NoError(t, err)
			send("/api/jobs/retry", "application/json", string(body))
			form("/console/dead-letters/retry", url.Values{"kind": {"jobs"}, "mode": {"now"}, "linkKind": {kind}, "linkId": {id}})
		}
	}
	naming := func(id string) int {
		return fixture.Count(t, b.Pool, `
SELECT count(*) FROM daybook.actions a
 WHERE EXISTS (SELECT FROM jsonb_path_query(a.details, 'strict $.** ? (@.type() == "string")') AS x WHERE strpos(x #>> '{}', $1) > 0)`, id)
	}
	require.Equal(t, 5, naming(ada), "the log says what was asked for")
	b.ok("erase", "--org", "acme", "--link", "customer="+ada)
	assert.Zero(t, naming(ada))
	assert.Equal(t, 5, naming(other))
}
