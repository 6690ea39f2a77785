package workers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workers"
)

// follow enqueues a job for each document that is posted, and fails for one of them.
func follow(ctx context.Context, tx pgx.Tx, posted []accounting.Posted) error {
	for _, p := range posted {
		payload := queue.RawPayload{Type: "follow", Data: []byte(`{"document": "` + p.Impact.DocumentID + `"}`)}
		if _, err := queue.EnqueueJob(ctx, tx, p.Impact.OrgID, payload,
			queue.JobOptions{IdempotencyKey: "follow/" + p.Impact.DocumentID}); err != nil {
			return err
		}
		if p.Impact.DocumentID == "inv-7" {
			return errors.New("no luck")
		}
	}
	return nil
}

// TestAfterPosting has a job follow each booking, of all but the one that it refuses.
func TestAfterPosting(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.set_hooks('` + org + `', '{follow}')`)
	b.start(workers.AccountingOptions{Hooks: accounting.Hooks{"follow": follow}})
	fixture.ManyReady(t, b.Pool, org, "inv-", 500)

	counts := b.drainOnce()

	assert.EqualValues(t, 499, counts.Completed)
	assert.Len(t, queuetest.EnqueuedJobs[queue.RawPayload](t, b.Pool), 499)
	assert.Equal(t, 499, fixture.Count(t, b.Pool, `
SELECT count(*) FROM daybook.impacts i JOIN daybook.jobs j ON j.idempotency_key = 'follow/' || i.document_id`))
	job := fixture.Job(t, b.Pool, org, "inv-7")
	require.NotNil(t, job.LastErrorCode)
	assert.Equal(t, models.CodeProcessorError, *job.LastErrorCode)
	assert.WithinDuration(t, time.Now().Add(5*time.Minute), job.ReadyAt, time.Minute)
}

// TestAfterPostingIsTheLedgers refuses it where another processor takes the ledger's place.
func TestAfterPostingIsTheLedgers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := workers.NewAccounting(workers.AccountingOptions{
		Client: b.client, Pool: b.Pool, JobProcessor: reports{},
		Hooks: accounting.Hooks{"follow": follow},
	})
	assert.ErrorContains(t, err, "Hooks are for Daybook's ledger")
}
