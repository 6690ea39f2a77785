package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

// TestNoStatementWalksDeadRows: beside an old snapshot stay the rows that waited and were leased
// since, and ANALYZE finds hardly any that are. Then each index of what waits or is leased seems to
// cost nothing, and one that is not made for the statement leads through all that died.
func TestNoStatementWalksDeadRows(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]*store.Kind{"jobs": store.Jobs, "accounting_work_queue": store.Accounting} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			counted := ""
			if kind == store.Jobs {
				counted = ", counted = true"
			}
			enqueue := func(from, to int) {
				if kind == store.Jobs {
					b.exec(`INSERT INTO daybook.jobs (org_id, type, payload, queue) SELECT 'org_' || i % 10, 'noop', '{}', CASE WHEN i % 2 = 0 THEN 'bounded' END FROM generate_series($1::int, $2::int) i`, from, to)
				} else {
					b.exec(`INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint) SELECT 'org_' || i % 10, 'doc_' || i, 1 FROM generate_series($1::int, $2::int) i`, from, to)
				}
			}
			b.exec(`INSERT INTO daybook.organizations (id, max_in_flight) SELECT 'org_' || i, CASE WHEN i < 5 THEN 3 END FROM generate_series(0, 9) i`)
			b.exec(`SELECT daybook.set_queue('bounded', NULL, 10), daybook.set_queue('bounded', per_process => 10)`)
			enqueue(1, 20000)
			b.holdSnapshot()
			// Renewed in an hour: none of them seems to have expired, however long the test takes.
			b.exec(`
UPDATE daybook.` + name + `
   SET state = 'leased', turn_id = 'turn-' || (random() * 100)::integer, fence = 1, worker = 'w', leased_generation = generation, run_count = 1, capped = true` + counted + `,
       attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp() + interval '1 hour'`)
			b.exec(`
UPDATE daybook.` + name + `
   SET state = 'cancelled', turn_id = NULL, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL, finished_at = clock_timestamp()`)
			b.exec(`ANALYZE daybook.` + name)
			enqueue(20001, 20100)

			var all []sent
			config := b.Pool.Config()
			config.ConnConfig.Tracer = tracer(func(sql string,
				args []any,
			) {
				all = append(all, sent{sql, slices.Clone(args)})
			})
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			require.NoError(t, err)
			defer pool.Close()
			s := store.NewQueue(pool, kind)
			pick, err := s.Pick(t.Context(), 20, pgtest.Unbounded())
			require.NoError(t, err)
			picking, turn := b.turn("run/0/0"), b.turn("run/0/1")
			var picked []store.Job
			require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) (err error) {
				if picked, err = pick.Lock(t.Context(), tx); err == nil {
					_, err = s.LeasePicked(t.Context(), tx, picking, picked, true)
				}
				return err
			}))
			require.NotEmpty(t, picked)
			leased, err := s.LeaseFor(t.Context(), turn, 50, limited{pgtest.Unbounded()})
			require.NoError(t, err)
			require.NotEmpty(t, leased.Jobs)
			ids := []string{leased.Jobs[0].ID, leased.Jobs[1].ID}
			held, err := s.Held(t.Context(), turn)
			require.NoError(t, err)
			assert.Len(t, held, len(leased.Jobs))
			renewed, err := s.Renew(t.Context(), turn, []string{}, 0)
			require.NoError(t, err)
			assert.Len(t, renewed.Held, len(leased.Jobs))
			require.NoError(t, s.MarkWaiting(t.Context(), turn, ids))
			begun, err := s.BeginWaiting(t.Context(), turn, append(ids, picked[0].ID))
			require.NoError(t, err)
			assert.ElementsMatch(t, ids, begun.Working)
			turns, err := s.TurnsWithLeases(t.Context(), []string{turn.ID, "run/0/9"})
			require.NoError(t, err)
			assert.Equal(t, []string{turn.ID}, turns)
			detached := turn.Detach()
			handed, err := s.HandOver(t.Context(), turn, detached, ids)
			require.NoError(t, err)
			assert.True(t, handed)
			n, err := s.GiveBack(t.Context(), turn, held[2:4], 0)
			require.NoError(t, err)
			assert.Equal(t, 2, n)
			later := b.turn("run/0/2")
			reclaimed, err := s.ReclaimTurns(t.Context(), later, []string{picking.ID}, true)
			require.NoError(t, err)
			assert.Len(t, reclaimed.Jobs, len(picked))
			_, err = s.ReclaimExpired(t.Context())
			require.NoError(t, err)

			checked := 0
			for _, statement := range all {
				if strings.Contains(statement.sql, "daybook."+name) {
					b.assertReadsFew(statement, name)
					checked++
				}
			}
			assert.Greater(t, checked, 12)
		})
	}
}

// limited is a room with a limit of each type over all workers.
type limited struct{ pgtest.Room }

func (limited) Everywhere(string) int { return 1000 }

// assertReadsFew runs a statement with the plan that a worker keeps of it, takes it back, and
// checks how much each scan of the queue has read. The key leads to one row each; what waits, and
// what is counted, is read by indexes that lead past what died of their own.
func (b *bundle) assertReadsFew(s sent, table string) {
	b.t.Helper()
	tx, err := b.Pool.Begin(b.t.Context())
	require.NoError(b.t, err)
	defer func() { require.NoError(b.t, tx.Rollback(b.t.Context())) }()
	require.NoError(b.t, store.PlanByKey(b.t.Context(), tx))
	if len(s.args) > 0 {
		if names, ok := s.args[0].(pgx.QueryRewriter); ok {
			s.sql, s.args, err = names.RewriteQuery(b.t.Context(), tx.Conn(), s.sql, s.args)
			require.NoError(b.t, err)
		}
	}
	_, err = tx.Exec(b.t.Context(), `PREPARE statement AS `+s.sql, pgx.QueryExecModeSimpleProtocol)
	require.NoError(b.t, err, s.sql)
	call := `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE statement`
	if len(s.args) > 0 {
		call += "($1"
		for i := range s.args[1:] {
			call += fmt.Sprintf(", $%d", i+2)
		}
		call += ")"
	}
	var text string
	require.NoError(b.t, tx.QueryRow(b.t.Context(), call,
		append([]any{pgx.QueryExecModeSimpleProtocol}, s.args...)...).Scan(&text), s.sql)
	_, err = tx.Exec(b.t.Context(), `DEALLOCATE statement`)
	require.NoError(b.t, err)
	var plans []struct{ Plan node }
	require.NoError(b.t, json.Unmarshal([]byte(text), &plans))
	plans[0].Plan.walk(func(n node) {
		own := slices.ContainsFunc([]string{"_pkey", "_due", "_ready", "_capped", "_counted", "_queue"},
			func(of string) bool { return n.Index == table+of })
		if n.Table == table && strings.HasSuffix(n.Type, "Scan") && !own {
			assert.Less(b.t, n.Hit+n.Read, 400, "%s by %s: %s", n.Type, n.Index, s.sql)
		}
	})
}

// holdSnapshot holds a snapshot until the test ends: what dies meanwhile stays where it is.
func (b *bundle) holdSnapshot() {
	b.t.Helper()
	old, err := b.Pool.BeginTx(b.t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = old.Rollback(context.WithoutCancel(b.t.Context())) })
	_, err = old.Exec(b.t.Context(), `SELECT FROM daybook.organizations`)
	require.NoError(b.t, err)
}

// mostPages calls a function several times in one session, because the plans that it keeps are made
// after some calls, and returns how many pages a call has read at most. Each call is in a
// transaction that begins with before, unless that is empty, and is rolled back.
func (b *bundle) mostPages(conn *pgxpool.Conn, before, call string, args ...any) (pages int) {
	b.t.Helper()
	for range 7 {
		tx, err := conn.Begin(b.t.Context())
		require.NoError(b.t, err)
		if before != "" {
			_, err = tx.Exec(b.t.Context(), before)
			require.NoError(b.t, err)
		}
		var text string
		require.NoError(b.t, tx.QueryRow(b.t.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM `+call,
			args...).Scan(&text), call)
		require.NoError(b.t, tx.Rollback(b.t.Context()))
		var plans []struct{ Plan node }
		require.NoError(b.t, json.Unmarshal([]byte(text), &plans))
		pages = max(pages, plans[0].Plan.Hit+plans[0].Plan.Read)
	}
	return pages
}
