package queue_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

const keepStmt = `SELECT daybook.keep_step($1, $2, $3, $4)`

// notKept is the SQLSTATE and the detail of a step that is refused.
func (b *bundle) notKept(query string, args ...any) string {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), query, args...)
	e, ok := errors.AsType[*pgconn.PgError](err)
	require.True(b.t, ok, "%v", err)
	return e.Code + e.Detail
}

func (b *bundle) keep(job claimed, name, result string) {
	b.t.Helper()
	b.exec(keepStmt, job.JobID, job.Fence, name, result)
}

// Steps are kept under the fence of the claim, once, each round of a loop after the one before it.
func TestClaimKeepsSteps(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.start_job_worker('a', '{w}')`)
	id := b.enqueued(org, queue.JobOptions{})
	first := b.claims("a", 1)[0]
	b.keep(first, "upload", `{"file": 1}`)
	assert.Equal(t, "DB031", b.notKept(keepStmt, id, first.Fence, "upload", `2`), "it is kept already")
	assert.Equal(t, "DB031", b.notKept(keepStmt, id, first.Fence+1, "send", `2`), "another's claim")
	const loop = `SELECT daybook.keep_step($1, $2, 'rows', $3, done => $4, round => $5, again => $6)`
	b.exec(loop, id, first.Fence, `100`, false, 1, false)
	assert.Equal(t, "DB031", b.notKept(loop, id, first.Fence, `300`, false, 3, false), "the second round is not kept")
	b.exec(loop, id, first.Fence, `200`, false, 2, true)
	b.exec(loop, id, first.Fence, `200`, false, 2, true) // its answer was lost
	assert.True(t, b.asks(`daybook.fail_job($1, $2, 'X', 'x', interval '0') = 'pending'`, id, first.Fence))

	second := b.claims("a", 1)[0]
	assert.True(t, b.asks(`(SELECT awaited FROM daybook.jobs WHERE id = $1)`, id))
	assert.Equal(t, "DB031", b.notKept(keepStmt, id, first.Fence, "send", `1`), "the first claim is lost")
	assert.Equal(t, "DB031", b.notKept(loop, id, second.Fence, `200`, false, 2, true), "the attempt before has kept it")
	b.exec(loop, id, second.Fence, `250`, true, 3, false)
	b.exec(`SELECT daybook.complete_job($1, $2)`, id, second.Fence)
	assert.Equal(t, "DB031", b.notKept(keepStmt, id, second.Fence, "send", `1`), "it is completed")
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.job_steps WHERE name = 'upload' AND attempt = 1 AND done`))
	assert.Equal(t, 1, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.job_steps WHERE name = 'rows' AND attempt = 2 AND times = 3 AND done AND result = '250'`))
}

// A claim says how many steps there are, and keeps no more, and no larger ones, than Go does.
func TestClaimBoundsSteps(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.start_job_worker('a', '{w}')`)
	b.enqueued(org, queue.JobOptions{})
	job := b.claims("a", 1)[0]
	assert.Equal(t, "DB010STEP_INVALID", b.notKept(keepStmt, job.JobID, job.Fence, "", `1`))
	assert.Equal(t, "DB010STEP_INVALID", b.notKept(keepStmt, job.JobID, job.Fence, fmt.Sprintf("%065d", 1), `1`))
	const sized = `SELECT daybook.keep_step($1, $2, $3, to_jsonb(repeat('x', $4)), round => $5)`
	assert.Equal(t, "DB010STEP_NOT_STORED", b.notKept(sized, job.JobID, job.Fence, "big", models.MaxStepBytes-1, 1))
	for i := range models.MaxStepsBytes / models.MaxStepBytes {
		b.exec(sized, job.JobID, job.Fence, fmt.Sprint("step ", i), models.MaxStepBytes-2, 1)
	}
	assert.Equal(t, "DB010STEP_NOT_STORED", b.notKept(keepStmt, job.JobID, job.Fence, "one more", `1`))
	b.exec(`DELETE FROM daybook.job_steps`)
	b.exec(`INSERT INTO daybook.job_steps (job_id, name, position, attempt, result, started_at)
SELECT $1, 'step ' || i, i, 1, '1', now() FROM generate_series(1, $2) i`, job.JobID, models.MaxSteps)
	assert.Equal(t, "DB010STEP_INVALID", b.notKept(keepStmt, job.JobID, job.Fence, "one more", `1`))
	b.exec(sized, job.JobID, job.Fence, "step 1", 10, 2)
	assert.True(t, b.asks(`daybook.fail_job($1, $2, 'X', 'x', interval '0') = 'pending'`, job.JobID, job.Fence))
	assert.True(t, b.asks(`(SELECT steps = $1 FROM daybook.claim_jobs('a'))`, models.MaxSteps))
}

// A loop that is kept thousands of times leaves one row, of a table that has not grown with it.
func TestClaimKeepsManyRounds(t *testing.T) {
	t.Parallel()
	const rounds = 3000
	b := setup(t)
	b.exec(`SELECT daybook.start_job_worker('a', '{w}')`)
	b.enqueued(org, queue.JobOptions{})
	job := b.claims("a", 1)[0]
	for round := 1; round <= rounds; round++ {
		b.exec(`SELECT daybook.keep_step($1, $2, 'rows', to_jsonb($3::integer), false, $3)`, job.JobID, job.Fence, round)
	}
	assert.True(t, b.asks(`(SELECT result = to_jsonb($1::integer) AND times = $1 FROM daybook.job_steps)`, rounds))
	assert.Less(t, fixture.Count(t, b.Pool, `SELECT pg_total_relation_size('daybook.job_steps')`), 1<<20)
}

// A request that leaves a debounced job as it is has its steps forgotten, as one for a unique job
// has: they were done before it.
func TestStepsBeforeADebouncedRequest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.start_job_worker('a', '{w}')`)
	o := debounced(0, 0, queue.KeepFirst)
	id := b.enqueued(org, o)
	job := b.claims("a", 1)[0]
	b.keep(job, "read", `1`)
	assert.True(t, b.asks(`daybook.fail_job($1, $2, 'X', 'x', interval '0') = 'pending'`, id, job.Fence))
	again, err := queue.EnqueueJob(t.Context(), b.Pool, org, queue.RawPayload{Type: "w", Data: []byte(`{}`)}, o)
	require.NoError(t, err)
	assert.Equal(t, queue.EnqueuedJob{ID: id, Duplicate: true, Result: queue.Unchanged}, again)
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.job_steps`))
}

// A job with another payload goes on behind its steps, unless it is to begin as if never tried.
func TestStepsOfAnEditedJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.start_job_worker('a', '{w}')`)
	id := b.enqueued(org, queue.JobOptions{})
	job := b.claims("a", 1)[0]
	b.keep(job, "read", `1`)
	assert.Equal(t, "DB040", b.refused(`SELECT daybook.edit_job($1, '{"a": 1}')`, id), "it is worked")
	assert.True(t, b.asks(`daybook.fail_job($1, $2, 'X', 'x', final => true) = 'failed'`, id, job.Fence))
	b.exec(`SELECT daybook.edit_job($1, '{"a": 1}', retry => 'now')`, id)
	assert.True(t, b.asks(`(SELECT steps = 1 AND payload = '{"a": 1}' FROM daybook.claim_jobs('a'))`))
	assert.True(t, b.asks(`daybook.stop_job_worker('a') = 1`))
	b.exec(`SELECT daybook.edit_job($1, '{"a": 2}', retry => 'reset')`, id)
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.job_steps`))
}
