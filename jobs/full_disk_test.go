package jobs_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// TestFullDisk has the server say that its disk is full, to a handler in the transaction that
// completes its job, or to the completion itself: no attempt is charged, and a handler that has
// returned nil is not called again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	policy := jobs.Policy{MaxAttempts: 1}
	for name, register := range map[string]func(b *bundle, calls *atomic.Int32, write func() error){
		"to the handler": func(b *bundle, calls *atomic.Int32, write func() error) {
			jobs.Register(b.registry, policy, func(_ context.Context, job *jobs.Job[greet]) error {
				calls.Add(1)
				job.InTx(func(context.Context, pgx.Tx) error { return write() })
				return nil
			})
		},
		"to a completion in the handler's transaction": func(b *bundle, calls *atomic.Int32, _ func() error) {
			jobs.Register(b.registry, policy, func(_ context.Context, job *jobs.Job[greet]) error {
				calls.Add(1)
				job.InTx(func(context.Context, pgx.Tx) error { return nil })
				return nil
			})
			b.exec(`CREATE TRIGGER full_disk BEFORE UPDATE ON daybook.jobs FOR EACH STATEMENT EXECUTE FUNCTION public.complete()`)
		},
		"to a completion": func(b *bundle, calls *atomic.Int32, _ func() error) {
			jobs.Register(b.registry, policy, func(context.Context, *jobs.Job[greet]) error {
				calls.Add(1)
				return nil
			})
			b.exec(`CREATE TRIGGER full_disk BEFORE UPDATE ON daybook.jobs FOR EACH STATEMENT EXECUTE FUNCTION public.complete()`)
		},
		"to a bulk handler": func(b *bundle, calls *atomic.Int32, write func() error) {
			jobs.RegisterBulk(b.registry, policy, func(_ context.Context, _ pgx.Tx, all []*jobs.Job[greet]) ([]error, error) {
				err := write()
				if err == nil {
					calls.Add(1)
				}
				return make([]error, len(all)), err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(`CREATE TABLE public.full_disk AS SELECT 1 AS n; CREATE SEQUENCE public.tried`)
			b.exec(`CREATE FUNCTION public.complete() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF current_query() LIKE '%completed_turn_id%' AND EXISTS (SELECT FROM public.full_disk) THEN
    PERFORM nextval('public.tried'); RAISE 'could not extend file' USING ERRCODE = '53100'; END IF; RETURN NULL; END $$`)
			var calls, tries atomic.Int32
			var free atomic.Bool
			register(b, &calls, func() error {
				if free.Load() {
					return nil
				}
				tries.Add(1)
				return &pgconn.PgError{Severity: "ERROR", Code: "53100", Message: "could not extend file", Routine: "mdextend"}
			})
			b.enqueue(greet{}, queue.JobOptions{})
			turn := b.linger(b.engine)
			require.Eventually(t, func() bool {
				return max(int(tries.Load()),
					b.count(`SELECT last_value FROM public.tried`)) >= inVain
			}, long, 10*time.Millisecond)
			free.Store(true)
			b.exec(`DELETE FROM public.full_disk`)
			b.until(1, `SELECT count(*) FROM daybook.jobs WHERE state IN ('completed', 'failed')`)
			turn.end()
			b.assertOnce(1)
			assert.EqualValues(t, 1, calls.Load())
		})
	}
}
