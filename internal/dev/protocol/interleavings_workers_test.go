package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// sqlWorker is the worker that claims by SQL; the others, 0 and 1, are of package store.
const sqlWorker = 2

// fetcher is a worker's store that remembers nothing: what it leases depends on the database alone.
func (w *world) fetcher() *store.Store { return store.NewQueue(w.pool, store.Jobs) }

// turn begins a turn of a worker: the one before may hold leases yet.
func (w *world) turn(t *rapid.T) {
	n := rapid.IntRange(0, 1).Draw(t, "worker")
	w.newTurn(t, n)
}

func (w *world) newTurn(t require.TestingT, n int) {
	w.turnCount++
	fence, err := w.fetcher().NextFence(w.ctx)
	require.NoError(t, err)
	w.turns[n] = store.Turn{
		ID: fmt.Sprintf("run/%d/%d", n, w.turnCount), Fence: fence, Worker: fmt.Sprint("worker-", n), WorkflowRunID: "run",
	}
}

// mayLease: the model expects that a lease may find the job.
func (w *world) mayLease(j *job) bool {
	return j.state == models.JobPending && (j.waits() || !j.later) && !w.paused[j.org] && !w.paused[j.queue]
}

// mustFind: no limit keeps a lease from the job.
func (w *world) mustFind(j *job) bool {
	return w.mayLease(j) && !j.waits() && j.how != limitedJob && j.queue == "" && w.caps[j.org] == 0
}

// leased notes what a worker has leased.
func (w *world) leased(t *rapid.T, n int, turn store.Turn, working bool, jobs []store.Job) {
	capped := func(j *job) bool { return j.lease.job.Room }
	before := w.leasedOf(capped)
	for _, s := range jobs {
		s.Room = w.caps[s.OrgID] > 0 // it counts towards the cap
		j, ok := w.jobs[s.ID]
		require.True(t, ok, "a job was leased that is not committed")
		require.False(t, w.held(-1, j.id), "a row was leased that another transaction has locked")
		require.True(t, w.mayLease(&j), "job %s was leased in state %s, later %t", j.id, j.state, j.later)
		require.True(t, w.mayBegin(&j), "%s job %s was leased before what it waits for", j.how, j.id)
		j.runs++
		j.tried, j.later, j.state = true, false, models.JobLeased
		j.lease = &lease{worker: n, turn: turn, gen: j.gen, working: working, job: s}
		require.Equal(t, j.runs, s.Attempt)
		w.keep(j)
	}
	after := w.leasedOf(capped)
	for org, most := range w.caps {
		require.True(t, most == 0 || after[org] <= max(most, before[org]), "the cap of %s is %d, and %d are leased", org,
			most, after[org])
	}
}

// lease is LeaseFor.
func (w *world) lease(t *rapid.T) {
	n := rapid.IntRange(0, 1).Draw(t, "worker")
	turn := w.turns[n]
	turn.Begins = rapid.Bool().Draw(t, "begins")
	got, err := w.fetcher().LeaseFor(w.ctx, turn, rapid.IntRange(1, 4).Draw(t, "most"), pgtest.Unbounded())
	require.NoError(t, err)
	if len(got.Jobs) == 0 {
		require.Empty(t, w.committed(w.mustFind), "due, and not found")
	}
	w.leased(t, n, turn, turn.Begins, got.Jobs)
}

// leasedOf counts leased jobs by organization.
func (w *world) leasedOf(of func(j *job) bool) map[string]int {
	n := map[string]int{}
	for _, j := range w.jobs {
		if j.state == models.JobLeased && of(&j) {
			n[j.org]++
		}
	}
	return n
}

// claim is daybook.claim_jobs.
func (w *world) claim(t *rapid.T) {
	w.age(t, "")
	var jobs []store.Job
	require.NoError(t, store.Begin(w.ctx, w.pool, func(tx pgx.Tx) error {
		// Which partitions come first is random there.
		if _, err := tx.Exec(w.ctx, `SELECT setseed(0)`); err != nil {
			return err
		}
		var j store.Job
		jobs = nil
		return store.Each(w.ctx, tx, []any{&j.ID, &j.OrgID, &j.Attempt, &w.claimFence}, func() error {
			jobs = append(jobs, j)
			return nil
		}, `SELECT job_id, org_id, attempt, fence FROM daybook.claim_jobs('sql', $1)`, rapid.IntRange(1, 2).Draw(t, "most"))
	}))
	w.adopt(t)
	w.leased(t, sqlWorker, store.Turn{ID: "/sql/sql", Fence: w.claimFence}, true, jobs)
}

// mine draws one of the leases of the store's workers that no transaction has locked.
func (w *world) mine(t *rapid.T, of func(j *job) bool) job {
	found := w.committed(func(j *job) bool { return j.state == models.JobLeased && of(j) })
	if len(found) == 0 {
		t.Skip("nothing is leased")
	}
	return rapid.SampledFrom(found).Draw(t, "lease")
}

func ofStore(j *job) bool { return j.lease.worker != sqlWorker }

// beginWaiting is BeginWaiting: a job that is to be cancelled is not begun.
func (w *world) beginWaiting(t *rapid.T) {
	j := w.mine(t, func(j *job) bool { return ofStore(j) && !j.lease.working })
	got, err := w.fetcher().BeginWaiting(w.ctx, j.lease.turn, []string{j.id})
	require.NoError(t, err)
	if j.cancel {
		require.Equal(t, 1, got.Cancelled)
		j.giveBack(false)
	} else {
		require.Equal(t, []string{j.id}, got.Working)
		l := *j.lease
		l.working, l.job.StartedAt = true, got.StartedAt[j.id]
		w.past = append(w.past, *j.lease)
		j.lease = &l
	}
	w.keep(j)
}

// markWaiting is MarkWaiting.
func (w *world) markWaiting(t *rapid.T) {
	j := w.mine(t, func(j *job) bool { return ofStore(j) && j.lease.working })
	require.NoError(t, w.fetcher().MarkWaiting(w.ctx, j.lease.turn, []string{j.id}))
	l := *j.lease
	l.working = false
	j.lease = &l
	w.keep(j)
}

// renew is Renew, which says what the turn holds and what is to be cancelled.
func (w *world) renew(t *rapid.T) {
	turn := w.mine(t, ofStore).lease.turn
	got, err := w.fetcher().Renew(w.ctx, turn, []string{}, 0)
	require.NoError(t, err)
	var held, asked []string
	for _, j := range w.jobs {
		if j.state == models.JobLeased && j.lease.turn.ID == turn.ID && j.lease.turn.Fence == turn.Fence {
			held = append(held, j.id)
			if j.cancel {
				asked = append(asked, j.id)
			}
		}
	}
	require.ElementsMatch(t, held, got.Held)
	require.ElementsMatch(t, asked, got.Asked)
}

// outcomes of an attempt that are drawn, and their codes.
var outcomes = map[models.Outcome]models.ErrorCode{
	models.OutcomeCompleted: "", models.OutcomeRetried: "HANDLER_ERROR", models.OutcomeRescheduled: "SNOOZED",
	models.OutcomeFailed: "NOT_FOUND", models.OutcomeCancelled: "JOB_CANCELLED",
}

func drawOutcome(t *rapid.T) models.Outcome {
	return rapid.SampledFrom([]models.Outcome{
		models.OutcomeCompleted, models.OutcomeCompleted, models.OutcomeCompleted, models.OutcomeRetried,
		models.OutcomeRescheduled, models.OutcomeFailed, models.OutcomeCancelled,
	}).Draw(t, "outcome")
}

// completion is how an attempt ends.
func completion(s store.Job, outcome models.Outcome, later bool) store.Completion {
	c := store.Completion{Job: s, Outcome: outcome, Code: outcomes[outcome]}
	if c.Code != "" {
		c.Message = "as the test says"
	}
	if later {
		c.Delay = time.Hour
	}
	return c
}

// effect writes what the attempt does: the database refuses a second one for the same request.
func (w *world) effect(tx store.DB, id string, gen int) error {
	_, err := tx.Exec(w.ctx, `INSERT INTO effects (job_id, generation) VALUES ($1, $2)`, id, gen)
	return err
}

// finish ends an attempt by a transaction of its own, in which the handler's effect is written, and
// which commits with the completion or is lost. It does not lock the job before.
func (w *world) finish(t *rapid.T) {
	j := w.mine(t, func(j *job) bool { return ofStore(j) && j.lease.working })
	w.finishJob(t, j, drawOutcome(t), rapid.Bool().Draw(t, "later"))
}

func (w *world) finishJob(t *rapid.T, j job, outcome models.Outcome, later bool) {
	s := w.fetcher()
	err := s.InTx(w.ctx, func(tx pgx.Tx) error {
		if outcome == models.OutcomeCompleted {
			if err := w.effect(tx, j.id, j.lease.gen); err != nil {
				return err
			}
		}
		_, err := store.Jobs.Complete(w.ctx, tx, j.lease.turn, []store.Completion{completion(j.lease.job, outcome, later)},
			store.Access{Wait: time.Second, Commit: true})
		return err
	})
	if j.cancel {
		require.ErrorIs(t, err, store.ErrLeaseLost, "it is to be cancelled")
		return
	}
	require.NoError(t, err)
	w.past = append(w.past, *j.lease)
	j.complete(outcome, later)
	w.keep(j)
}

// work locks jobs of a turn in an actor's transaction, which stays open, writes their effects and
// completes them: what the transaction does besides, such as enqueuing, commits with it.
func (w *world) work(t *rapid.T) {
	a := w.actorWith(t, func(a actor) bool { return a.tx != nil })
	tx := w.actors[a].tx
	turn := w.mine(t, func(j *job) bool { return ofStore(j) && j.lease.working }).lease.turn
	of := w.committed(func(j *job) bool {
		return j.state == models.JobLeased && j.lease.turn.ID == turn.ID && j.lease.turn.Fence == turn.Fence && j.lease.working
	})
	ids := make([]string, len(of))
	for i := range of {
		ids[i] = of[i].id
	}
	locked, err := store.Jobs.LockChunk(w.ctx, tx, turn, ids)
	require.NoError(t, err)
	require.Len(t, locked, len(of))
	var all []store.Completion
	for _, j := range of {
		outcome, later := drawOutcome(t), rapid.Bool().Draw(t, "later")
		if j.cancel {
			outcome = models.OutcomeCancelled
		}
		if outcome == models.OutcomeCompleted {
			require.NoError(t, w.effect(tx, j.id, j.lease.gen))
		}
		all = append(all, completion(j.lease.job, outcome, later))
		w.past = append(w.past, *j.lease)
		j.complete(outcome, later)
		w.actors[a].own[j.id] = j
	}
	_, err = store.Jobs.Complete(w.ctx, tx, turn, all, store.Access{})
	require.NoError(t, err)
}

// pick works due jobs without a lease in an actor's transaction, which stays open, or leases them
// from it.
func (w *world) pick(t *rapid.T) {
	a := w.actorWith(t, func(a actor) bool { return a.tx != nil && len(a.own) == 0 })
	tx := w.actors[a].tx
	s := w.fetcher()
	n := rapid.IntRange(0, 1).Draw(t, "worker")
	pick, err := s.PickTypes(w.ctx, rapid.IntRange(1, 3).Draw(t, "most"), func(string) bool { return true }, pgtest.Unbounded())
	require.NoError(t, err)
	if pick.Empty() {
		require.True(t, pick.Capped || len(w.committed(w.mustFind)) == 0, "due, and not found")
		t.Skip("nothing is due")
	}
	jobs, err := pick.Lock(w.ctx, tx)
	require.NoError(t, err)
	if len(jobs) == 0 {
		return
	}
	leases := rapid.Bool().Draw(t, "lease")
	if leases {
		got, err := s.LeasePicked(w.ctx, tx, w.turns[n], jobs, true)
		require.NoError(t, err)
		require.Len(t, got, len(jobs))
	}
	var all []store.Completion
	for _, s := range jobs {
		j, ok := w.jobs[s.ID]
		require.True(t, ok && !w.held(-1, s.ID))
		require.True(t, w.mayLease(&j) && w.mayBegin(&j), "%s job %s was picked", j.how, j.id)
		require.Zero(t, w.caps[j.org])
		j.runs++
		j.tried, j.later = true, false
		require.Equal(t, j.runs, s.Attempt)
		if leases {
			j.state, j.lease = models.JobLeased, &lease{n, w.turns[n], j.gen, true, s}
			w.actors[a].own[j.id] = j
			continue
		}
		outcome, later := drawOutcome(t), rapid.Bool().Draw(t, "later")
		if outcome == models.OutcomeCompleted {
			require.NoError(t, w.effect(tx, j.id, j.gen))
		}
		all = append(all, completion(s, outcome, later))
		j.lease = &lease{n, w.turns[n], j.gen, true, s}
		j.complete(outcome, later)
		w.actors[a].own[j.id] = j
	}
	if !leases {
		_, err = store.Jobs.Complete(w.ctx, tx, w.turns[n], all, store.Access{Picked: true})
		require.NoError(t, err)
	}
}

// step is KeepStep.
func (w *world) step(t *rapid.T) {
	j := w.mine(t, func(j *job) bool { return ofStore(j) && j.lease.working && !j.steps })
	require.NoError(t, w.fetcher().KeepStep(w.ctx, j.lease.turn, j.lease.job, step))
	j.steps = true
	w.keep(j)
}

var step = store.Step{Name: "s", Position: 1, Result: []byte(`1`), Done: true, Times: 1}

// zombie is a holder of before that wakes: it changes nothing.
func (w *world) zombie(t *rapid.T) {
	if len(w.past) == 0 {
		t.Skip("no lease has ended")
	}
	l := rapid.SampledFrom(w.past).Draw(t, "lease")
	if j, ok := w.jobs[l.job.ID]; ok && j.lease != nil && j.lease.job.StartedAt.Equal(l.job.StartedAt) {
		t.Skip("its end was rolled back")
	}
	s := w.fetcher()
	err := s.InTx(w.ctx, func(tx pgx.Tx) error {
		_, err := store.Jobs.Complete(w.ctx, tx, l.turn, []store.Completion{{Job: l.job, Outcome: models.OutcomeCompleted}},
			store.Access{Wait: 10 * time.Millisecond, Commit: true})
		return err
	})
	require.True(t, errors.Is(err, store.ErrLeaseLost) || w.held(-1, l.job.ID) && errors.Is(err, store.ErrRowHeld), "%v", err)
	if !w.held(-1, l.job.ID) {
		require.ErrorIs(t, s.KeepStep(w.ctx, l.turn, l.job, step), store.ErrLeaseLost)
	}
}

// giveBack is GiveBack of one job, or of all that a turn holds.
func (w *world) giveBack(t *rapid.T) {
	j := w.mine(t, ofStore)
	ids, turn := []string{j.id}, j.lease.turn
	if rapid.Bool().Draw(t, "all") {
		ids = nil
	}
	later := rapid.Bool().Draw(t, "later")
	var delay time.Duration
	if later {
		delay = time.Hour
	}
	_, err := w.fetcher().GiveBack(w.ctx, turn, ids, delay)
	require.NoError(t, err)
	for _, j := range w.committed(func(j *job) bool {
		return j.state == models.JobLeased && j.lease.turn.ID == turn.ID && j.lease.turn.Fence <= turn.Fence &&
			(ids == nil || slices.Contains(ids, j.id))
	}) {
		w.past = append(w.past, *j.lease)
		j.giveBack(later)
		w.keep(j)
	}
}

// handOver is HandOver to a detached turn.
func (w *world) handOver(t *rapid.T) {
	j := w.mine(t, func(j *job) bool { return ofStore(j) && j.lease.working && !j.lease.turn.Detached })
	to := j.lease.turn.Detach()
	ok, err := w.fetcher().HandOver(w.ctx, j.lease.turn, to, []string{j.id})
	require.NoError(t, err)
	require.True(t, ok)
	l := *j.lease
	l.turn = to
	j.lease = &l
	w.keep(j)
}

// successor is the next activity of a turn, which reclaims what the one before held.
func (w *world) successor(t *rapid.T) {
	of := w.mine(t, ofStore).lease
	turn, crashed := of.turn, rapid.Bool().Draw(t, "crashed")
	s := w.fetcher()
	var err error
	turn.Fence, err = s.NextFence(w.ctx)
	require.NoError(t, err)
	turn.Begins = false
	got, err := s.ReclaimTurns(w.ctx, turn, []string{turn.ID}, crashed)
	require.NoError(t, err)
	jobs := map[string]store.Job{}
	for _, j := range got.Jobs {
		jobs[j.ID] = j
	}
	for _, j := range w.committed(func(j *job) bool { return j.state == models.JobLeased && j.lease.turn.ID == turn.ID }) {
		charged := j.lease.working && crashed
		w.past = append(w.past, *j.lease)
		if j.asked() || charged && j.most > 0 && j.runs >= j.most {
			j.expire(charged)
		} else {
			if charged {
				j.runs++
			}
			taken, ok := jobs[j.id]
			require.True(t, ok, "what the turn held is its successor's")
			taken.Room = j.lease.job.Room
			j.lease = &lease{j.lease.worker, turn, j.lease.gen, true, taken}
			require.Equal(t, j.runs, taken.Attempt)
			delete(jobs, j.id)
		}
		w.keep(j)
	}
	require.Empty(t, jobs, "it has taken what was not the turn's")
	if w.turns[of.worker].ID == turn.ID {
		w.turns[of.worker] = turn
	}
}

// age has the lease of a job be old, and all others young, however slow the test is.
func (w *world) age(t *rapid.T, id string) {
	w.exec(t, `
UPDATE daybook.jobs SET last_attempted_at = clock_timestamp() - CASE WHEN id = $1 THEN interval '20 seconds' ELSE interval '0' END
 WHERE id = ANY (ARRAY(SELECT id FROM daybook.jobs WHERE state = 'leased' FOR NO KEY UPDATE SKIP LOCKED))`, id)
}

// wait has a worker wait for work, or no longer. It cannot while a transaction is open that may have
// enqueued: then it would look for itself.
func (w *world) wait(t *rapid.T) {
	if w.waiter != nil {
		w.stopWaiting(w.ctx)
		return
	}
	conn, err := w.pool.Acquire(w.ctx)
	require.NoError(t, err)
	w.waiter = conn
	var alone bool
	require.NoError(t, conn.QueryRow(w.ctx, `SELECT pg_try_advisory_lock(daybook.lock_class('wakers'), daybook.jobs_key(0))`).Scan(&alone))
	if !alone {
		w.stopWaiting(w.ctx)
		t.Skip("a transaction may have enqueued")
	}
	_, err = conn.Exec(w.ctx, `LISTEN daybook_jobs; LISTEN marks`)
	require.NoError(t, err)
}

func (w *world) stopWaiting(ctx context.Context) {
	if w.waiter != nil {
		_, _ = w.waiter.Exec(ctx, `UNLISTEN *; SELECT pg_advisory_unlock_all()`)
		w.waiter.Release()
		w.waiter = nil
	}
}

// woken: a worker that waits is notified when a job falls due, but by those who work it themselves.
func (w *world) woken(t *rapid.T) {
	if w.waiter == nil {
		return
	}
	w.marks++
	mark, notified := fmt.Sprint(w.marks), false
	w.exec(t, `SELECT pg_notify('marks', $1)`, mark)
	for {
		n, err := w.waiter.Conn().WaitForNotification(w.ctx)
		require.NoError(t, err)
		if n.Payload == mark {
			break
		}
		notified = notified || n.Channel == "daybook_jobs"
	}
	due := func(r row) bool { return r.State == models.JobPending && r.Due == 0 && r.Fleet >= -1 }
	for id, r := range w.rows {
		if was := w.before[id]; due(r) && !due(was) && was.State != models.JobLeased {
			require.True(t, notified, "%s job %s is due, and the worker that waits does not learn of it", w.jobs[id].how, id)
		}
	}
}

// expire has a lease grow old, because its holder died, and ends it.
func (w *world) expire(t *rapid.T) {
	j := w.mine(t, func(*job) bool { return true })
	w.age(t, j.id)
	got, err := w.fetcher().ReclaimExpired(w.ctx)
	require.NoError(t, err)
	require.Equal(t, 1, got.Jobs)
	w.past = append(w.past, *j.lease)
	j.expire(j.lease.working)
	w.keep(j)
}

// finishClaim ends what was claimed by SQL, in an actor's transaction or by itself.
func (w *world) finishClaim(t *rapid.T) {
	a := w.actor(t)
	j := w.mine(t, func(j *job) bool { return j.lease.worker == sqlWorker })
	db, fence := w.db(a), j.lease.turn.Fence
	switch how := rapid.SampledFrom([]string{"complete", "complete", "fail", "snooze"}).Draw(t, "how"); {
	case how == "complete" && j.cancel:
		_, err := db.Exec(w.ctx, `SELECT daybook.complete_job($1, $2)`, j.id, fence)
		require.Equal(t, "DB031", store.SQLState(err))
		if w.actors[a].tx != nil {
			w.endBy(t, a, "roll back")
		}
		return
	case how == "complete":
		// One transaction: it would be two where the actor has none.
		require.NoError(t, pgx.BeginFunc(w.ctx, db.(beginner), func(tx pgx.Tx) error {
			if _, err := tx.Exec(w.ctx, `SELECT daybook.complete_job($1, $2)`, j.id, fence); err != nil {
				return err
			}
			return w.effect(tx, j.id, j.lease.gen)
		}))
		j.complete(models.OutcomeCompleted, false)
	case how == "fail":
		_, err := db.Exec(w.ctx, `SELECT daybook.fail_job($1, $2, 'HANDLER_ERROR', 'e', interval '1 hour')`, j.id, fence)
		require.NoError(t, err)
		outcome := models.OutcomeRetried
		if most := j.most; most > 0 && j.runs >= most || most == 0 && j.runs >= sqlAttempts {
			outcome = models.OutcomeFailed
		}
		j.complete(outcome, true)
	default:
		_, err := db.Exec(w.ctx, `SELECT daybook.snooze_job($1, $2, interval '1 hour')`, j.id, fence)
		require.NoError(t, err)
		outcome := models.OutcomeRescheduled
		if j.cancel {
			outcome = models.OutcomeCancelled
		}
		j.complete(outcome, true)
	}
	w.put(a, j)
}

type beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// sqlAttempts is how many attempts a job has that names no number, for a worker that claims by SQL.
const sqlAttempts = 3
