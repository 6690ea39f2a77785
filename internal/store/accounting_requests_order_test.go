package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
)

// rowsOf asks for a version of each document.
func rowsOf(version int64, documents ...string) store.AccountingJobRows {
	rows := store.AccountingJobRows{Documents: documents}
	for range documents {
		rows.Orgs = append(rows.Orgs, org)
		rows.Versions = append(rows.Versions, version)
		rows.ReadyAts = append(rows.ReadyAts, nil)
		rows.Priorities = append(rows.Priorities, 2)
	}
	return rows
}

// awaitsLock returns when a session of the database waits for another transaction.
func (b *bundle) awaitsLock() {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		return fixture.Count(b.t, b.Pool,
			`SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock'`, b.Name) > 0
	}, pgtest.Patience, 5*time.Millisecond, "no session waits for another transaction")
}

// A bulk request locks what is there before it inserts what comes after it.
func TestBulkRequestKeepsToTheOrderOfKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := store.EnqueueAccountingJob(t.Context(), b.Pool, org, "a-old", 1, nil, 0)
	require.NoError(t, err)
	one, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = one.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = store.EnqueueAccountingJob(t.Context(), one, org, "a-old", 2, nil, 0)
	require.NoError(t, err)
	bulk := make(chan error, 1)
	go func() {
		bulk <- store.Begin(t.Context(), b.Pool, func(tx pgx.Tx) error {
			_, err := store.EnqueueAccountingJobs(t.Context(), tx, rowsOf(3, "b-new", "a-old"))
			return err
		})
	}()
	b.awaitsLock()
	_, err = store.EnqueueAccountingJob(t.Context(), one, org, "b-new", 1, nil, 0)
	assert.NoError(t, err, "one by one, in the order of the keys")
	require.NoError(t, one.Commit(t.Context()))
	assert.NoError(t, <-bulk, "in bulk")
	assert.Equal(t, 2, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.accounting_work_queue WHERE version_hint = 3`))
}

// Bulk requests in any order, beside single ones in the order of the keys: no deadlock, and the
// newest version stands.
func TestBulkAndSingleRequestsDoNotDeadlock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const documents, rounds = 40, 30
	name := func(n int) string { return fmt.Sprintf("doc-%02d", n) }
	var all sync.WaitGroup
	for writer := range 6 {
		random := rand.New(rand.NewPCG(7, uint64(writer)))
		all.Go(func() {
			for round := range rounds {
				version := int64(round*10 + writer)
				err := store.Begin(t.Context(), b.Pool, func(tx pgx.Tx) error {
					if writer%2 == 0 {
						var some []string
						for _, n := range random.Perm(documents)[:20] {
							some = append(some, name(n))
						}
						_, err := store.EnqueueAccountingJobs(t.Context(), tx, rowsOf(version, some...))
						return err
					}
					for n := range documents {
						if random.IntN(4) > 0 {
							continue
						}
						if _, err := store.EnqueueAccountingJob(t.Context(), tx, org, name(n), version, nil, 0); err != nil {
							return err
						}
					}
					return nil
				})
				assert.NoError(t, err)
				if writer == 0 {
					// New documents again and again: they are what the two ways treat differently.
					_, err := b.Pool.Exec(t.Context(), `
DELETE FROM daybook.accounting_work_queue WHERE id IN (SELECT id FROM daybook.accounting_work_queue ORDER BY random() LIMIT 10 FOR UPDATE SKIP LOCKED)`)
					assert.NoError(t, err)
				}
			}
		})
	}
	all.Wait()
}

// Between a bulk request's look and its inserts another transaction may enqueue the same documents.
func TestBulkRequestsForTheSameNewDocuments(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = one.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = store.EnqueueAccountingJobs(t.Context(), one, rowsOf(1, "b", "c"))
	require.NoError(t, err)
	type answer struct {
		done []store.Requested
		err  error
	}
	other := make(chan answer, 1)
	go func() {
		var a answer
		a.err = store.Begin(t.Context(), b.Pool, func(tx pgx.Tx) (err error) {
			a.done, err = store.EnqueueAccountingJobs(t.Context(), tx, rowsOf(2, "d", "c", "b", "a", "a"))
			return err
		})
		other <- a
	}()
	b.awaitsLock()
	require.NoError(t, one.Commit(t.Context()))
	a := <-other
	require.NoError(t, a.err)
	var results []string
	for _, r := range a.done {
		results = append(results, r.Result)
	}
	assert.Equal(t, []string{"enqueued", "coalesced", "coalesced", "enqueued", "unchanged"}, results)
	assert.Equal(t, 4, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.accounting_work_queue WHERE version_hint = 2`))
}

// No row can hold a time that a worker could not read, whichever program writes it.
func TestTimesThatCannotBeReadAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.enqueue_accounting_job('org_1', 'a', 1)`)
	for _, column := range []string{"ready_at", "first_ready_at", "created_at", "updated_at", "last_attempted_at"} {
		for _, value := range []string{"infinity", "-infinity", "0001-01-01 00:00:00+00 BC", "10000-01-01 00:00:00+00"} {
			_, err := b.Pool.Exec(t.Context(), `UPDATE daybook.accounting_work_queue SET `+column+` = '`+value+`'`)
			assert.Equal(t, "23514", store.SQLState(err), "%s = %s", column, value)
		}
	}
	for _, stmt := range []string{
		`SELECT daybook.enqueue_accounting_job('org_1', 'b', 1, 'infinity')`,
		`SELECT daybook.enqueue_accounting_job('org_1', 'b', 1, '10000-01-01 00:00:00+00')`,
		`SELECT daybook.enqueue_accounting_jobs(ARRAY['org_1', 'org_1'], ARRAY['b', 'c'], ARRAY[1, 1], ARRAY[now(), 'infinity'])`,
		`SELECT daybook.mark_accounting_job_pending('org_1', 'a', NULL, 'Infinity')`,
	} {
		_, err := b.Pool.Exec(t.Context(), stmt)
		assert.Equal(t, "DB010", store.SQLState(err), stmt)
	}
	b.exec(`SELECT daybook.enqueue_accounting_job('org_1', 'past', 1, '-infinity')`)
	leased, err := b.store.LeaseFor(t.Context(), b.turn("run/0/1"), 10, pgtest.Unbounded())
	require.NoError(t, err)
	assert.Len(t, leased.Jobs, 2, "what is due since ever is due")
}
