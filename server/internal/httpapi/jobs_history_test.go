package httpapi_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/answers"
)

// The history of a background job comes in pages, the newest attempt first, however long it is: an
// answer is never large.
func TestHistoryOfAJobComesInPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.enqueue(nil)
	const all = 20_000
	_, err := b.Pool.Exec(t.Context(), `
INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, attempt, outcome, error_code, error, started_at, turn_id, fence)
SELECT $1, 'acme', 'jobs', 'webhook', n, 'retried', 'TIMEOUT', 'too slow', now(), 't', 1 FROM generate_series(1, $2::int) n`, id, all)
	require.NoError(t, err)
	type page struct {
		History      []answers.Attempt
		HistoryCount int
		NextCursor   string
	}
	a := b.send(b.everything, "GET", "/api/jobs/"+id, nil)
	assert.Less(t, len(a.body), 64<<10)
	next := all
	for cursor, pages := "", 0; pages < 3; pages++ {
		var p page
		b.get(&p, "/api/jobs/"+id+"?limit=1000&cursor="+url.QueryEscape(cursor))
		require.Len(t, p.History, 1000)
		assert.Equal(t, all, p.HistoryCount)
		for _, at := range p.History {
			require.Equal(t, next, at.Number)
			next--
		}
		cursor = p.NextCursor
		require.NotEmpty(t, cursor)
	}
	_, err = b.Pool.Exec(t.Context(), `DELETE FROM daybook.attempt_log WHERE attempt > 5`)
	require.NoError(t, err)
	var last page
	b.get(&last, "/api/jobs/"+id)
	assert.Len(t, last.History, 5)
	assert.Empty(t, last.NextCursor)
}
