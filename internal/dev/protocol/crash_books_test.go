package protocol_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// TestCrashWhileKeepingBooks: the commands of a month's end lose their connection, and are given once
// more. Each has done its work once, and the chain of closings goes on.
func TestCrashWhileKeepingBooks(t *testing.T) {
	t.Parallel()
	sharded(t, crashWhileKeepingBooks)
}

// bookkeeper gives the commands for one organization.
type bookkeeper struct {
	db   *pgtest.DB
	org  string
	undo int64 // the import that is undone
	key  ed25519.PrivateKey
}

func crashWhileKeepingBooks(t *testing.T, shard int) {
	t.Helper()
	db := pgtest.New(t)
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	var b bookkeeper
	turn := 0
	work := func() {
		turn++
		workOnce(t.Context(), engine.New(store.New(db.Pool), ledger.New(nil), quiet), turn, false)
	}
	eachCrash(t, shard, db, true, func(run int) {
		b = bookkeeper{db: db, org: fmt.Sprint("org-", run), key: private}
		b.begin(t)
		work()
	}, func(ctx context.Context, pool *pgxpool.Pool) { _ = b.monthEnd(ctx, pool) }, func(int, bool) {
		require.NoError(t, b.monthEnd(t.Context(), db.Pool))
		work()
		const count = `
SELECT concat_ws(' ', (SELECT count(*) FROM daybook.closings c WHERE c.org_id = o.id),
       (SELECT string_agg(r.document_id || ' ' || dense, ' ') FROM (SELECT document_id, dense_rank() OVER (ORDER BY group_id) AS dense
          FROM daybook.reconciled r WHERE r.org_id = o.id ORDER BY document_id) r),
       (SELECT string_agg(i.document_id || ' ' || i.kind, ' ' ORDER BY i.document_id, i.seq) FROM daybook.impacts i
         WHERE i.org_id = o.id AND i.document_id ~ '^(exchange|journal|year-end|imp)'))
  FROM daybook.organizations o WHERE o.id = $1`
		var found string
		require.NoError(t, db.Pool.QueryRow(t.Context(), count, b.org).Scan(&found))
		require.Equal(t, "2 a 1 b 2 p 1 q 2 exchange:2026-02-28/1 post imp post imp reverse journal:j post year-end:2025 post", found)
	})
	r, err := audit.Run(t.Context(), db.Pool, audit.Options{ClosingKey: public})
	require.NoError(t, err)
	for _, c := range r.Checks {
		require.Empty(t, c.Findings, c.Kind)
	}
}

// begin makes an organization with open items, an import, and a year to close.
func (b *bookkeeper) begin(t *testing.T) {
	t.Helper()
	ctx, pool := t.Context(), b.db.Pool
	fixture.Organization(t, pool, b.org)
	chart := []models.Account{{Code: "2900", Name: "Retained earnings", Type: models.AccountEquity}}
	_, err := books.PutAccounts(ctx, pool, b.org, chart, books.AccountsOptions{})
	require.NoError(t, err)
	_, err = books.SetOwnCurrency(ctx, pool, b.org, "EUR")
	require.NoError(t, err)
	rates, err := books.ParseRates([]byte("currency,valid_on,rate,source\nUSD,2025-10-01,0.9,x\nUSD,2026-02-01,0.92,x\n"))
	require.NoError(t, err)
	_, err = books.PutRates(ctx, pool, b.org, rates, books.PutRatesOptions{})
	require.NoError(t, err)
	_, err = books.AddPeriods(ctx, pool, b.org, []models.Period{books.Month(2025, 10), books.Month(2025, 11), books.Month(2025, 12)}, books.AddPeriodsOptions{})
	require.NoError(t, err)
	invoice := func(id string, day models.Date) *models.Document {
		d := fixture.Invoice(b.org, id, 1000)
		d.IssueDate, d.Currency = day, "USD"
		return d
	}
	payment := func(id string, refers ...string) *models.Document {
		return &models.Document{
			OrgID: b.org, ID: id, Type: models.DocumentPayment, Direction: models.DirectionIn, Currency: "USD",
			IssueDate: models.NewDate(2026, 2, 5), Content: models.Content{Amount: 1190, RefersTo: refers},
		}
	}
	fixture.Ready(t, pool, invoice("a", models.NewDate(2025, 11, 3)), invoice("b", models.NewDate(2025, 12, 4)),
		payment("p", "a"), payment("q"))
	b.undo, err = ledgerdb.BeginImport(ctx, pool, models.Import{OrgID: b.org, Format: "test", Files: "a.csv", Actor: "test"})
	require.NoError(t, err)
	fixture.Tx(t, pool, func(ctx context.Context, tx pgx.Tx) {
		d := invoice("imp", models.NewDate(2026, 1, 9))
		d.ImportID = &b.undo
		text, err := json.Marshal(d.Content)
		require.NoError(t, err)
		puts, err := ledgerdb.PutImported(ctx, tx, []ledgerdb.NewDocument{{Document: d, Text: string(text)}})
		require.NoError(t, err)
		_, err = queue.EnqueueAccountingJob(ctx, tx, queue.AccountingJob{OrgID: b.org, DocumentID: "imp", Version: puts[0].Version})
		require.NoError(t, err)
	})
}

// monthEnd gives the commands, until one fails.
func (b *bookkeeper) monthEnd(ctx context.Context, pool *pgxpool.Pool) error {
	for _, command := range []func() error{
		func() error { _, err := books.MatchOpenItems(ctx, pool, b.org, books.MatchOptions{}); return err },
		func() error {
			_, err := books.Reconcile(ctx, pool, b.org, []string{"b", "q"}, "by hand")
			return err
		},
		func() error {
			_, err := books.BookExchangeDifferences(ctx, pool, b.org, books.ExchangeBooking{
				Until: models.NewDate(2026, 2, 28), Adjustment: "1370", Gain: "4920", Loss: "6960",
			})
			return err
		},
		func() error {
			_, err := books.PutJournal(ctx, pool, b.org, books.Journal{
				ID: "j", Date: models.NewDate(2026, 1, 5), Currency: "EUR", Reason: "test", By: "test",
				Entries: []models.JournalEntry{{Account: "1200", Amount: 1}, {Account: "4400", Amount: -1}},
			})
			return err
		},
		func() error {
			_, err := books.CloseYear(ctx, pool, b.org, 2025, books.CloseYearOptions{To: "2900"})
			return err
		},
		func() error { _, err := books.UndoImport(ctx, pool, b.undo, books.UndoOptions{}); return err },
		func() error { return b.close(ctx, pool, 10) },
		func() error { return b.close(ctx, pool, 11) },
	} {
		if err := command(); err != nil {
			return err
		}
	}
	return nil
}

func (b *bookkeeper) close(ctx context.Context, pool *pgxpool.Pool, month time.Month) error {
	_, err := books.ClosePeriod(ctx, pool, b.org, books.Month(2025, month), books.CloseOptions{Key: b.key})
	return err
}
