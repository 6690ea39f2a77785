package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// Workers that end at any moment, between two transactions of a task, leave processes that end as
// they should: each message has one attempt that succeeds, and none without an outcome.
func TestCrashes(t *testing.T) {
	t.Parallel()
	const messages = 20
	b := setup(t)
	b.exec(`CREATE OR REPLACE FUNCTION comms.send_email_settings(OUT max_attempts integer, OUT base_interval interval, OUT longest_interval interval,
 OUT attempt_timeout interval) LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$SELECT 100, interval '5 ms', interval '20 ms', interval '1 hour'$$`)
	b.exec(`INSERT INTO comms.email_message (to_address, subject, body) SELECT format('%s@example.com', n), '', '' FROM generate_series(1, $1) n`, messages)
	b.exec(`SELECT comms.kickoff_send_email(email_message_id) FROM comms.email_message`)
	var workers errgroup.Group
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for n := range uint64(4) {
		w := &crashing{b: b, r: rand.New(rand.NewPCG(n, 12))}
		workers.Go(func() error {
			for {
				if err := w.step(ctx); err != nil {
					return err
				}
				var open int
				if err := b.Pool.QueryRow(ctx, `SELECT count(*) FROM queues.open_task`).Scan(&open); err != nil || open == 0 {
					return err
				}
			}
		})
	}
	require.NoError(t, workers.Wait())
	assert.Equal(t, messages, b.count(`SELECT count(*) FROM comms.send_email_attempt_succeeded`))
	assert.Equal(t, messages,
		b.count(`SELECT count(*) FROM comms.send_email_task t WHERE comms.has_send_email_succeeded_attempt(t.send_email_task_id)`))
	assert.Zero(t, b.count(`SELECT count(*) FROM comms.send_email_attempt a WHERE
 (SELECT count(*) FROM comms.send_email_attempt_succeeded s WHERE s.send_email_attempt_id = a.send_email_attempt_id)
 + (SELECT count(*) FROM comms.send_email_attempt_failed f WHERE f.send_email_attempt_id = a.send_email_attempt_id) <> 1`), "an attempt has one outcome")
	assert.Positive(t, b.count(`SELECT count(*) FROM (SELECT task_id FROM queues.task_lease GROUP BY task_id HAVING count(*) > 1) x`), "crashes that the test is about")
}

// crashing is a worker that ends at random.
type crashing struct {
	b *bundle
	r *rand.Rand
}

// errCrash ends a task's work, and leaves its lease.
var errCrash = errors.New("crash")

// step works the next task. After a crash the task is given back, as it is when the lease ends.
func (w *crashing) step(ctx context.Context) error {
	var id, lease int64
	var taskType string
	var payload map[string]any
	err := w.b.worker.QueryRow(ctx,
		`SELECT task_id, task_lease_id, task_type, payload FROM queues.dequeue_available_tasks(1, NULL)`).Scan(&id, &lease,
		&taskType, &payload)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	end := `SELECT queues.complete_tasks(ARRAY[$1::bigint], ARRAY[$2::bigint])`
	if err = w.work(ctx, taskType, payload); errors.Is(err, errCrash) {
		end, err = `SELECT queues.give_back_tasks(ARRAY[$1::bigint], ARRAY[$2::bigint])`, nil
	}
	if err != nil {
		return err
	}
	_, err = w.b.worker.Exec(ctx, end, id, lease)
	return err
}

// work calls what a task names, each function in a transaction of its own, and may crash after
// each.
func (w *crashing) work(ctx context.Context, taskType string, payload map[string]any) error {
	if taskType == "db_function" {
		_, err := w.run(ctx, payload["db_function"], payload)
		return err
	}
	status, err := w.run(ctx, payload["before_handler"], payload)
	if err != nil {
		return err
	}
	if status != "succeeded" || w.r.IntN(3) == 0 {
		_, err = w.run(ctx, payload["error_handler"],
			map[string]any{"original_payload": payload, "error": fmt.Sprint("busy, or ", status)})
		return err
	}
	_, err = w.run(ctx, payload["success_handler"], map[string]any{"original_payload": payload})
	return err
}

func (w *crashing) run(ctx context.Context, function any, payload map[string]any) (status string, err error) {
	err = w.b.worker.QueryRow(ctx, `SELECT internal.run_function($1, $2) ->> 'status'`, function, payload).Scan(&status)
	if err == nil && w.r.IntN(4) == 0 {
		err = errCrash
	}
	return status, err
}
