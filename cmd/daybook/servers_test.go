package main

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

// beside has the address of the test's database name another server as well, which takes
// connections and answers none.
func (b *bundle) beside(first bool) (silent string) {
	silent = pgtest.Silent(b.t, b.URL)
	if first {
		b.URL = pgtest.Servers(b.t, silent, b.URL)
	} else {
		b.URL = pgtest.Servers(b.t, b.URL, silent)
	}
	return silent
}

// atOnce runs a command that has no time to wait for a server that does not answer.
func (b *bundle) atOnce(args ...string) result {
	b.t.Helper()
	began := time.Now()
	r := b.run(args...)
	assert.Less(b.t, time.Since(began), 20*time.Second, "%v", args)
	return r
}

// TestServerStandsStill: one server of an address takes connections and answers none; commands
// reach the other one.
func TestServerStandsStill(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprintf("first=%t", first), func(t *testing.T) {
			t.Parallel()
			b := &bundle{pgtest.NewEmpty(t), t}
			b.beside(first)
			for _, args := range [][]string{{"migrate", "up", "--roles"}, {"migrate", "status"}, {"status"}} {
				r := b.atOnce(args...)
				assert.Equal(t, failure.ExitOK, r.exit, "%v: %s", args, r.err)
			}
			assert.Empty(t, b.findings(health.DatabaseUnavailable))
			assert.Contains(t, b.run("doctor", "--no-temporal").out, "no answer in time")
		})
	}
}

// TestNoServerAnswers: what is wrong is said of each server, soon.
func TestNoServerAnswers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.URL = pgtest.Silent(t, b.URL)
	b.beside(true)
	for _, args := range [][]string{{"status"}, {"migrate", "up"}} {
		r := b.atOnce(args...)
		assert.Equal(t, failure.ExitUnavailable, r.exit, r.err)
		assert.Regexp(t, `no server of the database's address can be used: 127\.0\.0\.1:\d+: no answer in time; 127\.0\.0\.1:\d+: no answer in time`,
			r.err)
	}
	assert.NotEmpty(t, b.findings(health.DatabaseUnavailable))
}

// TestWorkerBesideASilentServer: the worker works and listens, and names the server that does not
// answer.
func TestWorkerBesideASilentServer(t *testing.T) {
	server := temporaltest.Shared(t)
	namespace := server.Namespace(t)
	inNamespace(t, server, namespace)
	b := setup(t)
	silent := b.beside(true)
	began := time.Now()
	r := worksSample(t, b, server, namespace, "--database-direct-url", b.URL)
	assert.Less(t, time.Since(began), time.Minute)
	assert.NotContains(t, r.err, "no connection on which work is announced")
	address, err := url.Parse(silent)
	require.NoError(t, err)
	assert.Contains(t, r.err, `does not answer; the others are used","server":"`+address.Host+`"`)
}
