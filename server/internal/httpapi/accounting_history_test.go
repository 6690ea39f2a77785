package httpapi_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/answers"
)

// TestHistoryOfADocumentComesInPages reads a history of 250 attempts, the newest first.
func TestHistoryOfADocumentComesInPages(t *testing.T) {
	t.Parallel()
	b := posted(t)
	_, err := b.Pool.Exec(t.Context(), `
UPDATE daybook.accounting_work_queue SET updated_at = clock_timestamp(); -- what completed the documents goes to the log
DELETE FROM daybook.attempt_log;
INSERT INTO daybook.attempt_log (job_id, org_id, document_id, version, attempt, outcome, error_code, started_at, turn_id, fence, times, first_started_at)
SELECT id, org_id, document_id, 1, n, 'rescheduled', 'DOCUMENT_NOT_READY', '2026-03-14 12:00Z', 't', 1, 96, '2026-03-13 12:00Z'
  FROM daybook.accounting_work_queue, generate_series(1, 250) n WHERE org_id = 'acme' AND document_id = 'a/1'`)
	require.NoError(t, err)
	var numbers []int
	for cursor, pages := "", 0; ; pages++ {
		var job struct {
			History    []answers.Attempt
			NextCursor string
		}
		b.get(&job, "/api/accounting/jobs/a%2F1?orgId=acme&limit=100&cursor="+url.QueryEscape(cursor))
		for _, a := range job.History {
			numbers = append(numbers, a.Number)
			assert.Equal(t, 96, a.Times)
			assert.Equal(t, 13, a.FirstStartedAt.In(time.UTC).Day())
		}
		if cursor = job.NextCursor; cursor == "" {
			assert.Equal(t, 2, pages)
			break
		}
	}
	require.Len(t, numbers, 250)
	assert.Equal(t, 250, numbers[0])
	assert.Equal(t, 1, numbers[249])
}
