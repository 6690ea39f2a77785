package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// attempted is an attempt as daybook.attempts shows it, and whether the log has its row.
type attempted struct {
	Attempt int
	Outcome models.Outcome
	Worker  string
	Turn    string
	Run     string
	Logged  bool
}

// attemptsAt are the attempts at a job, in the order of their ids.
func (b *bundle) attemptsAt(id string) []attempted {
	b.t.Helper()
	const stmt = `
SELECT a.attempt, a.outcome::text, a.worker, a.turn_id, a.workflow_run_id, EXISTS (SELECT FROM daybook.attempt_log l WHERE l.job_id = a.job_id AND l.id = a.id)
  FROM daybook.attempts a WHERE a.job_id = $1 AND a.started_at <= a.ended_at ORDER BY a.id`
	list, err := store.Collect(b.t.Context(), b.Pool, pgx.RowToStructByPos[attempted], stmt, id)
	require.NoError(b.t, err)
	return list
}

// leaseJobs leases jobs to a turn, which begins them.
func (b *recentBundle) leaseJobs(turn store.Turn) []store.Job {
	b.t.Helper()
	turn.Begins = true
	leased, err := b.jobs.LeaseFor(b.t.Context(), turn, 10, pgtest.Unbounded())
	require.NoError(b.t, err)
	return leased.Jobs
}

// TestACompletedJobKeepsItsAttempt: the attempt that completes a job, whether it was leased or not,
// stays in the job's row and is the last one that daybook.attempts shows. What did not complete the
// job is in the log.
func TestACompletedJobKeepsItsAttempt(t *testing.T) {
	t.Parallel()
	b := setupRecent(t)
	picked := b.enqueue("org_1", "short", 0)
	b.next()
	assert.Equal(t, []attempted{{1, models.OutcomeCompleted, "", "run/0/1", "run", false}}, b.attemptsAt(picked))

	id := b.enqueue("org_1", "short", 0)
	first := b.turn("run/0/2")
	jobs := b.leaseJobs(first)
	require.Len(t, jobs, 1)
	_, err := b.completeLeased(store.Jobs, first,
		store.Completion{Job: jobs[0], Outcome: models.OutcomeRetried, Code: models.CodeTimeout, Message: "late"})
	require.NoError(t, err)
	second := b.turn("run/0/3")
	jobs = b.leaseJobs(second)
	require.Len(t, jobs, 1)
	_, err = b.completeLeased(store.Jobs, second, store.Completion{Job: jobs[0], Outcome: models.OutcomeCompleted})
	require.NoError(t, err)
	assert.Equal(t, []attempted{
		{1, models.OutcomeRetried, "test", "run/0/2", "run", true},
		{2, models.OutcomeCompleted, "test", "run/0/3", "run", false},
	}, b.attemptsAt(id))

	// Neither its turn nor one that believes to have picked it can complete it once more.
	err = b.jobs.InTx(t.Context(), func(tx pgx.Tx) error {
		_, err := store.Jobs.Complete(t.Context(), tx, second,
			[]store.Completion{{Job: jobs[0], Outcome: models.OutcomeCompleted}}, store.Access{Picked: true})
		return err
	})
	require.ErrorIs(t, err, store.ErrLeaseLost)
	_, err = b.completeLeased(store.Jobs, second, store.Completion{Job: jobs[0], Outcome: models.OutcomeCompleted})
	require.ErrorIs(t, err, store.ErrLeaseLost)
	assert.Len(t, b.attemptsAt(id), 2)
}

// TestAttemptsThatDoNotEndTheirJobAreLogged: a handler that ends well completes nothing when its
// job was asked for anew, or cancelled, meanwhile.
func TestAttemptsThatDoNotEndTheirJobAreLogged(t *testing.T) {
	t.Parallel()
	b := setupRecent(t)
	again, cancelled := b.enqueue("org_1", "short", 0), b.enqueue("org_1", "short", 0)
	turn := b.turn("run/0/2")
	jobs := b.leaseJobs(turn)
	require.Len(t, jobs, 2)
	b.exec(`UPDATE daybook.jobs SET generation = generation + 1 WHERE id = $1`, again)
	b.exec(`SELECT daybook.cancel_job($1)`, cancelled)
	done, err := b.completeLeased(store.Jobs, turn, store.Completion{Job: jobs[0], Outcome: models.OutcomeCompleted},
		store.Completion{Job: jobs[1], Outcome: models.OutcomeCompleted})
	require.NoError(t, err)
	assert.Equal(t, 1, done[store.Requeued])
	for id, state := range map[string]models.JobState{again: models.JobPending, cancelled: models.JobCancelled} {
		assert.Equal(t, 1, fixture.Count(t, b.Pool,
			`SELECT count(*) FROM daybook.jobs WHERE id = $1 AND state::text = $2 AND completed_turn_id IS NULL`, id,
			string(state)))
		assert.Equal(t, []attempted{{1, models.OutcomeCompleted, "test", "run/0/2", "run", true}}, b.attemptsAt(id))
	}

	third := b.turn("run/0/3")
	jobs = b.leaseJobs(third)
	require.Len(t, jobs, 1)
	_, err = b.completeLeased(store.Jobs, third, store.Completion{Job: jobs[0], Outcome: models.OutcomeCompleted})
	require.NoError(t, err)
	assert.Equal(t, []bool{true, false}, []bool{b.attemptsAt(again)[0].Logged, b.attemptsAt(again)[1].Logged})
}

// TestPickedRowsAreCompletedWhereTheyAre: what a pick has locked is completed by the places of its
// rows. A row that the pick's own transaction has changed is elsewhere, and is found by its id when
// the place is said to be no longer valid. A handler that has its own job tried again completes
// nothing.
func TestPickedRowsAreCompletedWhereTheyAre(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, change string
		handled      bool
		refused      error
	}{
		{"as it was", "", false, nil},
		{"as it was, in a handler's hands", "", true, nil},
		{"changed by a handler", `UPDATE daybook.jobs SET awaited = true WHERE id = $1`, true, nil},
		{
			"changed, and nothing was said", `UPDATE daybook.jobs SET awaited = true WHERE id = $1`, false,
			store.ErrLeaseLost,
		},
		{"asked for anew by its handler", `SELECT daybook.retry_job($1, 'later', 3600)`, true, store.ErrLeaseLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setupRecent(t)
			pick := b.pick()
			id := b.enqueue("org_1", "short", 0)
			b.exec(`UPDATE daybook.jobs SET priority = 3 WHERE id = $1`, id)
			err := b.jobs.InTx(t.Context(), func(tx pgx.Tx) error {
				jobs, err := pick.Lock(t.Context(), tx)
				require.NoError(t, err)
				require.Len(t, jobs, 1)
				require.True(t, jobs[0].Place.Valid)
				if c.change != "" {
					_, err = tx.Exec(t.Context(), c.change, id)
					require.NoError(t, err)
				}
				jobs[0].Place.Valid = !c.handled
				_, err = store.Jobs.Complete(t.Context(), tx, store.Turn{ID: "run/0/1", Fence: 1},
					[]store.Completion{{Job: jobs[0], Outcome: models.OutcomeCompleted}},
					store.Access{Picked: true, Commit: true})
				return err
			})
			require.ErrorIs(t, err, c.refused)
			completed := fixture.Count(t, b.Pool,
				`SELECT count(*) FROM daybook.jobs WHERE id = $1 AND state = 'completed' AND completed_fence = 1`, id)
			assert.Equal(t, c.refused == nil, completed == 1)
		})
	}
}
