package jobs_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// TestInTxThatTheCommitRefuses: a constraint that is checked at the commit refuses what the handler
// has written. COMMIT was sent together with the completion, which succeeded: nothing of it is
// kept, and the attempt says why.
func TestInTxThatTheCommitRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE people (name text PRIMARY KEY)`)
	b.exec(`CREATE TABLE greeted (name text REFERENCES people DEFERRABLE INITIALLY DEFERRED)`)
	jobs.Register(b.registry, jobs.Policy{Base: 10 * time.Minute}, func(_ context.Context, job *jobs.Job[greet]) error {
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO greeted VALUES ($1)`, job.Payload.Name)
			return err
		})
		return nil
	})
	b.exec(`INSERT INTO people VALUES ('Ada')`)
	ada := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
	stranger := b.enqueue(greet{Name: "Stranger"}, queue.JobOptions{})
	r := b.work()
	assert.Equal(t, 1, r.Completed)
	assert.Equal(t, 1, r.Retried)
	assert.Equal(t, "completed", b.outcomes(ada))
	assert.Equal(t, "retried", b.outcomes(stranger))
	j := b.row(stranger)
	assert.Equal(t, models.JobPending, j.State)
	assert.Equal(t, string(models.CodeDatabaseError), j.Code)
	assert.Contains(t, j.Error, "greeted_name_fkey")
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM greeted`))
}
