package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

const (
	debouncers     = 12
	debouncedKeys  = 5
	debounceRounds = 20
)

// note is what a request leaves: in the payload, and in the table asked, in one transaction.
type note struct {
	Key string   `json:"key"`
	IDs []string `json:"ids"`
}

func (note) JobType() string { return "note" }

// Twelve callers ask for the same keys, in orders of their own, while other transactions work the
// jobs, and let some attempts fail. No request is lost, nothing deadlocks, and under REPEATABLE READ
// a transaction fails at worst as one that is to be tried again (40001).
func TestDebounceByManyAtOnce(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead} {
		for _, keep := range []queue.Keep{queue.KeepNewest, queue.KeepMerged} {
			t.Run(fmt.Sprint(level, ", ", keep), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				b.exec(`CREATE TABLE public.asked (n bigserial, key text, id text)`)
				b.exec(`CREATE TABLE public.worked (n bigserial, job text, key text, id text)`)
				b.exec(`CREATE FUNCTION public.add_ids(older jsonb, newer jsonb) RETURNS jsonb LANGUAGE sql
				        AS $$ SELECT newer || jsonb_build_object('ids', older -> 'ids' || (newer -> 'ids')) $$`)
				o := queue.JobOptions{Debounce: queue.Debounce{Wait: time.Millisecond, Keep: keep}}
				if keep == queue.KeepMerged {
					o.Debounce.Merge = "public.add_ids"
				}
				stop := make(chan struct{})
				var workers, callers errgroup.Group
				for range 3 {
					workers.Go(func() error { return b.workNotes(stop) })
				}
				for i := range debouncers {
					callers.Go(func() error { return b.askForNotes(i, level, o) })
				}
				require.NoError(t, callers.Wait())
				require.Eventually(t, func() bool {
					return b.number(`SELECT count(*) FROM daybook.jobs WHERE state IN ('pending', 'leased')`) == 0
				},
					30*time.Second, 10*time.Millisecond)
				close(stop)
				require.NoError(t, workers.Wait())
				assert.Zero(t, b.number(`SELECT count(*) FROM daybook.jobs WHERE state = 'failed'`))
				// The last that was committed of a key is in the last payload that was worked.
				assert.Zero(t, b.number(`
SELECT count(*) FROM (SELECT DISTINCT ON (key) key, id FROM public.asked ORDER BY key, n DESC) a
 WHERE a.id <> ALL (SELECT w.id FROM public.worked w WHERE w.key = a.key AND w.job = (SELECT l.job FROM public.worked l WHERE l.key = a.key ORDER BY l.n DESC LIMIT 1))`))
				if keep == queue.KeepMerged {
					assert.Zero(t, b.number(`SELECT count(*) FROM public.asked a WHERE NOT EXISTS (SELECT FROM public.worked w WHERE w.id = a.id)`), "each request is worked")
				}
			})
		}
	}
}

// askForNotes asks for all keys, again and again: in one call, or for one key in a transaction that
// takes a while.
func (b *bundle) askForNotes(caller int, level pgx.TxIsoLevel, o queue.JobOptions) error {
	for round := range debounceRounds {
		id := fmt.Sprint(caller, "/", round)
		keys := rand.Perm(debouncedKeys)
		if round%2 == 0 {
			keys = keys[:1]
		}
		err := errors.New("not tried")
		for err != nil {
			err = pgx.BeginTxFunc(b.t.Context(), b.Pool, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
				return askInTx(b.t.Context(), tx, keys, id, o)
			})
			if e, ok := errors.AsType[*pgconn.PgError](err); err != nil && (!ok || e.Code != "40001" || level == pgx.ReadCommitted) {
				return fmt.Errorf("request %s: %w", id, err)
			}
		}
	}
	return nil
}

func askInTx(ctx context.Context, tx pgx.Tx, keys []int, id string, o queue.JobOptions) error {
	jobs := make([]queue.NewJob, len(keys))
	for i, k := range keys {
		o.Debounce.Key = fmt.Sprint("key ", k)
		jobs[i] = queue.NewJob{OrgID: org, Payload: note{o.Debounce.Key, []string{fmt.Sprint(id, "/", k)}}, Options: o}
	}
	var err error
	if len(jobs) == 1 {
		_, err = queue.EnqueueJob(ctx, tx, org, jobs[0].Payload, jobs[0].Options)
	} else {
		_, err = queue.EnqueueJobs(ctx, tx, jobs)
	}
	for i := range jobs {
		if err == nil {
			// After the request, under its lock: so n has the order in which the requests for a key count.
			n := jobs[i].Payload.(note)
			_, err = tx.Exec(ctx, `INSERT INTO public.asked (key, id) VALUES ($1, $2)`, n.Key, n.IDs[0])
		}
	}
	return err
}

// workNotes works jobs as the statements of a worker do: lease, then completion, or in one
// transaction. A fifth of the attempts fails once.
func (b *bundle) workNotes(stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		if err := b.workNote(); err != nil {
			return err
		}
	}
}

func (b *bundle) workNote() error {
	ctx, picked := b.t.Context(), rand.IntN(2) == 0
	var j models.Job
	var p note
	err := pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error {
		const due = `SELECT id, payload, run_count FROM daybook.jobs WHERE state = 'pending' AND ready_at <= clock_timestamp() ORDER BY random() LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED`
		err := tx.QueryRow(ctx, due).Scan(&j.ID, &j.Payload, &j.RunCount)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(j.Payload, &p); err != nil {
			return err
		}
		if picked {
			return endNote(ctx, tx, j, p)
		}
		_, err = tx.Exec(ctx, `
UPDATE daybook.jobs SET state = 'leased', working = true, run_count = run_count + 1, turn_id = 't', fence = 1, leased_generation = generation, worker = 'w',
       attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp() WHERE id = $1`, j.ID)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		time.Sleep(time.Millisecond)
		_, err = b.Pool.Exec(ctx, `SELECT daybook.check_waits()`)
		return err
	}
	if err != nil || picked {
		return err
	}
	time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
	return pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error { return endNote(ctx, tx, j, p) })
}

// endNote ends an attempt, and leaves a row for each request that it worked.
func endNote(ctx context.Context, tx pgx.Tx, j models.Job, p note) error {
	const lease = `turn_id = NULL, fence = NULL, leased_generation = NULL, attempt_started_at = NULL, worker = NULL, working = false,
		last_attempted_at = clock_timestamp()`
	if j.RunCount == 0 && rand.IntN(5) == 0 {
		_, err := tx.Exec(ctx, `UPDATE daybook.jobs SET state = 'pending', run_count = 1, ready_at = clock_timestamp() + interval '3 ms', `+lease+` WHERE id = $1`, j.ID)
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE daybook.jobs SET state = 'completed', finished_at = clock_timestamp(), `+lease+` WHERE id = $1`, j.ID)
	for _, id := range p.IDs {
		if err == nil {
			_, err = tx.Exec(ctx, `INSERT INTO public.worked (job, key, id) VALUES ($1, $2, $3)`, j.ID, p.Key, id)
		}
	}
	return err
}

func (b *bundle) number(query string) (n int) {
	b.t.Helper()
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(), query).Scan(&n))
	return n
}
