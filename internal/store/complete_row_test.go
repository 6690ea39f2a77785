package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// TestRowsOfCompletedJobs: of earlier attempts a completed job keeps their number, and what its own
// attempt was is in its row, in whichever way it is completed.
func TestRowsOfCompletedJobs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		picked, beside bool
	}{{"leased", false, false}, {"picked", true, false}, {"picked beside one that fails", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setupRecent(t)
			pick := b.pick()
			id, fails := b.enqueue("org_1", "short", 0), ""
			if c.beside {
				fails = b.enqueue("org_1", "short", 0)
			}
			b.exec(`UPDATE daybook.jobs SET generation = 3, run_count = 2, reclaims = 1, last_error = 'before', last_error_code = 'TIMEOUT', last_attempted_at = created_at WHERE id = $1`, id)
			b.exec(`UPDATE daybook.jobs SET result = '{"before": 1}' WHERE id = ANY ($1)`, []string{id, fails})
			turn := b.turn("run/0/9")
			completions := func(jobs []store.Job) (list []store.Completion) {
				for _, j := range jobs {
					list = append(list, store.Completion{Job: j, Outcome: models.OutcomeCompleted, Result: []byte(`{"a": 1}`)})
					if j.ID == fails {
						list[len(list)-1] = store.Completion{
							Job: j, Outcome: models.OutcomeFailed, Code: models.CodeTimeout,
							Message: "late",
						}
					}
				}
				return list
			}
			var jobs []store.Job
			began, err := store.Now(t.Context(), b.Pool)
			require.NoError(t, err)
			if c.picked {
				require.NoError(t, b.jobs.InTx(t.Context(), func(tx pgx.Tx) (err error) {
					if jobs, err = pick.Lock(t.Context(), tx); err == nil {
						_, err = store.Jobs.Complete(t.Context(), tx, turn, completions(jobs), store.Access{Picked: true})
					}
					return err
				}))
			} else {
				jobs = b.leaseJobs(turn)
				b.exec(`UPDATE daybook.jobs SET last_attempted_at = clock_timestamp() WHERE id = $1`, id)
				_, err := b.completeLeased(store.Jobs, turn, completions(jobs)...)
				require.NoError(t, err)
			}
			at := 0
			if jobs[0].ID != id {
				at = 1
			}
			var row struct {
				State, Error, Code, Result, By, Turn string
				Attempts, Reclaims                   int
				Fence                                int64
				Attempted, Started, Updated          time.Time
			}
			require.NoError(t, b.Pool.QueryRow(t.Context(), `
SELECT state::text, coalesce(last_error, ''), coalesce(last_error_code, ''), result::text, completed_by, completed_turn_id, run_count, reclaims, completed_fence,
       last_attempted_at, completed_started_at, updated_at
  FROM daybook.jobs WHERE id = $1`, id).Scan(&row.State, &row.Error, &row.Code, &row.Result, &row.By, &row.Turn,
				&row.Attempts, &row.Reclaims, &row.Fence,
				&row.Attempted, &row.Started, &row.Updated))
			assert.Equal(t, []string{"completed", "", "", `{"a": 1}`, turn.Worker, turn.ID},
				[]string{row.State, row.Error, row.Code, row.Result, row.By, row.Turn})
			assert.Equal(t, []int64{3, 0, turn.Fence}, []int64{int64(row.Attempts), int64(row.Reclaims), row.Fence})
			assert.True(t, row.Started.Equal(jobs[at].StartedAt))
			assert.False(t, row.Attempted.Before(began))
			assert.Equal(t, c.picked, row.Attempted.Equal(row.Started), "a lease is renewed")
			assert.True(t, row.Updated.After(jobs[at].StartedAt))
			if c.beside {
				assert.Equal(t, 1, fixture.Count(t, b.Pool,
					`SELECT count(*) FROM daybook.jobs WHERE id = $1 AND result = '{"before": 1}'`, fails),
					"what fails leaves no result")
			}

			// No attempt that believes to have picked what has ended ends it once more.
			for _, list := range [][]store.Completion{completions(jobs), completions(append([]store.Job{}, jobs[:at+1]...))} {
				err = b.jobs.InTx(t.Context(), func(tx pgx.Tx) error {
					_, err := store.Jobs.Complete(t.Context(), tx, turn, list, store.Access{Picked: true})
					return err
				})
				require.ErrorIs(t, err, store.ErrLeaseLost)
			}
		})
	}
}

// TestAPlaceIsThatOfItsJob: a completion by place completes no other job that is there.
func TestAPlaceIsThatOfItsJob(t *testing.T) {
	t.Parallel()
	b := setupRecent(t)
	pick := b.pick()
	b.enqueue("org_1", "short", 0)
	b.enqueue("org_1", "short", 0)
	require.ErrorIs(t, b.jobs.InTx(t.Context(), func(tx pgx.Tx) error {
		jobs, err := pick.Lock(t.Context(), tx)
		require.NoError(t, err)
		require.Len(t, jobs, 2)
		jobs[0].Place = jobs[1].Place
		_, err = store.Jobs.Complete(t.Context(), tx, b.turn("run/0/9"),
			[]store.Completion{{Job: jobs[0], Outcome: models.OutcomeCompleted}}, store.Access{Picked: true})
		return err
	}), store.ErrLeaseLost)
}

// TestVersionsAndLooksOfCompletions: an attempt that found another version does not take back a
// newer request, and looks are counted as far as a row may say.
func TestVersionsAndLooksOfCompletions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, not_ready_count) VALUES ($1, 'd', 1, 1000000)`, org)
	var version *int64
	complete := func(code models.ErrorCode, meanwhile int) []int64 {
		b.exec(`UPDATE daybook.accounting_work_queue SET ready_at = clock_timestamp()`)
		turn := b.turn("turn")
		jobs := b.lease(turn, 1)
		require.Len(t, jobs, 1)
		b.exec(`UPDATE daybook.accounting_work_queue SET version_hint = version_hint + $1, generation = generation + $1`,
			meanwhile)
		require.NoError(t, b.completeAll(turn,
			store.Completion{Job: jobs[0], Outcome: models.OutcomeRescheduled, Code: code, Message: "m", Version: version}))
		job := fixture.Job(t, b.Pool, org, "d")
		return []int64{job.VersionHint, int64(job.NotReadyCount)}
	}
	assert.Equal(t, []int64{1, 1000000}, complete(models.CodeDocumentNotReady, 0))
	version = new(int64(9))
	assert.Equal(t, []int64{9, 0}, complete(models.CodeVersionMismatch, 0))
	assert.Equal(t, []int64{10, 0}, complete(models.CodeVersionMismatch, 1))
	version = nil
	assert.Equal(t, []int64{10, 1}, complete(models.CodeDocumentNotReady, 0))
	assert.Equal(t, []int64{11, 0}, complete(models.CodeDocumentNotReady, 1), "a new request is looked at anew")
}

// TestOnlyWhatIsRescheduledIsFolded: beside attempts that fold into the row before, others are rows
// of their own, or none.
func TestOnlyWhatIsRescheduledIsFolded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint) SELECT $1, d, 1 FROM unnest('{folds,retries,unlogged,failed}'::text[]) AS d`, org)
	later := store.Completion{Outcome: models.OutcomeRescheduled, Code: models.CodeDocumentNotReady, Message: "not ready"}
	complete := func(turn store.Turn, by map[string]store.Completion) {
		b.exec(`UPDATE daybook.accounting_work_queue SET ready_at = clock_timestamp() WHERE state = 'pending'`)
		jobs := b.lease(turn, 10)
		require.Len(t, jobs, 4)
		list := make([]store.Completion, len(jobs))
		for i, j := range jobs {
			list[i] = later
			if other, some := by[j.DocumentID]; some {
				list[i] = other
			}
			list[i].Job = j
		}
		require.NoError(t, b.completeAll(turn, list...))
	}
	complete(b.turn("run/0/1"), nil)
	b.exec(`UPDATE daybook.attempt_log SET outcome = 'failed' WHERE document_id = 'failed'`)
	b.exec(`UPDATE daybook.attempt_log SET started_at = started_at - interval '2 hours', ended_at = ended_at - interval '2 hours'`)
	retried, unlogged := later, later
	retried.Outcome, unlogged.Unlogged = models.OutcomeRetried, true
	last := store.Turn{}
	for range 2 {
		last = b.turn("another run/0/2")
		last.Worker, last.WorkflowRunID = "another", "another run"
		complete(last, map[string]store.Completion{"retries": retried, "unlogged": unlogged})
	}
	var rows []string
	require.NoError(t, b.Pool.QueryRow(t.Context(), `
SELECT array_agg(concat_ws(' ', document_id, outcome, times) ORDER BY document_id, id) FROM daybook.attempt_log`).Scan(&rows))
	assert.Equal(t, "failed failed 1, failed rescheduled 2, folds rescheduled 3, retries rescheduled 1, retries "+
		"retried 1, retries retried 1, unlogged rescheduled 1", strings.Join(rows, ", "))
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `
SELECT count(*) FROM daybook.attempt_log
 WHERE document_id = 'folds' AND worker = 'another' AND workflow_run_id = 'another run' AND turn_id = 'another run/0/2' AND fence = $1
   AND first_started_at < clock_timestamp() - interval '1 hour' AND started_at > clock_timestamp() - interval '1 hour' AND ended_at > started_at`, last.Fence),
		"the row is the last attempt's, and says when the first one began")
}
