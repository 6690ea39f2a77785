package source_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/daybooktest"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/queue/source"
)

const from = ` FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS k (org, id, n) JOIN invoices i ON i.org = k.org AND i.id = k.id`

// wrong are mistakes in the statements of a source, and what is said of each.
var wrong = map[string]struct {
	change func(s *source.SQL[int64])
	says   string
}{
	"an unnamed column": {func(s *source.SQL[int64]) {
		s.Read = `SELECT k.n, version, '2026-01-01'::timestamptz, deleted_at, document` + from
	}, `column 3 is called "timestamptz", which is none of them; the column ready_at is missing. It must return the columns n, version, ready_at, deleted_at and document, which are matched by name`},
	"a column without any name": {func(s *source.SQL[int64]) { s.Read = `SELECT k.n, 1 + 1, ready_at, deleted_at, document` + from }, `column 2 is called "?column?"`},
	"a column too much": {
		func(s *source.SQL[int64]) { s.Read = `SELECT k.n, i.*` + from },
		`column 2 is called "org"`,
	},
	"a column twice": {func(s *source.SQL[int64]) {
		s.Read = `SELECT k.n, version, version, ready_at, deleted_at, document` + from
	}, `column 3 is called version, as one before it is`},
	"a column of another type": {func(s *source.SQL[int64]) {
		s.Read = `SELECT k.n, 'x' AS version, ready_at, deleted_at, document` + from
	}, `the column version is of the type text, and must be bigint`},
	"a time that is a number": {func(s *source.SQL[int64]) { s.Read = `SELECT k.n, version, 7 AS ready_at, deleted_at, document` + from }, `the column ready_at is of the type int4, and must be timestamptz`},
	"a misspelt column":       {func(s *source.SQL[int64]) { s.Read = `SELECT k.n, version, redy_at, deleted_at, document` + from }, `column "redy_at" does not exist`},
	"no table": {func(s *source.SQL[int64]) {
		s.Lock = `SELECT 1::bigint FROM invoicez WHERE $1::text[] IS NOT NULL AND $2::bigint[] IS NOT NULL`
	}, `relation "invoicez" does not exist`},
	"no SQL": {func(s *source.SQL[int64]) { s.Read = `SELEKT 1` }, `Read: ERROR: syntax error`},
	"a parameter less": {
		func(s *source.SQL[int64]) { s.Lock = `SELECT 1::bigint WHERE $1::text[] IS NOT NULL` },
		`Lock: it has 1 parameters`,
	},
	"a parameter less, posted": {func(s *source.SQL[int64]) {
		s.SetPosted = `UPDATE invoices SET posted = true WHERE org = ANY ($1::text[])`
	}, `SetPosted: it has 1 parameters`},
	"SetPosted is misspelt": {
		func(s *source.SQL[int64]) { s.SetPosted = `UPDATE invoices SET poste = true` },
		`SetPosted: ERROR: column "poste"`,
	},
	"Lock returns rows": {
		func(s *source.SQL[int64]) { s.Lock = `SELECT k.n, i.id` + from },
		`Lock: it returns the columns (n int8, id int8), and must return one`,
	},
	"Lock returns texts": {
		func(s *source.SQL[int64]) { s.Lock = `SELECT k.n::text` + from },
		`Lock: it returns the columns (n text)`,
	},
}

// invoice puts one on record whose source is the shop.
func invoice(t *testing.T, db *daybooktest.DB) {
	t.Helper()
	daybooktest.AddOrganization(t, db.Pool, daybooktest.Organization{ID: "acme", Source: "shop"})
	const document = `{"type": "payment", "direction": "in", "currency": "EUR", "issue_date": "2026-01-31", "content": {"amount": 11900}}`
	exec(t, db, `INSERT INTO invoices (org, id, document) VALUES ('acme', 1, $1)`, document)
	_, err := queue.EnqueueAccountingJob(t.Context(), db.Pool,
		queue.AccountingJob{OrgID: "acme", DocumentID: "invoice:1", Version: 1})
	require.NoError(t, err)
}

// TestAWrongSourceIsRefused: what is wrong with a source's statements is found before a document is
// read, and names the statement and the column.
func TestAWrongSourceIsRefused(t *testing.T) {
	t.Parallel()
	db := daybooktest.New(t)
	for name, c := range wrong {
		table := invoices
		c.change(&table)
		s, err := source.New(table, payments)
		require.NoError(t, err, name)
		err = ledger.CheckSources(t.Context(), db.Pool, accounting.Sources{"billing": s})
		assert.ErrorContains(t, err, c.says, name)
		assert.ErrorContains(t, err, `SOURCE_INVALID: the document source billing: documents of "invoice": `, name)
	}
	right := invoices
	right.Read = `SELECT k.n, 1 AS version, now() AS "readyAt", NULL AS deleted_at, '{}' AS document` + from
	s, err := source.New(right, payments)
	require.NoError(t, err)
	assert.NoError(t, ledger.CheckSources(t.Context(), db.Pool, accounting.Sources{"billing": s}))
}

// TestASourceIsTriedWithADocument: what shows only when a row is read is found by a document that
// is on record. Nothing of that is kept.
func TestASourceIsTriedWithADocument(t *testing.T) {
	t.Parallel()
	db := daybooktest.New(t)
	invoice(t, db)
	for name, c := range map[string]struct {
		s    accounting.Source
		says string
	}{
		"a function that scans":  {functions(t, scanning), `can't scan into dest[1]`},
		"a function by name":     {functions(t, byName), `struct doesn't have corresponding row field`},
		"a function that panics": {functions(t, panicking), `it panicked: no such luck`},
		"a source of its own":    {own(func(context.Context, pgx.Tx) error { return nil }), `it answered for 0 of 1 keys`},
		"its statement": {own(func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `SELECT nothing FROM invoices`)
			return err
		}), `column "nothing" does not exist`},
	} {
		err := ledger.CheckSources(t.Context(), db.Pool, accounting.Sources{"shop": c.s})
		assert.ErrorContains(t, err, "SOURCE_INVALID: the document source shop: ", name)
		assert.ErrorContains(t, err, c.says, name)
	}
	for name, f := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"an error of another service": func(context.Context,
			pgx.Tx,
		) error {
			return errors.New("the rate service answered 500")
		},
		"an error of a value": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `SELECT 1 / 0`)
			return err
		},
		"a right that is lacking": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `DO $$ BEGIN RAISE 'no' USING ERRCODE = '42501'; END $$`)
			return err
		},
	} {
		assert.NoError(t, ledger.CheckSources(t.Context(), db.Pool, accounting.Sources{"shop": own(f)}), name)
	}
}

// own is a source without the package, which answers nothing.
type own func(ctx context.Context, tx pgx.Tx) error

func (f own) LockAndRead(ctx context.Context, tx pgx.Tx, _ []accounting.Key) ([]accounting.Found, error) {
	return nil, f(ctx, tx)
}

func (own) SetPosted(context.Context, pgx.Tx, []accounting.Key, []bool) error { return nil }

type read func(ctx context.Context, tx pgx.Tx, keys []source.Key[int64]) (map[source.Key[int64]]source.Row, error)

// functions is a source of invoices by functions.
func functions(t *testing.T, f read) accounting.Source {
	t.Helper()
	s, err := source.New(source.Functions[int64]{
		Namespace: "invoice", Read: f,
		Lock: func(_ context.Context, _ pgx.Tx, keys []source.Key[int64]) ([]source.Key[int64], error) {
			return keys, nil
		},
	})
	require.NoError(t, err)
	return s
}

func scanning(ctx context.Context, tx pgx.Tx, _ []source.Key[int64]) (map[source.Key[int64]]source.Row, error) {
	var org string
	var id int64
	return nil, tx.QueryRow(ctx, `SELECT org, org FROM invoices`).Scan(&org, &id)
}

func byName(ctx context.Context, tx pgx.Tx, _ []source.Key[int64]) (map[source.Key[int64]]source.Row, error) {
	rows, err := tx.Query(ctx, `SELECT org, id FROM invoices`)
	if err != nil {
		return nil, err
	}
	_, err = pgx.CollectRows(rows, pgx.RowToStructByName[struct{ Org string }])
	return nil, err
}

func panicking(context.Context, pgx.Tx, []source.Key[int64]) (map[source.Key[int64]]source.Row, error) {
	panic("no such luck")
}

// breaking is a source that is right until it breaks, as while a deployment changes its table.
type breaking struct {
	accounting.Source
	calls *int
}

func (s breaking) LockAndRead(ctx context.Context, tx pgx.Tx, keys []accounting.Key) ([]accounting.Found, error) {
	if *s.calls++; *s.calls > 1 {
		_, err := tx.Exec(ctx, `SELECT gone FROM invoices`)
		return nil, fmt.Errorf("read: %w", err)
	}
	return s.Source.LockAndRead(ctx, tx, keys)
}

// TestABrokenSourceIsSaidAtOnce: the job fails with a code that names the source, and is due again
// when a program starts whose source is right.
func TestABrokenSourceIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	db := daybooktest.New(t)
	right, err := source.New(invoices, payments)
	require.NoError(t, err)
	invoice(t, db)
	// It is right when it is tried.
	broken := queuetest.DrainAccounting(t, db.Pool,
		queuetest.AccountingOptions{Sources: accounting.Sources{"shop": breaking{right, new(int)}}}).Jobs[0]
	assert.Equal(t, models.JobFailed, broken.State)
	require.NotNil(t, broken.LastErrorCode)
	assert.Equal(t, models.CodeSourceInvalid, *broken.LastErrorCode)
	assert.Equal(t, `the document source shop: read: ERROR: column "gone" does not exist (SQLSTATE 42703)`,
		*broken.LastError)
	assert.Equal(t, 1, broken.RunCount)

	drained := queuetest.DrainAccounting(t, db.Pool,
		queuetest.AccountingOptions{Sources: accounting.Sources{"shop": right}})
	drained.RequireCompleted(t)
	assert.Len(t, drained.Jobs, 1)
}

// TestARowWithoutAVersionFailsAlone: a null where none may be is the document's fault.
func TestARowWithoutAVersionFailsAlone(t *testing.T) {
	t.Parallel()
	db, s := setup(t)
	exec(t, db, `INSERT INTO invoices (org, id, version, document) VALUES ('acme', 10, NULL, '{}')`)
	found := ask(t, db, s, "invoice:1", "invoice:10")
	assert.NoError(t, found[0].Err)
	assert.ErrorContains(t, found[1].Err, "the column version of Read is null")
}

// TestARowTwiceIsRefused: of two rows for one document one would be lost.
func TestARowTwiceIsRefused(t *testing.T) {
	t.Parallel()
	db, _ := setup(t)
	table := invoices
	table.Read += ` CROSS JOIN generate_series(1, 2)`
	s, err := source.New(table)
	require.NoError(t, err)
	err = pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		_, err := s.LockAndRead(t.Context(), tx, []accounting.Key{{OrgID: "acme", ID: "invoice:1"}})
		return err
	})
	assert.ErrorContains(t, err, "Read: two rows for position 1")
}
