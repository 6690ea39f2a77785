package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

func TestOneRowForAHundredGoroutinesAndVersions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var g errgroup.Group
	for range 100 {
		g.Go(func() error {
			for _, v := range rand.Perm(100) {
				if _, err := queue.EnqueueAccountingJob(t.Context(), b.Pool,
					queue.AccountingJob{OrgID: org, DocumentID: doc, Version: int64(v + 1)}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	assert.Equal(t, 1, b.jobs())
	assert.EqualValues(t, 100, b.job().VersionHint)
}

// Every caller has the keys in an order of its own, some of them new, some not, some twice.
func TestEnqueueManyWithOverlappingKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const keys, callers, rounds = 60, 8, 12
	var g errgroup.Group
	for caller := range callers {
		g.Go(func() error {
			random := rand.New(rand.NewPCG(1, uint64(caller)))
			for round := range rounds {
				var jobs []queue.AccountingJob
				for _, k := range random.Perm(keys)[:40] {
					jobs = append(jobs, queue.AccountingJob{
						OrgID: fmt.Sprint("org_", k%3), DocumentID: fmt.Sprint("doc_", k),
						Version: int64(round*callers + caller),
					})
				}
				jobs = append(jobs, jobs[0], jobs[7])
				// Keys that no one has asked for yet, so that each round inserts as well.
				for n := range 5 {
					jobs = append(jobs, queue.AccountingJob{
						OrgID: "org_1", DocumentID: fmt.Sprintf("new_%d_%d", round, n),
						Version: int64(caller),
					})
				}
				err := pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
					rs, err := queue.EnqueueAccountingJobs(t.Context(), tx, jobs)
					if err == nil && len(rs) != len(jobs) {
						err = errors.New("not one response for each job")
					}
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait(), "a deadlock is SQLSTATE 40P01")
	assert.Equal(t, keys+5*rounds, b.jobs())
	assert.Equal(t, 5*rounds,
		fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.accounting_work_queue WHERE document_id LIKE 'new%' AND version_hint = $1`, callers-1))
}

// Callers under REPEATABLE READ see SQLSTATE 40001 when they meet a change that their snapshot does
// not show.
func TestSerializationErrorsSurface(t *testing.T) {
	t.Parallel()
	dbs := shared(t)
	for _, c := range []struct {
		name string
		from models.JobState
		ask  request
	}{
		{"a row inserted meanwhile", absent, enqueue(7)},
		{"a row inserted meanwhile, many", absent, func(ctx context.Context, q queue.Querier) (queue.Response, error) {
			_, err := queue.EnqueueAccountingJobs(ctx, q, []queue.AccountingJob{{OrgID: org, DocumentID: doc, Version: 7}})
			return queue.Response{}, err
		}},
		{"a row changed meanwhile", models.JobPending, enqueue(7)},
		{"mark pending", models.JobPending, markPending(0)},
		{"cancel", models.JobPending, cancel},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := dbs.setup(t)
			b.bring(c.from)
			tx, err := b.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
			require.NoError(t, err)
			defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
			_, err = tx.Exec(t.Context(), `SELECT 1 FROM daybook.documents`)
			require.NoError(t, err)
			b.enqueue(6)

			_, err = c.ask(t.Context(), tx)

			var pg *pgconn.PgError
			require.ErrorAs(t, err, &pg)
			assert.Equal(t, "40001", pg.Code)
		})
	}
}

// asked is a request that must not be swallowed: an attempt at the version or a newer one begins
// after it.
type asked struct {
	version int64
	begun   time.Time
}

// history is what was asked for a document, as far as its callers know.
type history struct {
	mu        sync.Mutex
	asks      []asked
	cancelled []time.Time
}

// Requests of every kind meet workers that complete, fail, retry, give back, and die. At the end,
// when everything due has been worked, each request is followed by an attempt, unless a
// cancellation may have come after it.
func TestNothingAskedForIsSwallowed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const documents, callers, requests, workers = 6, 6, 150, 3
	histories := make([]history, documents)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	var working, asking errgroup.Group
	for n := range workers {
		w := &randomWorker{bundle: b, lane: n, random: rand.New(rand.NewPCG(7, uint64(n)))}
		working.Go(func() error { return w.run(ctx) })
	}
	for caller := range callers {
		asking.Go(func() error {
			random := rand.New(rand.NewPCG(11, uint64(caller)))
			for i := range requests {
				d := random.IntN(documents)
				v := int64(i*callers + caller)
				if err := b.askAtRandom(random, d, v, &histories[d]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, asking.Wait())
	stop()
	require.NoError(t, working.Wait())

	// What the workers still held is reclaimed, and everything that is due is worked off.
	last := &randomWorker{bundle: b, lane: workers, random: rand.New(rand.NewPCG(7, workers))}
	require.NoError(t, last.drain(t.Context()))

	require.Zero(t, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.accounting_work_queue WHERE state IN ('pending', 'leased')`))
	checked := 0
	for d := range histories {
		id := fmt.Sprint("doc_", d)
		for _, a := range histories[d].asks {
			if histories[d].maybeCancelled(a.begun) {
				continue
			}
			checked++
			require.Positive(t, fixture.Count(t, b.Pool,
				`SELECT count(*) FROM daybook.attempts WHERE document_id = $1 AND version >= $2 AND started_at >= $3 AND outcome <> 'lost'`, id, a.version, a.begun),
				"%s: nothing was attempted for version %d, asked for at %s", id, a.version, a.begun)
		}
	}
	assert.Positive(t, checked, "requests that no cancellation followed")
}

func (h *history) maybeCancelled(after time.Time) bool {
	for _, ended := range h.cancelled {
		if !ended.Before(after) {
			return true
		}
	}
	return false
}

// askAtRandom makes one request in a transaction and notes what must come of it. Every second
// document is never cancelled, so that there are requests that no cancellation follows.
func (b *bundle) askAtRandom(random *rand.Rand, d int, version int64, h *history) error {
	id := fmt.Sprint("doc_", d)
	ctx := b.t.Context()
	kind := random.IntN(100)
	var begun, ended time.Time
	var r queue.Response
	err := pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&begun); err != nil {
			return err
		}
		var err error
		switch {
		case kind < 10 && d%2 == 1:
			r, err = queue.CancelAccountingJob(ctx, tx, queue.Document{OrgID: org, ID: id})
		case kind < 40:
			version = 0
			r, err = queue.MarkAccountingJobPending(ctx, tx, queue.PendingAccountingJob{OrgID: org, DocumentID: id})
		case kind < 60:
			var rs []queue.Response
			rs, err = queue.EnqueueAccountingJobs(ctx, tx,
				[]queue.AccountingJob{{OrgID: org, DocumentID: id, Version: version}})
			if err == nil {
				r = rs[0]
			}
		default:
			r, err = queue.EnqueueAccountingJob(ctx, tx,
				queue.AccountingJob{OrgID: org, DocumentID: id, Version: version, Priority: queue.Priority(1 + random.IntN(3))})
		}
		return err
	})
	if errors.Is(err, queue.ErrJobNotFound) || errors.Is(err, queue.ErrJobCompleted) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := b.Pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&ended); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch r.Result {
	case queue.Cancelled, queue.Cancelling:
		h.cancelled = append(h.cancelled, ended)
	case queue.Enqueued, queue.Coalesced, queue.Requeued, queue.Rescheduled:
		h.asks = append(h.asks, asked{version, begun})
	case queue.Unchanged, queue.Received, queue.Skipped, queue.Replaced, queue.Edited:
	}
	return nil
}

// randomWorker leases and ends attempts in every way there is.
type randomWorker struct {
	*bundle
	lane   int
	count  int
	random *rand.Rand
	// calm says that every attempt completes.
	calm bool
}

func (w *randomWorker) turn(ctx context.Context) (store.Turn, error) {
	w.count++
	fence, err := w.store.NextFence(ctx)
	return store.Turn{ID: fmt.Sprintf("run/%d/%d", w.lane, w.count), Fence: fence, Worker: "test"}, err
}

func (w *randomWorker) run(ctx context.Context) error {
	for ctx.Err() == nil {
		// A turn that has begun is finished: what is asked is what happens while it runs.
		if _, err := w.pass(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// pass is one turn.
func (w *randomWorker) pass(ctx context.Context) (int, error) {
	turn, err := w.turn(ctx)
	if err != nil {
		return 0, err
	}
	leased, err := w.store.LeaseFor(ctx, turn, 4, pgtest.Unbounded())
	jobs := leased.Jobs
	if err != nil || len(jobs) == 0 {
		return 0, err
	}
	way := w.random.IntN(10)
	switch {
	case w.calm:
	case way == 0:
		_, err := w.store.GiveBack(ctx, turn, nil, 0)
		return len(jobs), err
	case way < 3:
		// The worker dies; its successor reclaims the turn, and the predecessor completes nothing any
		// more.
		successor := turn
		if successor.Fence, err = w.store.NextFence(ctx); err != nil {
			return 0, err
		}
		taken, err := w.store.ReclaimTurns(ctx, successor, []string{turn.ID}, way == 1)
		if err != nil {
			return 0, err
		}
		if err := w.completeAll(ctx, turn, jobs); err != nil {
			return 0, err
		}
		return len(jobs), w.completeAll(ctx, successor, taken.Jobs)
	}
	return len(jobs), w.completeAll(ctx, turn, jobs)
}

func (w *randomWorker) completeAll(ctx context.Context, turn store.Turn, jobs []store.Job) error {
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID
	}
	if err := w.completeOnce(ctx, turn, ids); err != nil {
		return err
	}
	// Rows that a request held locked were skipped; they are given back.
	_, err := w.store.GiveBack(ctx, turn, ids, 0)
	return err
}

func (w *randomWorker) completeOnce(ctx context.Context, turn store.Turn, ids []string) error {
	return pgx.BeginFunc(ctx, w.Pool, func(tx pgx.Tx) error {
		locked, err := store.Accounting.LockChunk(ctx, tx, turn, ids)
		if err != nil || len(locked) == 0 {
			return err
		}
		completions := make([]store.Completion, len(locked))
		for i, j := range locked {
			completions[i] = w.outcome(j)
		}
		_, err = store.Accounting.Complete(ctx, tx, turn, completions, store.Access{})
		return err
	})
}

func (w *randomWorker) outcome(j store.Job) store.Completion {
	s := store.Completion{Job: j, Outcome: models.OutcomeCompleted}
	switch way := w.random.IntN(8); {
	case j.CancelRequested:
		s.Outcome = models.OutcomeCancelled
	case w.calm:
	case way == 0:
		s.Outcome, s.Code = models.OutcomeFailed, models.CodeUnbalanced
	case way == 1:
		s.Outcome, s.Code = models.OutcomeRetried, models.CodeDatabaseError
	case way == 2:
		s.Outcome, s.Code = models.OutcomeRescheduled, models.CodeDocumentNotReady
	}
	return s
}

// drain works everything that is due, every attempt completing.
func (w *randomWorker) drain(ctx context.Context) error {
	w.calm = true
	turn, err := w.turn(ctx)
	if err != nil {
		return err
	}
	rows, err := w.Pool.Query(ctx, `SELECT DISTINCT turn_id FROM daybook.accounting_work_queue WHERE state = 'leased'`)
	if err != nil {
		return err
	}
	turns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	taken, err := w.store.ReclaimTurns(ctx, turn, turns, true)
	if err != nil {
		return err
	}
	if err := w.completeAll(ctx, turn, taken.Jobs); err != nil {
		return err
	}
	for {
		if n, err := w.pass(ctx); err != nil || n == 0 {
			return err
		}
	}
}
