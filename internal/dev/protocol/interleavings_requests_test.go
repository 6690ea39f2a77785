package protocol_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// begin opens a transaction, which stays open while others go on.
func (w *world) begin(t *rapid.T) {
	a := w.actorWith(t, func(a actor) bool { return a.tx == nil })
	tx, err := w.pool.Begin(w.ctx)
	require.NoError(t, err)
	w.actors[a] = actor{tx: tx, pid: tx.Conn().PgConn().PID(), own: map[string]job{}}
}

// end commits a transaction, rolls it back, or has its connection cut.
func (w *world) end(t *rapid.T) {
	a := w.actorWith(t, func(a actor) bool { return a.tx != nil })
	how := "commit"
	switch n := rapid.IntRange(0, 15).Draw(t, "how"); {
	case n == 15: // a new session reads all functions anew, which takes long
		how = "cut"
	case n > 10:
		how = "roll back"
	}
	w.endBy(t, a, how)
}

func (w *world) endBy(t *rapid.T, a int, how string) {
	tx := w.actors[a].tx
	switch how {
	case "commit":
		require.NoError(t, tx.Commit(w.ctx))
		w.commitOf(a)
	case "cut":
		w.exec(t, `SELECT pg_terminate_backend($1, 10000)`, int(w.actors[a].pid))
		fallthrough
	default:
		_ = tx.Rollback(w.ctx)
		w.actors[a] = actor{}
	}
}

// db is what an actor sends its requests to.
func (w *world) db(a int) store.DB {
	if tx := w.actors[a].tx; tx != nil {
		return tx
	}
	return w.pool
}

// refused: a request has failed as it had to, and with it its transaction.
func (w *world) refused(t *rapid.T, a int, err, want error) {
	require.ErrorIs(t, err, want)
	if w.actors[a].tx != nil {
		w.endBy(t, a, "roll back")
	}
}

const jobType = "work"

func payload(n int) queue.RawPayload {
	return queue.RawPayload{Type: jobType, Data: fmt.Appendf(nil, `{"n": %d}`, n)}
}

// enqueue is EnqueueJob with any of its options.
func (w *world) enqueue(t *rapid.T) {
	if w.count(func(j *job) bool { return !j.ended() }) > 25 {
		t.Skip("there are enough")
	}
	a := w.actor(t)
	j := job{
		how: rapid.SampledFrom([]string{
			plainJob, plainJob, keyedJob, uniqueJob, uniqueJob, debouncedJob, sequenceJob, afterJob, limitedJob,
		}).Draw(t, "how"),
		org: w.org(t), state: models.JobPending,
		input: rapid.IntRange(1, 2).Draw(t, "payload"),
		later: rapid.IntRange(0, 3).Draw(t, "later") == 0,
		most:  rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "attempts"),
	}
	j.payload = j.input
	if rapid.IntRange(0, 3).Draw(t, "queue") == 0 && j.how != debouncedJob {
		j.queue = queueName
	}
	o := queue.JobOptions{MaxAttempts: j.most, Queue: j.queue}
	if j.later && j.how != debouncedJob {
		o.RunAt = time.Now().Add(time.Hour)
	}
	p := payload(j.input)
	var existing *job
	key := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "key")
	var wait bool
	var keep queue.Keep
	switch j.how {
	case keyedJob:
		j.key, o.IdempotencyKey = key, key
		for _, id := range w.made {
			k, ok := w.at(a, id)
			same := func(k *job) bool { return k.how == keyedJob && k.org == j.org && k.key == key }
			if ok && same(&k) {
				existing = &k
			}
			for i := range w.actors {
				k, ok := w.actors[i].own[id]
				wait = wait || ok && i != a && same(&k) && w.jobs[id].id == ""
			}
		}
	case uniqueJob:
		o.Unique = true
		existing, wait = w.openWith(a, func(k *job) bool {
			return k.how == uniqueJob && k.org == j.org && k.payload == j.payload
		})
	case debouncedJob:
		keep = rapid.SampledFrom([]queue.Keep{queue.KeepNewest, queue.KeepNewest, queue.KeepFirst, queue.KeepMerged}).Draw(t, "keep")
		j.key, o.Debounce = key, queue.Debounce{Key: key, Keep: keep}
		if j.later {
			o.Debounce.Wait = time.Hour
		}
		existing, wait = w.openWith(a, func(k *job) bool {
			return k.how == debouncedJob && k.org == j.org && k.key == key && !k.loose
		})
	case sequenceJob:
		j.key, o.Sequence = key, key
	case afterJob:
		others := w.visible(a, func(k *job) bool { return k.org == j.org && k.how != debouncedJob })
		if len(others) == 0 {
			t.Skip("there are no others")
		}
		for range rapid.IntRange(1, 2).Draw(t, "others") {
			o.After = append(o.After, rapid.SampledFrom(others).Draw(t, "after").id)
		}
		o.AfterAnyEnd = rapid.Bool().Draw(t, "any end")
		j.after, j.anyEnd = o.After, o.AfterAnyEnd
	case limitedJob:
		j.key, o.LimitKey = key, key
		p.Type = limitedType
	}
	if wait || existing != nil && w.locked(t, a, existing.id) {
		t.Skip("it would wait for another transaction")
	}
	got, err := queue.EnqueueJob(w.ctx, w.db(a), j.org, p, o)
	if existing == nil {
		require.NoError(t, err)
		require.Equal(t, queue.Enqueued, got.Result)
		j.id = got.ID
		w.put(a, j)
		return
	}
	want := queue.Unchanged
	switch j.how {
	case keyedJob:
		if existing.input != j.input {
			w.refused(t, a, err, queue.ErrKeyReused)
			return
		}
		require.NoError(t, err)
		require.Equal(t, queue.Unchanged, got.Result)
		require.Equal(t, existing.id, got.ID)
		return // its row is not locked
	case uniqueJob:
		want = queue.Result(existing.join(j.later))
	case debouncedJob:
		if existing.tried && (existing.state != models.JobPending || keep != queue.KeepFirst) {
			// The job of the key has begun: a new one follows it, and the newest takes its place.
			require.NoError(t, err)
			require.Equal(t, queue.Enqueued, got.Result)
			existing.loose, existing.yields = true, keep == queue.KeepNewest
			if existing.state == models.JobPending {
				existing.gen++
			}
			if existing.state == models.JobPending && existing.yields {
				existing.gen++
				existing.state, existing.endedOnce = models.JobCancelled, true
			}
			w.put(a, *existing)
			j.id, j.follows, j.after, j.anyEnd = got.ID, true, []string{existing.id}, true
			w.put(a, j)
			return
		}
		existing.gen++
		switch {
		case existing.tried:
			existing.steps = false // they were kept before this request
		case keep == queue.KeepFirst:
			want = queue.Rescheduled
			existing.later = j.later
		default:
			want = queue.Replaced
			existing.payload, existing.later = j.payload, j.later
		}
	}
	require.NoError(t, err)
	require.Equal(t, want, got.Result)
	require.Equal(t, existing.id, got.ID)
	w.put(a, *existing)
}

// some draws one of the jobs that an actor sees and may change at once.
func (w *world) some(t *rapid.T, a int, of func(j *job) bool) job {
	found := w.visible(a, of)
	if len(found) == 0 {
		t.Skip("there is none")
	}
	j := rapid.SampledFrom(found).Draw(t, "job")
	if w.locked(t, a, j.id) {
		t.Skip("another transaction has changed what waits")
	}
	return w.fresh(t, a, j)
}

// cancelAny is CancelJob.
func (w *world) cancelAny(t *rapid.T) {
	a := w.actor(t)
	j := w.some(t, a, func(*job) bool { return true })
	got, err := queue.CancelJob(w.ctx, w.db(a), j.id)
	want := queue.Cancelled
	switch {
	case j.state == models.JobCompleted:
		w.refused(t, a, err, queue.ErrJobCompleted)
		return
	case j.state == models.JobCancelled:
		want = queue.Unchanged
	case j.state == models.JobLeased && j.lease.working:
		want = queue.Cancelling
		j.cancelIt()
	default:
		j.cancelIt()
	}
	require.NoError(t, err)
	require.Equal(t, want, got.Result)
	w.put(a, j)
}

// retry is RetryJob.
func (w *world) retry(t *rapid.T) {
	a := w.actor(t)
	j := w.some(t, a, func(*job) bool { return true })
	mode := rapid.SampledFrom([]queue.RetryMode{queue.RetryNow, queue.RetryLater, queue.RetryReset}).Draw(t, "mode")
	var twin *job
	if !j.open() && (j.how == uniqueJob || j.how == debouncedJob && !j.loose) {
		var wait bool
		if twin, wait = w.openWith(a, func(k *job) bool { return k.id != j.id && sameKey(k, &j) }); wait {
			t.Skip("it would wait for another transaction")
		}
	}
	got, err := queue.RetryJob(w.ctx, w.db(a), j.id, queue.RetryOptions{Mode: mode})
	want := queue.Requeued
	switch j.state {
	case models.JobCompleted:
		w.refused(t, a, err, queue.ErrJobCompleted)
		return
	case models.JobLeased:
		if want = queue.Unchanged; j.cancel {
			want = queue.Coalesced
			j.cancel = false
			j.gen--
		}
	default:
		if twin != nil {
			want = queue.Unchanged
			break
		}
		if j.state == models.JobPending {
			want = queue.Rescheduled
		}
		// What had ended meanwhile is not waited for any more.
		j.loose = j.loose || j.how == sequenceJob && !j.open()
		j.released = j.released || !j.open()
		j.state, j.later = models.JobPending, mode == queue.RetryLater
		j.gen++
		if mode == queue.RetryReset {
			j.runs, j.steps = 0, false
		}
	}
	require.NoError(t, err)
	require.Equal(t, want, got.Result, got.Reason)
	w.put(a, j)
}

func sameKey(a, b *job) bool {
	return a.how == b.how && a.org == b.org && (a.how == uniqueJob && a.payload == b.payload ||
		a.how == debouncedJob && a.key == b.key && !a.loose)
}

// edit is EditJob.
func (w *world) edit(t *rapid.T) {
	a := w.actor(t)
	j := w.some(t, a, func(j *job) bool { return j.how != limitedJob })
	to := rapid.IntRange(1, 2).Draw(t, "payload")
	edited := j
	edited.payload = to
	var twin *job
	if j.how == uniqueJob {
		var wait bool
		if twin, wait = w.openWith(a, func(k *job) bool { return k.id != j.id && sameKey(k, &edited) }); wait {
			t.Skip("it would wait for another transaction")
		}
	}
	got, err := queue.EditJob(w.ctx, w.db(a), j.id, payload(to), queue.EditOptions{By: "test"})
	switch {
	case j.state == models.JobCompleted:
		w.refused(t, a, err, queue.ErrJobCompleted)
		return
	case j.state == models.JobLeased:
		w.refused(t, a, err, queue.ErrJobRunning)
		return
	case twin != nil && j.payload != to && j.open():
		w.refused(t, a, err, queue.ErrJobDuplicate)
		return
	}
	require.NoError(t, err)
	want := queue.Unchanged
	if j.payload != to {
		want = queue.Edited
		edited.gen++
	}
	require.Equal(t, want, got.Result)
	w.put(a, edited)
}

// operate pauses and resumes organizations and the named queue, caps organizations, and changes the
// limit by key.
func (w *world) operate(t *rapid.T) {
	org := w.org(t)
	on := rapid.IntRange(0, 3).Draw(t, "on") == 0
	tx := func(f func(ctx context.Context, tx pgx.Tx, org string) (store.Limits, error)) {
		require.NoError(t, store.Begin(w.ctx, w.pool, func(tx pgx.Tx) error {
			_, err := f(w.ctx, tx, org)
			return err
		}))
	}
	switch rapid.IntRange(0, 3).Draw(t, "operation") {
	case 0:
		if w.paused[org] = on; on {
			tx(store.PauseOrganization)
		} else {
			tx(store.ResumeOrganization)
		}
	case 1:
		w.caps[org] = 0
		var most *int
		if on {
			w.caps[org] = rapid.IntRange(1, 2).Draw(t, "cap")
			most = new(w.caps[org])
		}
		tx(func(ctx context.Context, tx pgx.Tx, org string) (store.Limits, error) {
			return store.CapOrganization(ctx, tx, org, most)
		})
	case 2:
		_, err := store.PauseQueue(w.ctx, w.pool, queueName, on)
		require.NoError(t, err)
		w.paused[queueName] = on
	default:
		w.limit(t, rapid.IntRange(1, 2).Draw(t, "places"))
	}
}

func (w *world) limit(t require.TestingT, places int) {
	_, err := store.SetKeyLimit(w.ctx, w.pool, store.KeyLimit{LimitScope: store.LimitScope{Type: limitedType}, Parallel: places})
	require.NoError(t, err)
	w.places = places
}

// timePasses makes what is due in an hour due now.
func (w *world) timePasses(t *rapid.T) {
	later := w.committed(func(j *job) bool { return j.later && j.state == models.JobPending && !j.waits() })
	if len(later) == 0 {
		t.Skip("nothing is due later")
	}
	j := rapid.SampledFrom(later).Draw(t, "job")
	w.exec(t, `UPDATE daybook.jobs SET ready_at = clock_timestamp(), first_ready_at = clock_timestamp() WHERE id = $1`, j.id)
	w.exec(t, `SELECT daybook.wake_job_queue()`) // a worker that waits knows when the next job is due
	j.later = false
	w.keep(j)
}

// decideWaits has a worker decide what is on record about jobs that wait.
func (w *world) decideWaits(t *rapid.T) {
	for range 100 {
		got, err := w.fetcher().CheckWaits(w.ctx)
		require.NoError(t, err)
		if got.Decided == 0 {
			break
		}
	}
	if slices.ContainsFunc(w.actors[:], func(a actor) bool { return a.tx != nil }) {
		return
	}
	w.allDecided(t)
}
