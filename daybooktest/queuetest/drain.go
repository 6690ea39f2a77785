package queuetest

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/queue"
)

// Counts says how attempts ended.
type Counts struct {
	Completed int
	// Retried attempts failed, and the job has another attempt.
	Retried int
	// Rescheduled attempts put the job off and do not count.
	Rescheduled int
	// Failed attempts left a dead letter.
	Failed    int
	Cancelled int
}

// dueQueue is a queue as draining sees it: a store.Store or a store.TaskQueue.
type dueQueue interface {
	Due(ctx context.Context) (n int, next *time.Duration, err error)
	PassTime(ctx context.Context, d time.Duration) error
}

// waitingQueue is a dueQueue whose jobs may wait for each other, and need not wait for a handler.
type waitingQueue interface {
	CheckWaits(ctx context.Context) (store.CheckedWaits, error)
	// FailMissing makes dead letters of due jobs that have no handler, and says how many of each type
	// there were.
	FailMissing(ctx context.Context, worker string, age time.Duration) (map[string]int, error)
}

// drainer works a queue until nothing is due.
type drainer struct {
	tb      testing.TB
	store   dueQueue
	engine  *engine.Engine
	turn    store.Turn
	advance time.Duration
	ends    time.Time
	timeout time.Duration
	counts  Counts
	// due is how many were due at the last count.
	due int
}

// requirePool fails the test when it has no pool.
func requirePool(tb testing.TB, pool *pgxpool.Pool) {
	tb.Helper()
	if pool == nil {
		tb.Fatalf("queuetest: the pool is nil: pass one that is connected to the test's database")
	}
}

// requireRegistry fails the test when it has no registry.
func requireRegistry(tb testing.TB, registry any) {
	tb.Helper()
	if store.IsNil(registry) {
		tb.Fatalf("queuetest: the registry is nil: pass the one that has the handlers")
	}
}

// requireQuerier fails the test when it has nothing to read from.
func requireQuerier(tb testing.TB, q queue.Querier) {
	tb.Helper()
	if store.IsNil(q) {
		tb.Fatalf("queuetest: %v", queue.ErrNoQuerier)
	}
}

func newDrainer(tb testing.TB, s dueQueue, e *engine.Engine, advance, timeout time.Duration) *drainer {
	tb.Helper()
	timeout = cmp.Or(timeout, time.Minute)
	return &drainer{
		tb: tb, store: s, engine: e, advance: advance, timeout: timeout, ends: time.Now().Add(timeout),
		turn: store.Turn{ID: "queuetest/" + rand.Text(), Worker: "queuetest", WorkflowRunID: "queuetest"},
	}
}

// run works what is due now, and what comes due within advance.
func (d *drainer) run() {
	d.tb.Helper()
	ctx, cancel := context.WithDeadline(d.tb.Context(), d.ends)
	defer cancel()
	left := d.advance
	for {
		d.workDue(ctx)
		if left <= 0 {
			return
		}
		_, next, err := d.store.Due(ctx)
		d.check(err)
		if next == nil {
			return
		}
		wait := min(max(*next, 0), left)
		d.check(d.store.PassTime(ctx, wait))
		// What was due in no time at all still uses some up, so that this ends.
		left -= max(wait, time.Millisecond)
	}
}

// How long jobs may be due that cannot be leased, and the pause between two tries.
const (
	stuckAfter = 5 * time.Second
	stuckPause = 20 * time.Millisecond
)

// workDue works what is due now.
func (d *drainer) workDue(ctx context.Context) {
	d.tb.Helper()
	progress := time.Now()
	for {
		locked := d.checkWaits(ctx)
		due, _, err := d.store.Due(ctx)
		d.check(err)
		d.due = due
		switch {
		case due == 0 && locked == 0:
			return
		case due == 0 && time.Since(progress) > stuckAfter:
			d.tb.Fatalf("queuetest: %d jobs cannot be released from what they waited for: end the transaction that holds "+
				"their rows locked", locked)
		case due == 0:
			time.Sleep(stuckPause)
			continue
		}
		r, err := d.engine.Process(ctx, engine.TurnRequest{Turn: d.turn, Batch: 100, Length: time.Until(d.ends)})
		d.check(err)
		d.add(r)
		switch ended := r.Completed + r.Retried + r.Rescheduled + r.Failed + r.Cancelled; {
		case ctx.Err() != nil:
			d.check(ctx.Err())
		case ended > 0:
			progress = time.Now()
		case d.failMissing(ctx) > 0:
			progress = time.Now()
		case time.Since(progress) > stuckAfter:
			d.tb.Fatalf("queuetest: %d jobs are due and cannot be leased: end the transaction that holds their rows or "+
				"documents locked", due)
		default:
			select {
			case <-ctx.Done():
			case <-time.After(stuckPause):
			}
		}
	}
}

// checkWaits releases jobs that wait for nothing any more, and says how much could not be decided
// because of locked rows.
func (d *drainer) checkWaits(ctx context.Context) (locked int) {
	d.tb.Helper()
	s, ok := d.store.(waitingQueue)
	for ok {
		checked, err := s.CheckWaits(ctx)
		d.check(err)
		if checked.Decided == 0 {
			return checked.Again
		}
	}
	return 0
}

// failMissing makes dead letters of due jobs that have no handler, and says how many there were.
func (d *drainer) failMissing(ctx context.Context) (n int) {
	d.tb.Helper()
	s, ok := d.store.(waitingQueue)
	if !ok {
		return 0
	}
	failed, err := s.FailMissing(ctx, "", 0)
	d.check(err)
	for _, some := range failed {
		n += some
	}
	d.counts.Failed += n
	return n
}

func (d *drainer) add(r engine.Report) {
	d.counts.Completed += r.Completed
	d.counts.Retried += r.Retried
	d.counts.Rescheduled += r.Rescheduled
	d.counts.Failed += r.Failed
	d.counts.Cancelled += r.Cancelled
}

// check fails the test with err, or, if that came from it, with the end of the drainer's time.
func (d *drainer) check(err error) {
	d.tb.Helper()
	if err != nil && !time.Now().Before(d.ends) {
		d.tb.Fatalf("queuetest: not drained within %s: %d jobs were due at the last count, after %+v", d.timeout, d.due,
			d.counts)
	}
	if err != nil {
		d.tb.Fatalf("queuetest: drain: %v", err)
	}
}

// logTo logs what people should see into the test's output.
func logTo(tb testing.TB) *slog.Logger {
	tb.Helper()
	return slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}
