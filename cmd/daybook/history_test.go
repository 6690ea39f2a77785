package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/work"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
)

// TestLongHistoriesComeInPages reads the history of a job that has been tried more often than a
// page has lines.
func TestLongHistoriesComeInPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	fixture.Ready(t, b.Pool, fixture.Invoice("acme", "sale", 1000))
	_, err := b.Pool.Exec(t.Context(), `
INSERT INTO daybook.attempt_log (job_id, org_id, document_id, version, attempt, outcome, error_code, started_at, turn_id, fence, times, first_started_at)
SELECT id, org_id, document_id, 1, n, 'rescheduled', 'DOCUMENT_NOT_READY', '2026-03-14 12:00Z', 't', 1, 96, '2026-03-13 12:00Z'
  FROM daybook.accounting_work_queue, generate_series(1, 250) n`)
	require.NoError(t, err)

	var numbers []int
	next, pages := "", 0
	for more := true; more; pages++ {
		var d work.ShownAccountingJob
		b.json(&d, "accounting", "show", "acme", "sale", "--cursor", next)
		for _, a := range d.History {
			numbers = append(numbers, a.Number)
		}
		next, more = d.NextCursor, d.NextCursor != ""
	}
	assert.Equal(t, 3, pages)
	require.Len(t, numbers, 250)
	for i, n := range numbers {
		assert.Equal(t, 250-i, n, "the newest first")
	}

	out := b.ok("accounting", "show", "acme", "sale", "--limit", "1")
	assert.Contains(t, out, "rescheduled 96 times since 2026-03-13")
	assert.Contains(t, out, "--cursor ")
	assert.Equal(t, failure.ExitUsage, b.run("accounting", "show", "acme", "sale", "--limit", "0").exit)

	var e answers.Explanation
	b.json(&e, "explain", "acme", "sale")
	assert.Len(t, e.History, store.DefaultLimit)
	assert.NotEmpty(t, e.NextCursor)
	assert.Contains(t, b.ok("explain", "acme", "sale"), "daybook accounting show acme sale --cursor ")
}

// TestListsComeInPages reads lists page by page, and finds each row once.
func TestListsComeInPages(t *testing.T) {
	t.Parallel()
	b := posted(t)
	for _, org := range []string{"p", "q", "r"} {
		b.ok("accounting", "enqueue", "--create", org, "later", "--version", "1", "--ready-at", "2999-01-01T00:00:00Z")
	}
	for _, list := range []struct {
		rows string
		args []string
	}{
		{"jobs", []string{"accounting", "list"}},
		{"jobs", []string{"accounting", "list", "--state", "failed"}},
		{"entries", []string{"entries", "--org", "de"}},
		{"actions", []string{"actions", "list"}},
		{"organizations", []string{"organizations", "list"}},
	} {
		t.Run(strings.Join(list.args, " "), func(t *testing.T) {
			t.Parallel()
			b := &bundle{b.DB, t}
			var whole map[string]any
			b.json(&whole, list.args...)
			require.NotEmpty(t, whole[list.rows])
			require.NotContains(t, whole, "nextCursor")
			var got []any
			for next, more := "", true; more; {
				var page map[string]any
				b.json(&page, append(list.args, "--limit", "2", "--cursor", next)...)
				rows, _ := page[list.rows].([]any)
				require.LessOrEqual(t, len(rows), 2)
				got = append(got, rows...)
				next, more = page["nextCursor"].(string)
			}
			assert.Equal(t, whole[list.rows], got)
			r := b.run(append(list.args, "--cursor", "odd")...)
			assert.Equal(t, failure.ExitUsage, r.exit, r.err)
		})
	}
}
