package queuetest_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

func named(name string) func(queuetest.Job[greet]) bool {
	return func(j queuetest.Job[greet]) bool { return j.Payload.Name == name }
}

func TestRequireEnqueued(t *testing.T) {
	t.Parallel()
	b := setup(t)
	runAt := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	id := b.enqueue(b.Pool, greet{Name: "Ada"}, queue.JobOptions{
		IdempotencyKey: "ada", RunAt: runAt, Priority: queue.High, MaxAttempts: 7, Unique: true,
		Links: []queue.Link{{Kind: "user", ID: "u2"}, {Kind: "user", ID: "u1"}},
	})
	b.enqueue(b.Pool, greet{Name: "Bea"}, queue.JobOptions{})

	job := queuetest.RequireJobEnqueued(t, b.Pool, named("Ada"))

	assert.WithinDuration(t, runAt, job.ReadyAt, 0)
	job.ReadyAt = time.Time{}
	assert.Equal(t, queuetest.Job[greet]{
		ID: id, OrgID: org, Type: "greet", Payload: greet{Name: "Ada"}, IdempotencyKey: "ada", Priority: queue.High,
		MaxAttempts: 7,
		Unique:      true, State: models.JobPending,
		Links: []queue.Link{{Kind: "user", ID: "u1"}, {Kind: "user", ID: "u2"}},
	}, job)
	all := queuetest.EnqueuedJobs[greet](t, b.Pool)
	require.Len(t, all, 2)
	assert.Equal(t, "Bea", all[1].Payload.Name, "in the order in which they were enqueued")
	queuetest.RequireJobNotEnqueued(t, b.Pool, named("Eve"))
	queuetest.RequireJobNotEnqueued[part](t, b.Pool)
	assert.Len(t, queuetest.EnqueuedJobs[queue.RawPayload](t, b.Pool), 2, "every type")
}

// TestEnqueuedInATransaction looks from within the caller's transaction, and from outside.
func TestEnqueuedInATransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Tx(t, b.Pool, func(_ context.Context, tx pgx.Tx) {
		b.enqueue(tx, greet{Name: "Ada"}, queue.JobOptions{})
		queuetest.RequireJobEnqueued[greet](t, tx)
		queuetest.RequireJobNotEnqueued[greet](t, b.Pool)
	})
	queuetest.RequireJobEnqueued[greet](t, b.Pool)
}

func TestEnqueuedWithGORM(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sqlDB := stdlib.OpenDBFromPool(b.Pool)
	t.Cleanup(func() { assert.NoError(t, sqlDB.Close()) })
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: sqlDB}), &gorm.Config{Logger: logger.Discard})
	require.NoError(t, err)
	require.NoError(t, db.Transaction(func(tx *gorm.DB) error {
		b.enqueue(queue.GORM(tx), greet{Name: "Ada"}, queue.JobOptions{Links: []queue.Link{{Kind: "user", ID: "u1"}}})
		job := queuetest.RequireJobEnqueued(t, queue.GORM(tx), named("Ada"))
		assert.Equal(t, []queue.Link{{Kind: "user", ID: "u1"}}, job.Links)
		return nil
	}))
}

func TestRequireEnqueuedSaysWhatIsThere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Equal(t, "queuetest: want one job of type greet that matches, found 0; there are no jobs at all",
		failure(t, func(tb *failing) { queuetest.RequireJobEnqueued(tb, b.Pool, named("Ada")) }))

	b.enqueue(b.Pool, part{Name: "screw"},
		queue.JobOptions{IdempotencyKey: "screw-1", RunAt: time.Now().Add(90 * time.Minute)})
	b.enqueue(b.Pool, greet{Name: "Bea"}, queue.JobOptions{})
	message := failure(t, func(tb *failing) { queuetest.RequireJobEnqueued(tb, b.Pool, named("Ada")) })
	assert.Contains(t, message, "found 0; the jobs that are there:\n")
	assert.Contains(t, message, "part  org org_1  pending in 1h30m0s  key screw-1  {\"name\": \"screw\"}")
	assert.Contains(t, message, "greet  org org_1  pending  {\"name\": \"Bea\"}")

	b.enqueue(b.Pool, greet{Name: "Ada"}, queue.JobOptions{})
	assert.Contains(t, failure(t, func(tb *failing) { queuetest.RequireJobEnqueued[greet](tb, b.Pool) }),
		"want one job of type greet, found 2")
	assert.Contains(t, failure(t, func(tb *failing) { queuetest.RequireJobNotEnqueued(tb, b.Pool, named("Ada")) }),
		"want no job of type greet that matches, found 1")
}
