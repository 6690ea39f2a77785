package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/queue"
)

// everythingOfJobs makes one request of each kind about background jobs: three jobs are left.
func everythingOfJobs(ctx context.Context, q queue.Querier) error {
	o := queue.JobOptions{
		IdempotencyKey: `ä "quoted", {braced} \ \'`, RunAt: time.Now().Add(hour), Priority: queue.High, MaxAttempts: 2,
		Unique: true,
		Links:  []queue.Link{{`k "quoted"`, `i {braced} \ '`}},
	}
	p := welcome{UserID: `ä "quoted", {braced} \ \'`, Note: "a\nb\tc€😀 NULL"}
	one, err := queue.EnqueueJob(ctx, q, org, p, o)
	if err != nil {
		return err
	}
	plain := queue.RawPayload{Type: "t", Data: json.RawMessage(`{"null": null, "n": 1.50, "l": ["a,b", "{}"]}`)}
	// Twice, so that a prepared statement is used again and no rows are left open.
	for range 2 {
		rs, err := queue.EnqueueJobs(ctx, q, []queue.NewJob{
			{OrgID: org, Payload: plain, Options: queue.JobOptions{IdempotencyKey: "plain"}},
			{OrgID: org, Payload: p, Options: o},
			{
				OrgID: org, Payload: queue.RawPayload{Type: "NULL"},
				Options: queue.JobOptions{Unique: true, Priority: queue.Low},
			},
		})
		if err != nil {
			return err
		}
		if len(rs) != 3 || !rs[1].Duplicate || rs[1].ID != one.ID || rs[0].ID == rs[2].ID {
			return errors.New("not one answer for each job")
		}
	}
	if _, err := queue.RetryJob(ctx, q, one.ID,
		queue.RetryOptions{Mode: queue.RetryLater, Delay: time.Minute}); err != nil {
		return err
	}
	_, err = queue.CancelJob(ctx, q, one.ID)
	return err
}

func TestRequestsForJobsFollowTheCallersTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, tx := range transactions(b) {
		err := tx(t.Context(), func(q queue.Querier) error {
			return errors.Join(everythingOfJobs(t.Context(), q),
				errRollback)
		})
		require.ErrorIs(t, err, errRollback, name)
		require.EqualError(t, err, errRollback.Error(), name)
		require.Zero(t, b.queuedJobs(), "%s: jobs after the rollback", name)

		require.NoError(t, tx(t.Context(), func(q queue.Querier) error { return everythingOfJobs(t.Context(), q) }), name)
		require.Equal(t, 3, b.queuedJobs(), "%s: jobs after the commit", name)
		require.Equal(t, 1, fixture.Count(t, b.Pool, `
SELECT count(*) FROM daybook.jobs j JOIN daybook.job_links l ON l.job_id = j.id
 WHERE idempotency_key = $1 AND payload = jsonb_build_object('user_id', $1::text, 'note', $2::text) AND l.kind = 'k "quoted"' AND l.id = $3 AND state = 'cancelled'`,
			`ä "quoted", {braced} \ \'`, "a\nb\tc€😀 NULL", `i {braced} \ '`), name)
		require.Equal(t, 1, fixture.Count(t, b.Pool,
			`SELECT count(*) FROM daybook.jobs WHERE payload::text = '{"l": ["a,b", "{}"], "n": 1.50, "null": null}'`), name)
		b.exec(`DELETE FROM daybook.jobs`)
	}
}

func TestJobsWithoutATransactionCommitByThemselves(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, q := range handles(t, b) {
		require.NoError(t, everythingOfJobs(t.Context(), q), name)
		require.Equal(t, 3, b.queuedJobs(), name)
		b.exec(`DELETE FROM daybook.jobs`)
	}
	q := queue.GORM(b.gormDB(gorm.Config{}))
	_, err := queue.EnqueueJob(t.Context(), q, org, welcome{}, queue.JobOptions{})
	require.ErrorIs(t, err, queue.ErrNoTransaction)
	_, err = queue.EnqueueJobs(t.Context(), q, []queue.NewJob{{OrgID: org, Payload: welcome{}}})
	require.ErrorIs(t, err, queue.ErrNoTransaction)
	assert.Zero(t, b.queuedJobs())
}

func TestEachWayToSendAStatementAboutJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		config, err := pgx.ParseConfig(b.URL)
		require.NoError(t, err)
		config.DefaultQueryExecMode = mode
		conn, err := pgx.ConnectConfig(t.Context(), config)
		require.NoError(t, err)
		tx, err := conn.Begin(t.Context())
		require.NoError(t, err)
		assert.NoError(t, everythingOfJobs(t.Context(), tx), mode.String())
		require.NoError(t, tx.Rollback(t.Context()))
		require.NoError(t, conn.Close(t.Context()))
	}
}
