package protocol_test

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// checks is how many random runs there are, in which leastSteps steps are taken at least.
const (
	checks     = "80"
	leastSteps = 20_000
)

// TestMain sets how many random runs there are and how long they are, steps that turn out to be
// impossible included. The command line goes before it.
func TestMain(m *testing.M) {
	// The seed is the same each time, so that a change is tested by what the one before was tested by:
	// make soak looks further.
	for name, value := range map[string]string{"rapid.checks": checks, "rapid.steps": "400", "rapid.seed": "1"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	pgtest.Main(m)
}

const (
	queueName, limitedType = "named", "limited"
	// queueMost is how many jobs of the named queue are leased at a time.
	queueMost = 2
)

// world is a database beside a model of it.
type world struct {
	model
	ctx  context.Context
	pool *pgxpool.Pool

	turns     [2]store.Turn
	turnCount int
	// past are leases that have ended.
	past       []lease
	claimFence int64
	// rows are those that were read last, before those of the last check.
	rows, before map[string]row
	// waiter listens as a worker that waits for work; nil: none waits. marks counts what was sent to
	// see what came before it.
	waiter *pgxpool.Conn
	marks  int
	steps  int
}

// row is a job as the database has it, at committed state.
type row struct {
	ID         string
	State      models.JobState
	Runs, Gen  int
	LeasedGen  int
	Cancel     bool
	Working    bool
	Fence      int64
	Turn       string
	Payload    int
	Due        int // 0 now, 1 in an hour, 2 waits
	Code       string
	Fleet      int
	Steps      bool
	Effects    int
	Org, Limit string
}

const readRows = `
SELECT j.id, j.state::text, j.run_count, j.generation, coalesce(j.leased_generation, 0), j.cancel_requested, j.working, coalesce(j.fence, 0),
       coalesce(j.turn_id, ''), (j.payload ->> 'n')::integer,
       CASE WHEN j.ready_at = '9999-12-31 00:00:00+00' THEN 2 WHEN j.ready_at > clock_timestamp() + interval '1 minute' THEN 1 ELSE 0 END,
       coalesce(j.last_error_code, ''), j.fleet, EXISTS (SELECT FROM daybook.job_steps s WHERE s.job_id = j.id),
       (SELECT count(*) FROM effects e WHERE e.job_id = j.id), j.org_id, coalesce(j.limit_key, '')
  FROM daybook.jobs j`

// TestRandomInterleavings runs requests, workers and operators in any order, with transactions that
// are open meanwhile, are rolled back or cut, on a database and on a model of it. Whatever happens,
// the two agree, and in the end a worker completes everything, once.
func TestRandomInterleavings(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `
CREATE TABLE effects (job_id text NOT NULL, generation bigint NOT NULL, PRIMARY KEY (job_id, generation));
ALTER TABLE daybook.jobs SET (autovacuum_enabled = false)`) // what is locked is the test's doing alone
	require.NoError(t, err)
	require.NoError(t, store.NewQueue(db.Pool, store.Jobs).Join(t.Context()))
	runs, steps, began := 0, 0, time.Now()
	pool := impatient(t, db)
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t.Context(), rt, pool)
		defer w.close()
		rt.Repeat(map[string]func(*rapid.T){
			"begin": w.begin, "end": w.end,
			"enqueue": w.enqueue, "enqueue 2": w.enqueue, "enqueue 3": w.enqueue,
			"cancel": w.cancelAny, "retry": w.retry, "edit": w.edit, "operate": w.operate,
			"time passes": w.timePasses, "waits are decided": w.decideWaits,
			"turn": w.turn, "lease": w.lease, "lease 2": w.lease, "begin waiting": w.beginWaiting, "mark waiting": w.markWaiting,
			"renew": w.renew, "finish": w.finish, "finish 2": w.finish, "work": w.work, "work 2": w.work, "pick": w.pick, "pick 2": w.pick, "step": w.step,
			"zombie": w.zombie, "give back": w.giveBack, "hand over": w.handOver, "successor": w.successor,
			"expire": w.expire, "claim": w.claim, "finish claim": w.finishClaim, "wait": w.wait,
			"": w.check,
		})
		w.drain(rt)
		runs, steps = runs+1, steps+w.steps
	})
	t.Logf("%d runs, %d steps, %s", runs, steps, time.Since(began).Round(time.Second))
	if flag.Lookup("rapid.checks").Value.String() == checks && !testing.Short() {
		require.GreaterOrEqual(t, steps, leastSteps, "take more runs")
	}
}

// impatient is a pool in which a statement that waits for a lock fails, and says for which: the
// transaction that has it may stay open.
func impatient(t *testing.T, db *pgtest.DB) *pgxpool.Pool {
	t.Helper()
	config := db.Pool.Config()
	config.ConnConfig.RuntimeParams["lock_timeout"] = "20s"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func newWorld(ctx context.Context, t *rapid.T, pool *pgxpool.Pool) *world {
	w := &world{ctx: ctx, pool: pool, model: model{
		jobs: map[string]job{}, paused: map[string]bool{}, caps: map[string]int{}, admitted: map[string]int{},
	}}
	w.exec(t, `
TRUNCATE daybook.jobs, daybook.job_waits, daybook.job_sequences, daybook.job_wait_checks, daybook.job_limits, daybook.job_limit_rates, daybook.job_steps,
         daybook.attempt_log, effects CASCADE`)
	w.exec(t, `DELETE FROM daybook.organizations`)
	_, err := queue.SetQueue(ctx, pool, queue.NamedQueue{Name: queueName, MaxParallel: queueMost})
	require.NoError(t, err)
	_, err = store.PauseQueue(ctx, pool, queueName, false)
	require.NoError(t, err)
	w.limit(t, 1)
	w.exec(t, `SELECT daybook.start_job_worker('sql', $1)`, []string{jobType, limitedType})
	w.newTurn(t, 0)
	w.newTurn(t, 1)
	return w
}

// close ends what a failed run has left open.
func (w *world) close() {
	w.stopWaiting(context.WithoutCancel(w.ctx))
	for _, a := range w.actors {
		if a.tx != nil {
			_ = a.tx.Rollback(context.WithoutCancel(w.ctx))
		}
	}
}

func (w *world) exec(t require.TestingT, sql string, args ...any) {
	_, err := w.pool.Exec(w.ctx, sql, args...)
	require.NoError(t, err)
}

func (w *world) actor(t *rapid.T) int { return rapid.IntRange(0, len(w.actors)-1).Draw(t, "actor") }

// actorWith draws one of the actors that are so.
func (w *world) actorWith(t *rapid.T, is func(a actor) bool) int {
	var found []int
	for i, a := range w.actors {
		if is(a) {
			found = append(found, i)
		}
	}
	if len(found) == 0 {
		t.Skip("there is none")
	}
	return rapid.SampledFrom(found).Draw(t, "actor")
}

func (w *world) org(t *rapid.T) string { return rapid.SampledFrom([]string{"a", "b"}).Draw(t, "org") }

func (w *world) count(of func(j *job) bool) (n int) {
	for _, j := range w.jobs {
		if of(&j) {
			n++
		}
	}
	return n
}

// locked: another transaction has locked the row, which the model need not know of a job that waits.
func (w *world) locked(t *rapid.T, a int, id string) bool {
	if _, own := w.actors[a].own[id]; own {
		return false
	}
	var free int
	require.NoError(t, w.pool.QueryRow(w.ctx, `
SELECT count(*) FROM (SELECT FROM daybook.jobs WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED) x`, id).Scan(&free))
	return free == 0
}

func (w *world) read(t require.TestingT, db store.DB, where string, args ...any) map[string]row {
	rows := map[string]row{}
	var r row
	require.NoError(t, store.Each(w.ctx, db, []any{
		&r.ID, &r.State, &r.Runs, &r.Gen, &r.LeasedGen, &r.Cancel, &r.Working, &r.Fence, &r.Turn, &r.Payload, &r.Due, &r.Code,
		&r.Fleet, &r.Steps, &r.Effects, &r.Org, &r.Limit,
	}, func() error {
		rows[r.ID] = r
		return nil
	}, readRows+where, args...))
	return rows
}

// fresh is a job as an actor's transaction sees it now.
func (w *world) fresh(t *rapid.T, a int, j job) job {
	return adopted(j, w.read(t, w.db(a), ` WHERE j.id = $1`, j.id)[j.id])
}

// adopted takes in what became of jobs that nothing was done to: one that waits fails when what it
// waits for is cancelled, and a debounced one gives way to its successor.
func adopted(j job, r row) job {
	if j.state != models.JobPending {
		return j
	}
	switch {
	case j.how == afterJob && !j.anyEnd && r.State == models.JobFailed && r.Code == "AWAITED_CANCELLED":
		j.state, j.released = models.JobFailed, true
	case j.how == debouncedJob && j.yields && r.State == models.JobCancelled && r.Code == "REPLACED":
		j.state, j.gen = models.JobCancelled, r.Gen
	case j.most == 0 && r.State == models.JobFailed && r.Code == "JOB_LOCK_TIMEOUT_RECLAIMED" && r.Runs == j.runs+1 &&
		r.Runs > sqlAttempts:
		j.state, j.runs = models.JobFailed, r.Runs // a worker that claims by SQL has found it
	}
	return j
}

func (w *world) adopt(t require.TestingT) {
	w.rows = w.read(t, w.pool, "")
	for id, j := range w.jobs {
		if !w.held(-1, id) {
			w.keep(adopted(j, w.rows[id]))
		}
	}
}

// check compares the database with the model.
func (w *world) check(t *rapid.T) {
	w.steps++
	w.adopt(t)
	w.woken(t)
	w.before = w.rows
	require.Len(t, w.rows, len(w.jobs))
	for _, id := range w.made {
		j, ok := w.jobs[id]
		if !ok {
			continue
		}
		r := w.rows[id]
		want := row{
			ID: id, State: j.state, Runs: j.runs, Gen: j.gen, Cancel: j.cancel, Payload: j.payload, Steps: j.steps,
			Effects: j.effects, Due: r.Due, Code: r.Code, Fleet: r.Fleet, Org: j.org, Limit: r.Limit,
		}
		if j.state == models.JobLeased {
			want.LeasedGen, want.Working, want.Fence, want.Turn = j.lease.gen, j.lease.working, j.lease.turn.Fence, j.lease.turn.ID
		}
		if !j.waits() && (j.state == models.JobPending || j.state == models.JobLeased && j.asked() && !j.cancel) {
			want.Due = 0
			if j.later {
				want.Due = 1
			}
		}
		require.Equal(t, want, r, "the job was enqueued as %s, key %q", j.how, j.key)
		require.False(t, j.state == models.JobCompleted && j.effects == 0, "completed, and nothing was done")
	}
	w.limits(t)
}

// limits: no more run at a time than may.
func (w *world) limits(t *rapid.T) {
	admitted, running, queued := map[string]int{}, map[string]int{}, 0
	for id, r := range w.rows {
		if j := w.jobs[id]; j.queue != "" && r.State == models.JobLeased {
			queued++
		}
		if j := w.jobs[id]; j.how == sequenceJob && r.State == models.JobLeased {
			running[j.org+" "+j.key]++
			require.Equal(t, 1, running[j.org+" "+j.key], "two of a sequence run")
		}
		if j := w.jobs[id]; r.Limit != "" && j.open() && r.Fleet >= 0 {
			admitted[r.Org+" "+r.Limit]++
		}
	}
	require.LessOrEqual(t, queued, queueMost, "jobs of the named queue are leased")
	for key, n := range admitted {
		require.LessOrEqual(t, n, max(w.places, w.admitted[key]), "jobs of the limit's key %s", key)
	}
	w.admitted = admitted
}

// allDecided: when all is decided, just those jobs wait that have to.
func (w *world) allDecided(t *rapid.T) {
	w.adopt(t)
	turns, lines, admitted := map[string]int{}, map[string]bool{}, map[string]int{}
	for id, r := range w.rows {
		j := w.jobs[id]
		switch {
		case j.how == afterJob && j.state == models.JobPending && w.allEnded(&j):
			require.NotEqual(t, 2, r.Due, "the job waits for nothing")
		case j.how == afterJob && j.state == models.JobPending && !w.mayBegin(&j):
			require.Equal(t, 2, r.Due, "the job waits for others")
		case j.how == sequenceJob && !j.ended():
			key := j.org + " " + j.key
			if turns[key] += 0; r.State != models.JobPending || r.Due != 2 {
				turns[key]++
			}
		case r.Limit != "" && j.open():
			key := r.Org + " " + r.Limit
			lines[key] = lines[key] || r.Fleet == -2
			require.False(t, r.Fleet == -1 && r.Due == 0, "its time has come, and it is in no line")
			if r.Fleet >= 0 {
				admitted[key]++
			}
		}
	}
	for key, n := range turns {
		require.Equal(t, 1, n, "it is the turn of one job of the sequence %s", key)
	}
	for key, line := range lines {
		require.True(t, !line || admitted[key] >= w.places, "a place of %s is free, and jobs wait for it", key)
	}
}

// drain: from whatever state there is, a worker completes everything that is not cancelled.
func (w *world) drain(t *rapid.T) {
	w.stopWaiting(w.ctx)
	for a := range w.actors {
		if w.actors[a].tx != nil {
			w.endBy(t, a, "commit")
		}
	}
	w.exec(t, `UPDATE daybook.organizations SET paused_at = NULL, max_in_flight = NULL`)
	_, err := store.PauseQueue(w.ctx, w.pool, queueName, false)
	require.NoError(t, err)
	clear(w.paused)
	clear(w.caps)
	w.exec(t, `UPDATE daybook.jobs SET last_attempted_at = last_attempted_at - interval '20 seconds' WHERE state = 'leased'`)
	_, err = w.fetcher().ReclaimExpired(w.ctx)
	require.NoError(t, err)
	for _, j := range w.committed(func(j *job) bool { return j.state == models.JobLeased }) {
		j.expire(j.lease.working)
		w.keep(j)
	}
	for round := 0; ; round++ {
		w.decideWaits(t)
		if w.count(func(j *job) bool { return !j.ended() }) == 0 {
			break
		}
		require.Less(t, round, 100, "jobs are stuck")
		for _, j := range w.committed(func(j *job) bool { return j.state == models.JobFailed }) {
			got, err := queue.RetryJob(w.ctx, w.pool, j.id, queue.RetryOptions{Mode: queue.RetryReset})
			require.NoError(t, err)
			if got.Result != queue.Unchanged { // another one with its payload is open
				j.state, j.runs, j.steps, j.later, j.loose = models.JobPending, 0, false, false, j.loose || j.how == sequenceJob
				j.gen++
				w.keep(j)
			}
		}
		w.exec(t, `UPDATE daybook.jobs SET ready_at = clock_timestamp(), first_ready_at = clock_timestamp()
 WHERE state = 'pending' AND ready_at > clock_timestamp() AND ready_at <> '9999-12-31 00:00:00+00'`)
		w.exec(t, `UPDATE daybook.jobs SET first_ready_at = clock_timestamp() WHERE state = 'pending' AND first_ready_at > clock_timestamp()`)
		for _, j := range w.committed(func(j *job) bool { return j.state == models.JobPending }) {
			j.later = false
			w.keep(j)
		}
		w.decideWaits(t)
		turn := w.turns[0]
		turn.Begins = true
		got, err := w.fetcher().LeaseFor(w.ctx, turn, 100, pgtest.Unbounded())
		require.NoError(t, err)
		w.leased(t, 0, turn, true, got.Jobs)
		for _, j := range w.committed(func(j *job) bool { return j.state == models.JobLeased }) {
			w.finishJob(t, j, models.OutcomeCompleted, false)
		}
	}
	w.check(t)
	report, err := audit.Run(w.ctx, w.pool, audit.Options{})
	require.NoError(t, err)
	for _, c := range report.Checks {
		require.Zero(t, c.Count, "%s: %v", c.Kind, c.Findings)
	}
	var left int
	require.NoError(t, w.pool.QueryRow(w.ctx, `
SELECT (SELECT count(*) FROM daybook.job_sequences) + (SELECT count(*) FROM daybook.job_limit_rates)`).Scan(&left))
	require.Zero(t, left, "rows of keys without open jobs")
}
