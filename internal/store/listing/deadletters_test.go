package listing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/models"
)

func TestDeadLettersAreGrouped(t *testing.T) {
	t.Parallel()
	b := setupJobs(t)
	empty, err := b.listing.DeadLetters(t.Context(), "", true)
	require.NoError(t, err)
	assert.Empty(t, empty.Groups)

	newest := map[string]string{}
	for i := range 24 {
		org, kind, code := []string{"o", "p"}[i%2], []string{"mail", "sms"}[i/2%2],
			[]models.ErrorCode{models.CodeTimeout, models.CodeNotFound, "OWN"}[i%3]
		id := b.enqueue(store.NewJob{OrgID: org, Type: kind, Payload: fmt.Appendf(nil, `{"n": %d}`, i)})
		b.fail(id, code, time.Duration(100-i)*time.Minute)
		newest[kind+string(code)] = id
	}
	b.enqueue(store.NewJob{OrgID: "o", Type: "mail", Payload: []byte(`{}`)})
	for _, org := range []string{"o", "p"} {
		fixture.Organization(t, b.Pool, org)
		fixture.ManyReady(t, b.Pool, org, "inv-", 3)
	}
	b.exec(`
UPDATE daybook.accounting_work_queue SET state = 'failed', finished_at = clock_timestamp(), updated_at = clock_timestamp(), last_error = 'e', last_error_code = 'UNBALANCED'
 WHERE org_id = 'o' OR document_id = 'inv-1'`)
	b.exec(`SELECT queues.enqueue('email', '{}', now() - interval '1 hour')`)

	groups, err := b.listing.DeadLetters(t.Context(), "", true)
	require.NoError(t, err)
	require.Len(t, groups.Groups, 6+1+1)
	var jobs, accounting, tasks int64
	for i, g := range groups.Groups {
		assert.True(t, i == 0 || groups.Groups[i-1].Count >= g.Count, "the largest first")
		assert.False(t, g.AtLeast)
		switch g.Kind {
		case "jobs":
			jobs += g.Count
			assert.Equal(t, newest[g.Type+string(g.Code)], g.ID, "the newest is the example")
			assert.Equal(t, "e", g.Error)
			assert.True(t, g.First.Before(g.Last))
		case "accounting":
			accounting += g.Count
			assert.Equal(t, models.CodeUnbalanced, g.Code)
		case "tasks":
			tasks += g.Count
			assert.Contains(t, g.Reason, "no worker has leased it")
		}
	}
	assert.Equal(t, []int64{24, 4, 1}, []int64{jobs, accounting, tasks})

	groups, err = b.listing.DeadLetters(t.Context(), "p", false)
	require.NoError(t, err)
	var n int64
	for _, g := range groups.Groups {
		assert.Equal(t, "p", g.OrgID)
		n += g.Count
	}
	assert.Equal(t, int64(12+1), n)
	assert.Nil(t, groups.Since)

	b.listing.SetScan(5)
	groups, err = b.listing.DeadLetters(t.Context(), "p", false)
	require.NoError(t, err)
	require.NotNil(t, groups.Since, "it says that it has not read all")
}

func TestBulkRetryOfAccountingJobs(t *testing.T) {
	t.Parallel()
	b := setupJobs(t)
	for _, org := range []string{"o", "p"} {
		fixture.Organization(t, b.Pool, org)
		fixture.ManyReady(t, b.Pool, org, "inv-", 4)
	}
	b.exec(`
UPDATE daybook.accounting_work_queue SET state = 'failed', run_count = 6, finished_at = clock_timestamp(), updated_at = clock_timestamp(), last_error = 'e',
       last_error_code = CASE document_id WHEN 'inv-1' THEN 'TIMEOUT' ELSE 'UNBALANCED' END
 WHERE document_id <> 'inv-4'`)
	f := listing.AccountingJobFilter{OrgID: "o", Code: models.CodeUnbalanced}
	op, err := b.listing.StartAccountingRetry(t.Context(), f, 0, true)
	require.NoError(t, err)
	assert.Equal(t, 2, op.Matched)
	assert.Empty(t, op.ID, "a dry run changes nothing")

	op, err = b.listing.StartAccountingRetry(t.Context(), f, time.Hour, false)
	require.NoError(t, err)
	require.NoError(t, store.RunBulk(t.Context(), b.Pool, op.ID))
	op, err = b.listing.BulkOperation(t.Context(), "o", op.ID)
	require.NoError(t, err)
	assert.Equal(t, []int{2, 2, 0}, []int{op.Matched, op.Changed, op.LeftAlone})
	assert.Equal(t, models.KindAccounting, op.Kind)
	assert.NotNil(t, op.FinishedAt)
	job := fixture.Job(t, b.Pool, "o", "inv-2")
	assert.Equal(t, models.JobPending, job.State)
	assert.Zero(t, job.RunCount)
	assert.True(t, job.ReadyAt.After(time.Now().Add(50*time.Minute)))
	assert.Equal(t, models.JobFailed, fixture.Job(t, b.Pool, "o", "inv-1").State)
	assert.Equal(t, models.JobFailed, fixture.Job(t, b.Pool, "p", "inv-2").State)
}
