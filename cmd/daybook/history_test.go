package main

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/failure"
	"github.com/daybook-dev/daybook/internal/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
)

// TestLongHistoriesComeInPages reads the history of a job that has been tried more often than a page has lines.
func TestLongHistoriesComeInPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	fixture.Ready(t, b.Pool, fixture.Invoice("acme", "sale", 1000))
	_, err := b.Pool.Exec(t.Context(), `
INSERT INTO daybook.attempts (job_id, org_id, document_id, version, attempt, outcome, error_code, started_at, turn_id, fence, times, first_started_at)
SELECT id, org_id, document_id, 1, n, 'rescheduled', 'DOCUMENT_NOT_READY', '2026-03-14 12:00Z', 't', 1, 96, '2026-03-13 12:00Z'
  FROM daybook.accounting_work_queue, generate_series(1, 250) n`)
	require.NoError(t, err)

	var numbers []int
	before, pages := int64(0), 0
	for more := true; more; pages++ {
		var d accountingJobDetails
		b.json(&d, "accounting", "show", "acme", "sale", "--before", strconv.FormatInt(before, 10))
		for _, a := range d.Attempts {
			numbers = append(numbers, a.Attempt)
		}
		before, more = d.Older, d.Older > 0
	}
	assert.Equal(t, 3, pages)
	require.Len(t, numbers, 250)
	for i, n := range numbers {
		assert.Equal(t, 250-i, n, "the newest first")
	}

	out := b.ok("accounting", "show", "acme", "sale", "--limit", "1")
	assert.Contains(t, out, "rescheduled 96 times since 2026-03-13")
	assert.Contains(t, out, "--before ")
	assert.Equal(t, failure.ExitUsage, b.run("accounting", "show", "acme", "sale", "--limit", "0").exit)

	var e listing.Explanation
	b.json(&e, "explain", "acme", "sale")
	assert.Len(t, e.Attempts, store.DefaultLimit)
	assert.True(t, e.MoreAttempts)
	assert.Contains(t, b.ok("explain", "acme", "sale"), "daybook accounting show acme sale --before ")
}
