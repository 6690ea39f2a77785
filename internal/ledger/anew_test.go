package ledger_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/audit"
)

func (b *bundle) exec(query string, args ...any) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), query, args...)
	require.NoError(b.t, err)
}

// TestVersionsNeverGoBack removes a posted document's row and writes the document anew.
func TestVersionsNeverGoBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before  func(b *bundle)
		highest int64
	}{
		"posted":    {func(*bundle) {}, 1},
		"changed":   {func(b *bundle) { fixture.Ready(b.t, b.Pool, fixture.Invoice(org, "doc", 3000)); b.work() }, 2},
		"confirmed": {func(b *bundle) { fixture.Ready(b.t, b.Pool, fixture.Invoice(org, "doc", 1000)); b.work() }, 2},
		"confirmed, its job removed": {func(b *bundle) {
			fixture.Ready(b.t, b.Pool, fixture.Invoice(org, "doc", 1000))
			b.work()
			b.exec(`DELETE FROM daybook.accounting_work_queue`)
		}, 2},
		"asked for, not posted yet": {func(b *bundle) { fixture.Ready(b.t, b.Pool, fixture.Invoice(org, "doc", 3000)) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
			b.work()
			c.before(b)
			b.exec(`DELETE FROM daybook.documents WHERE id = 'doc'`)
			assert.Greater(t, fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 5000)), c.highest)
			assert.Equal(t, 1, b.work().Completed)
			assert.EqualValues(t, 5950, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
			report, err := audit.Run(t.Context(), b.Pool, audit.Options{})
			require.NoError(t, err)
			assert.Zero(t, report.Wrong())
		})
	}
}

// TestInsertTellsTheVersion: a program that writes a ready document itself learns its version from
// RETURNING.
func TestInsertTellsTheVersion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
	b.work()
	b.tx(func(ctx context.Context, tx pgx.Tx) {
		var version int64
		require.NoError(t, tx.QueryRow(ctx, `
WITH gone AS (DELETE FROM daybook.documents RETURNING *)
SELECT accounting_ready_version FROM gone`).Scan(&version))
		require.NoError(t, tx.QueryRow(ctx, `
INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content, accounting_ready_at, accounting_ready_version)
VALUES ('org_1', 'doc', 'invoice', 'out', 'EUR', '2026-03-14', '{}', now(), 1) RETURNING accounting_ready_version`).Scan(&version))
		assert.EqualValues(t, 2, version)
		// What nothing is known of keeps its version.
		require.NoError(t, tx.QueryRow(ctx, `
INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content, accounting_ready_version)
VALUES ('org_1', 'new', 'invoice', 'out', 'EUR', '2026-03-14', '{}', 7) RETURNING accounting_ready_version`).Scan(&version))
		assert.EqualValues(t, 7, version)
	})
}
