package main

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

const (
	// loadCallers is how many goroutines enqueue.
	loadCallers = 16
	// enqueueTimeout is how long enqueuing may take before it counts as refused.
	enqueueTimeout = 10 * time.Second
)

// load enqueues jobs at a rate that does not depend on how fast they are accepted or worked.
type load struct {
	pool    *pgxpool.Pool
	enqueue enqueuer
	// punctual: what could not be enqueued by the end of the time is left out, instead of being
	// enqueued late.
	punctual bool

	mu        sync.Mutex
	committed map[int]time.Time
	refused   int
	lastError error
}

// run enqueues rate jobs a second for a while, perTx in a transaction, numbered from 0.
func (l *load) run(ctx context.Context, rate, perTx int, lasting time.Duration) error {
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	interval := time.Second * time.Duration(perTx) / time.Duration(rate)
	var next atomic.Int64
	for range loadCallers {
		group.Go(func() error {
			for {
				turn := next.Add(1) - 1
				due := time.Duration(turn) * interval
				if due >= lasting || l.punctual && time.Since(began) >= lasting {
					return nil
				}
				pause(ctx, due-time.Since(began))
				if ctx.Err() != nil {
					return ctx.Err()
				}
				jobs := make([]faultJob, perTx)
				for i := range jobs {
					jobs[i].Number = int(turn)*perTx + i
				}
				l.add(ctx, jobs)
			}
		})
	}
	return group.Wait()
}

// add enqueues some jobs in a transaction. A database that is unavailable is no error: the
// application lives with it.
func (l *load) add(ctx context.Context, jobs []faultJob) {
	ctx, cancel := context.WithTimeout(ctx, enqueueTimeout)
	defer cancel()
	var at time.Time
	err := inTx(ctx, l.pool, func(tx pgx.Tx) error {
		err := l.enqueue(ctx, tx, jobs)
		at = time.Now()
		return err
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.refused += len(jobs)
		l.lastError = err
		return
	}
	for _, j := range jobs {
		l.committed[j.Number] = at
	}
}

// count is how many jobs were enqueued until now.
func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.committed)
}

// result is what was committed, and how many jobs were refused.
func (l *load) result() (committed map[int]time.Time, refused int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.committed) == 0 {
		return nil, 0, fmt.Errorf("no job was enqueued: %w", l.lastError)
	}
	return maps.Clone(l.committed), l.refused, nil
}
