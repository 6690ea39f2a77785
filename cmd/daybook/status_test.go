package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/look"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
)

// firstLine is what a command says first.
func firstLine(out string) string {
	line, _, _ := strings.Cut(out, "\n")
	return line
}

// TestStatusSaysWhetherWorkGetsDone: with the workflow never started, the worker dead, or Temporal
// unavailable.
func TestStatusSaysWhetherWorkGetsDone(t *testing.T) {
	server := temporaltest.Shared(t)
	inNamespace(t, server, server.Namespace(t))
	b := setup(t)
	_, err := b.Pool.Exec(t.Context(),
		`INSERT INTO daybook.jobs (id, org_id, type, payload) VALUES ('j', 'acme', 'mail', '{}')`)
	require.NoError(t, err)
	assert.Equal(t, "Nothing is worked: the workflow of jobs (job-queue-worker-production) was never started. Start "+
		"it: `daybook workflow start --kind jobs`.", firstLine(b.ok("status")))
	require.Zero(t, call(t.Context(), "", "workflow", "start", "jobs").exit)
	assert.Contains(t, firstLine(b.ok("status")),
		"Nothing is worked: no worker polls job-queue yet: the workflow was started ")
	var s look.ShownStatus
	b.json(&s, "status")
	assert.False(t, s.Working)
	assert.NotEmpty(t, s.Findings)
	assert.EqualValues(t, 1, s.Queues[1].Due)
	assert.Contains(t, firstLine(b.ok("status", "--no-temporal")), "(Temporal was not asked)")

	t.Setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
	assert.Contains(t, firstLine(b.ok("status")), "Nothing is worked: Temporal at 127.0.0.1:1 does not answer")
}

func TestStatusWhereTemporalIsNotNamed(t *testing.T) {
	t.Setenv("TEMPORAL_ADDRESS", "")
	t.Setenv("TEMPORAL_NAMESPACE", "no-such-namespace-anywhere")
	t.Setenv("TEMPORAL_CONFIG_FILE", os.DevNull)
	assert.Contains(t, firstLine(setup(t).ok("status")), "(Temporal was not asked)")
}

// TestLockedSchemaTable: a session that has locked the table of migrations keeps no command waiting
// for long; it is named.
func TestLockedSchemaTable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { assert.NoError(t, tx.Rollback(context.WithoutCancel(t.Context()))) }()
	_, err = tx.Exec(t.Context(), `LOCK TABLE daybook.schema_migrations IN ACCESS EXCLUSIVE MODE`)
	require.NoError(t, err)
	for _, args := range [][]string{{"status", "--no-temporal"}, {"jobs", "list"}, {"migrate", "status"}} {
		r := b.run(args...)
		assert.Equal(t, failure.ExitUnavailable, r.exit, args)
		assert.Contains(t, r.err, "has locked daybook.schema_migrations", args)
	}
	r := b.run("doctor", "--no-temporal")
	assert.Equal(t, failure.ExitWarnings, r.exit)
	assert.Contains(t, r.out, "has locked daybook.schema_migrations")
}

// A table that another transaction has locked keeps the jobs from being counted, and the status
// from nothing else.
func TestStatusOfALockedTable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	_, err = tx.Exec(t.Context(), `LOCK TABLE daybook.jobs`)
	require.NoError(t, err)
	r := b.run("status", "--no-temporal")
	assert.Equal(t, failure.ExitUnavailable, r.exit)
	assert.Contains(t, firstLine(r.out), "has locked daybook.jobs")
	assert.NotContains(t, r.out, "nothing waits")
	assert.Contains(t, r.err, "the jobs cannot be counted while another transaction has locked a table")
}

// TestStatusWatch: it is shown again and again, says what cannot be read, and a signal ends it
// without a failure.
func TestStatusWatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &counting{stop: stop}
	exit := run(ctx, []string{"--database-url", b.URL, "status", "--no-temporal", "--json", "--watch", "0.1"},
		strings.NewReader(""), out, &bytes.Buffer{})
	assert.Equal(t, failure.ExitOK, exit)
	decoder := json.NewDecoder(&out.all)
	shown := 0
	for ; decoder.More(); shown++ {
		var s look.ShownStatus
		require.NoError(t, decoder.Decode(&s))
		assert.Len(t, s.Queues, 3)
	}
	assert.Equal(t, 2, shown)
	for _, args := range [][]string{
		{"status", "--watch=never"},
		{"status", "--watch", "0"},
		{"status", "--watch", "1", "2"},
		{"status", "1"},
	} {
		assert.Equal(t, failure.ExitUsage, b.run(args...).exit, "%v", args)
	}
}

// counting ends what writes to it with the second status.
type counting struct {
	all  bytes.Buffer
	n    int
	stop func()
}

func (c *counting) Write(p []byte) (int, error) {
	if c.n++; c.n == 2 {
		defer c.stop()
	}
	return c.all.Write(p)
}
