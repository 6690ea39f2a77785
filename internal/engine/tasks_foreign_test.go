package engine_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
)

// TestForeignClientBesideTheWorker has clients that know the seed's functions alone work beside a
// worker: each task is worked by one of them, and once.
func TestForeignClientBesideTheWorker(t *testing.T) {
	t.Parallel()
	const n, clients = 300, 4
	b := setup(t)
	enqueueNamedTasks(b, n)
	var mu sync.Mutex
	by := map[string][]string{}
	note := func(name, who string) {
		mu.Lock()
		defer mu.Unlock()
		by[name] = append(by[name], who)
	}
	e := startTasks(b, b.Pool, func(_ context.Context, names []string) error {
		note(names[0], "worker")
		<-time.After(5 * time.Millisecond)
		return nil
	}, engine.Options{Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(e.Close)
	stop := make(chan struct{})
	q := request(1)
	q.Batch, q.Length, q.Linger, q.Stop = 10, time.Minute, true, stop
	done := b.processing(e, q)
	role := b.As(t, "worker_service_user")
	var foreign errgroup.Group
	for range clients {
		foreign.Go(func() error {
			for {
				var id *int64
				var name *string
				if err := role.QueryRow(t.Context(),
					`SELECT task_id, payload ->> 'name' FROM queues.dequeue_next_available_task()`).Scan(&id,
					&name); err != nil || id == nil {
					return err
				}
				note(*name, "client")
				if _, err := role.Exec(t.Context(), `SELECT queues.fail_task($1, 'for the record')`, *id); err != nil {
					return err
				}
				if _, err := role.Exec(t.Context(), `SELECT queues.complete_task($1)`, *id); err != nil {
					return err
				}
			}
		})
	}
	require.NoError(t, foreign.Wait())
	require.Eventually(t, func() bool { return fixture.Count(t, b.Pool, `SELECT count(*) FROM queues.open_task`) == 0 },
		time.Minute, 10*time.Millisecond)
	close(stop)
	r := <-done
	count := map[string]int{}
	for name, who := range by {
		assert.Len(t, who, 1, name)
		count[who[0]]++
	}
	assert.Len(t, by, n)
	assert.Positive(t, count["worker"])
	assert.Positive(t, count["client"])
	assert.Equal(t, count["worker"], r.Completed)
	assert.Equal(t, n, fixture.Count(t, b.Pool, `SELECT count(*) FROM queues.task_completed`))
	assert.Equal(t, count["client"], fixture.Count(t, b.Pool, `SELECT count(*) FROM queues.error`))
	assert.Equal(t, n, fixture.Count(t, b.Pool, `SELECT count(*) FROM queues.task_lease WHERE renews IS NULL`))
}
