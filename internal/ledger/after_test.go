package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// withAfter has f told by the bundle's engine what is posted.
func (b *bundle) withAfter(f ledger.AfterPosting, o engine.Options) {
	o.Log = slog.New(slog.DiscardHandler)
	l := ledger.New(nil).WithHooks(ledger.Hooks{"follow": f})
	kind, err := store.AccountingFor(l.Abilities())
	require.NoError(b.t, err)
	b.engine = engine.New(store.NewQueue(b.Pool, kind), l, o)
	b.t.Cleanup(b.engine.Close)
	_, err = b.Pool.Exec(b.t.Context(), `SELECT daybook.set_default_hooks('{follow}')`)
	require.NoError(b.t, err)
	_, err = b.Pool.Exec(b.t.Context(),
		`CREATE TABLE followed (impact_id bigint PRIMARY KEY, document_id text, kind text, number text)`)
	require.NoError(b.t, err)
}

// follow writes a row for each impact, and fails for the document that is named.
func follow(refused string, err error) ledger.AfterPosting {
	return func(ctx context.Context, tx pgx.Tx, posted []ledger.Posted) error {
		for _, p := range posted {
			number := "gone"
			if p.Document != nil {
				number = p.Document.Content.Number
			}
			if _, err := tx.Exec(ctx, `INSERT INTO followed VALUES ($1, $2, $3, $4)`, p.Impact.ID, p.Impact.DocumentID,
				string(p.Impact.Kind), number); err != nil {
				return err
			}
			if p.Impact.DocumentID == refused {
				return err
			}
		}
		return nil
	}
}

func (b *bundle) followed(where string) int {
	b.t.Helper()
	return fixture.Count(b.t, b.Pool,
		`SELECT count(*) FROM followed f JOIN daybook.impacts i ON i.id = f.impact_id AND i.kind::text = f.kind AND `+where)
}

// TestAfterPosting tells of posts and of what takes them back, once each.
func TestAfterPosting(t *testing.T) {
	t.Parallel()
	for _, direct := range []bool{false, true} {
		t.Run(fmt.Sprint("direct ", direct), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.withAfter(follow("", nil), engine.Options{Direct: direct, ChunkSize: 7})
			fixture.ManyReady(t, b.Pool, org, "doc-", 30)
			fixture.Ready(t, b.Pool, fixture.Unbalanced(org, "bad"), fixture.Invoice(org, "inv", 1000))
			r := b.work()
			assert.Equal(t, 31, r.Completed)
			assert.Equal(t, 31, b.followed("f.kind = 'post'"))
			assert.Equal(t, 1, b.followed("f.number = 'inv'"))

			// A version with the same content only confirms.
			fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv", 1000))
			b.work()
			assert.Equal(t, 31, b.followed("true"))

			fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv", 2000))
			b.work()
			assert.Equal(t, 3, b.followed("f.document_id = 'inv'"), "post, reversal, post")

			b.tx(func(ctx context.Context, tx pgx.Tx) {
				_, err := store.MarkDocumentDeleted(ctx, tx, org, "inv")
				require.NoError(t, err)
			})
			b.work()
			assert.Equal(t, 2, b.followed("f.document_id = 'inv' AND f.kind = 'reverse'"))
		})
	}
}

// TestAfterPostingFails undoes what was posted with the error, and nothing else.
func TestAfterPostingFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		code  models.ErrorCode
		state models.JobState
	}{
		"any error": {errors.New("no luck"), models.CodeProcessorError, models.JobPending},
		"with a code": {
			models.Errorf(models.CodeDocumentInvalid, "no luck"), models.CodeDocumentInvalid,
			models.JobFailed,
		},
		"of the tx": {nil, models.CodeDatabaseError, models.JobPending},
		"it panics": {nil, models.CodeProcessorError, models.JobPending},
		"other's code": {
			fmt.Errorf("follow: %w", models.Errorf(models.CodeNoMatchingRule, "no luck")),
			models.CodeNoMatchingRule, models.JobFailed,
		},
	} {
		for _, direct := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", direct ", direct), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				f := follow("doc-13", c.err)
				if c.err == nil {
					plain := follow("", nil)
					f = func(ctx context.Context, tx pgx.Tx, posted []ledger.Posted) error {
						for _, p := range posted {
							if p.Impact.DocumentID != "doc-13" {
								continue
							}
							if name == "it panics" {
								panic("oh no")
							}
							if _, err := tx.Exec(ctx, `SELECT 1 / 0`); err != nil {
								return err
							}
						}
						return plain(ctx, tx, posted)
					}
				}
				b.withAfter(f, engine.Options{Direct: direct})
				fixture.ManyReady(t, b.Pool, org, "doc-", 30)
				r := b.work()
				assert.Equal(t, 29, r.Completed)
				assert.Equal(t, 29, b.followed("f.kind = 'post'"))
				assert.Equal(t, 29, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.impacts`))
				job := fixture.Job(t, b.Pool, org, "doc-13")
				assert.Equal(t, c.state, job.State)
				assert.Equal(t, c.code, *job.LastErrorCode)
				assert.Empty(t, b.impacts("doc-13"))
			})
		}
	}
}

// TestHookThatEndsTheTransaction: a hook that commits, or rolls back, has nothing posted of what it
// was told, and the others go on.
func TestHookThatEndsTheTransaction(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"Commit":   func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) },
		"Rollback": func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) },
		"a failed statement": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `SELECT 1/0`)
			assert.Error(t, err)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.withAfter(func(ctx context.Context, tx pgx.Tx, posted []ledger.Posted) error {
				for _, p := range posted {
					if p.Impact.DocumentID == "bad" {
						return end(ctx, tx)
					}
				}
				return follow("", nil)(ctx, tx, posted)
			}, engine.Options{})
			fixture.ManyReady(t, b.Pool, org, "doc-", 10)
			fixture.Ready(t, b.Pool, fixture.Invoice(org, "bad", 1000))
			b.work()
			assert.Equal(t, 10, b.followed("f.kind = 'post'"))
			assert.Empty(t, fixture.Impacts(t, b.Pool, org, "bad"))
			j := fixture.Job(t, b.Pool, org, "bad")
			assert.Equal(t, models.CodeProcessorError, *j.LastErrorCode)
			assert.Contains(t, *j.LastError, "hook follow: ")
			assert.Contains(t, *j.LastError, "return")
		})
	}
}

// TestHookThatAsksForAnotherDocument has a hook change another document of the chunk, and ask for
// it anew: the request is not swallowed by the attempt that is under way.
func TestHookThatAsksForAnotherDocument(t *testing.T) {
	t.Parallel()
	for _, direct := range []bool{false, true} {
		t.Run(fmt.Sprint("direct ", direct), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.withAfter(func(ctx context.Context, tx pgx.Tx, posted []ledger.Posted) error {
				for _, p := range posted {
					if p.Impact.DocumentID != "a" {
						continue
					}
					if _, err := ledgerdb.PutDocument(ctx, tx, fixture.Invoice(org, "b", 2000)); err != nil {
						return err
					}
					if _, err := store.MarkDocumentReady(ctx, tx, org, "b", models.PriorityNormal); err != nil {
						return err
					}
				}
				return nil
			}, engine.Options{Direct: direct})
			fixture.Ready(t, b.Pool, fixture.Invoice(org, "a", 1000), fixture.Invoice(org, "b", 1000))
			b.work()
			b.work()
			j := fixture.Job(t, b.Pool, org, "b")
			assert.Equal(t, models.JobCompleted, j.State)
			assert.EqualValues(t, 2, j.VersionHint)
			impacts := b.impacts("b")
			require.NotEmpty(t, impacts)
			assert.EqualValues(t, 2, impacts[len(impacts)-1].DocumentVersion, "what the hook asked for is posted")
		})
	}
}

// texts returns what a query of one column of text finds.
func (b *bundle) texts(query string) []string {
	b.t.Helper()
	rows, err := b.Pool.Query(b.t.Context(), query)
	require.NoError(b.t, err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(b.t, err)
	return found
}

// TestHookThatChangesTheOrganization has a hook close the period that it is told of, or pause the
// organization, in the worker's own transaction, while other transactions of the worker post for
// the same organization. Each waits for those of the others that it has to, and for none that waits
// for it.
func TestHookThatChangesTheOrganization(t *testing.T) {
	t.Parallel()
	const documents = 60
	for name, c := range map[string]struct {
		change func(ctx context.Context, tx pgx.Tx) error
		// rest is what becomes of the documents that are not posted. What a transaction had begun, or
		// would have, while the configuration was being changed is left for later first, uncounted.
		rest string
	}{
		"closes the period": {
			func(ctx context.Context, tx pgx.Tx) error { return ledgerdb.ClosePeriod(ctx, tx, org, march(1)) },
			`state = 'failed' AND last_error_code = 'PERIOD_CLOSED'`,
		},
		"pauses the organization": {
			func(ctx context.Context, tx pgx.Tx) error {
				_, err := store.PauseOrganization(ctx, tx, org)
				return err
			},
			`state = 'pending' AND run_count = 0`,
		},
	} {
		for _, direct := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", direct ", direct), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				b.addPeriods(models.Period{StartsOn: march(1), EndsOn: march(31)})
				b.withAfter(func(ctx context.Context, tx pgx.Tx, posted []ledger.Posted) error {
					if err := follow("", nil)(ctx, tx, posted); err != nil {
						return err
					}
					return c.change(ctx, tx)
				}, engine.Options{Direct: direct, ChunkSize: 7})
				fixture.ManyReady(t, b.Pool, org, "doc-", documents)
				done := make(chan struct{})
				var workers sync.WaitGroup
				for n := range 3 {
					turn := store.Turn{ID: fmt.Sprintf("run/%d/1", n), Worker: "test", WorkflowRunID: "run"}
					workers.Go(func() {
						_, err := b.engine.Process(t.Context(), engine.TurnRequest{Turn: turn, Batch: 50, Length: time.Minute})
						assert.NoError(t, err)
					})
				}
				go func() {
					workers.Wait()
					close(done)
				}()
				select {
				case <-done:
				case <-time.After(time.Minute):
					t.Fatal("the workers wait for each other: " +
						fmt.Sprint(b.texts(`SELECT coalesce(wait_event, '') || ' ' || left(query, 100) FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle'`)))
				}
				posted := fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.impacts`)
				assert.Zero(t, fixture.Count(t, b.Pool,
					`SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'pending' AND run_count > 0`))
				// An organization whose configuration another transaction was changing is left alone for a
				// while.
				require.Eventually(t, func() bool {
					b.exec(`UPDATE daybook.accounting_work_queue SET ready_at = clock_timestamp() WHERE state = 'pending'`)
					turn := store.Turn{ID: "run/3/1", Worker: "test", WorkflowRunID: "run"}
					_, err := b.engine.Process(t.Context(), engine.TurnRequest{Turn: turn, Batch: 50, Length: time.Minute})
					return assert.NoError(t, err) &&
						fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.accounting_work_queue WHERE NOT (state = 'completed' OR `+c.rest+`)`) == 0
				}, time.Minute, 100*time.Millisecond)
				t.Log(posted, b.texts(`SELECT state || ' ' || run_count || ' ' || coalesce(last_error_code, '-') || ' ' || count(*) FROM daybook.accounting_work_queue GROUP BY state, run_count, last_error_code`))
				assert.Positive(t, posted)
				assert.Equal(t, posted, b.followed("f.kind = 'post'"))
				assert.Equal(t, posted, fixture.Count(t, b.Pool,
					`SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'completed'`))
				assert.Equal(t, documents-posted,
					fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.accounting_work_queue WHERE `+c.rest))
			})
		}
	}
}
