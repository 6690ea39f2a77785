package source_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/daybooktest"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/queue/source"
)

const schema = `
CREATE TABLE invoices (org text, id bigint, version bigint DEFAULT 1, ready_at timestamptz DEFAULT now(), deleted_at timestamptz, document jsonb, posted boolean, PRIMARY KEY (org, id));
CREATE TABLE payments (org text, id uuid, cents bigint, PRIMARY KEY (org, id))`

func TestMain(m *testing.M) {
	daybooktest.Main(m, daybooktest.Options{Migrate: daybooktest.SQL(schema)})
}

var invoices = source.SQL[int64]{
	Namespace: "invoice",
	Lock: `
SELECT k.n FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS k (org, id, n) JOIN invoices i ON i.org = k.org AND i.id = k.id
   FOR NO KEY UPDATE OF i SKIP LOCKED`,
	Read: `
SELECT k.n, version, ready_at, deleted_at, document
  FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS k (org, id, n) JOIN invoices i ON i.org = k.org AND i.id = k.id`,
	SetPosted: `
UPDATE invoices i SET posted = k.live FROM unnest($1::text[], $2::bigint[], $3::boolean[]) AS k (org, id, live) WHERE i.org = k.org AND i.id = k.id`,
}

var payments = source.SQL[[16]byte]{
	Namespace: "payment",
	Lock: `
SELECT k.n FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS k (org, id, n) JOIN payments p ON p.org = k.org AND p.id = k.id
   FOR NO KEY UPDATE OF p SKIP LOCKED`,
	Read: `
SELECT k.n, 1::bigint AS version, now() AS ready_at, NULL::timestamptz AS deleted_at,
       jsonb_build_object('type', 'payment', 'direction', 'in', 'currency', 'EUR', 'issue_date', '2026-01-31', 'content', jsonb_build_object('amount', cents)) AS document
  FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS k (org, id, n) JOIN payments p ON p.org = k.org AND p.id = k.id`,
}

const aPayment = "0b7e1152-43d9-4f0a-9c1d-5ae034fedcba"

// ask asks a source for documents of acme in a transaction that is rolled back.
func ask(t *testing.T, db *daybooktest.DB, s accounting.Source, ids ...string) []accounting.Found {
	t.Helper()
	tx, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	var keys []accounting.Key
	for _, id := range ids {
		keys = append(keys, accounting.Key{OrgID: "acme", ID: id})
	}
	found, err := s.LockAndRead(t.Context(), tx, keys)
	require.NoError(t, err)
	require.Len(t, found, len(keys))
	return found
}

func exec(t *testing.T, db *daybooktest.DB, statement string, args ...any) {
	t.Helper()
	_, err := db.Pool.Exec(t.Context(), statement, args...)
	require.NoError(t, err)
}

func states(found []accounting.Found) (s []accounting.State) {
	for _, f := range found {
		s = append(s, f.State)
	}
	return s
}

const aDocument = `{"type": "invoice", "direction": "out", "currency": "EUR", "issue_date": "2026-01-31", "content": {"total": 11900, "payable": 11900}}`

func setup(t *testing.T) (*daybooktest.DB, accounting.Source) {
	t.Helper()
	db := daybooktest.New(t)
	s, err := source.New(invoices, payments)
	require.NoError(t, err)
	exec(t, db, `INSERT INTO payments VALUES ('acme', $1, 11900)`, aPayment)
	exec(t, db, `INSERT INTO invoices (org, id, version, document) SELECT 'acme', n, 7, $1 FROM generate_series(1, 3) n`,
		aDocument)
	return db, s
}

func TestATableMustNotBeNil(t *testing.T) {
	t.Parallel()
	_, err := source.New(nil)
	require.ErrorContains(t, err, "table 1 is nil")
}

func TestEachKeyGetsItsAnswer(t *testing.T) {
	t.Parallel()
	db, s := setup(t)
	exec(t, db, `UPDATE invoices SET deleted_at = now() WHERE id = 2`)
	tx, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(), `SELECT FROM invoices WHERE id = 3 FOR UPDATE`)
	require.NoError(t, err)

	found := ask(t, db, s, "invoice:4", "invoice:1", "payment:"+aPayment, "invoice:2", "invoice:3")
	assert.Equal(t, []accounting.State{
		accounting.Unknown, accounting.Here, accounting.Here, accounting.Deleted,
		accounting.Locked,
	}, states(found))
	d := found[1].Document
	assert.NoError(t, found[1].Err)
	assert.Equal(t, models.DocumentInvoice, d.Type)
	assert.Equal(t, "invoice:1", d.ID)
	assert.Equal(t, "acme", d.OrgID)
	assert.Equal(t, int64(7), d.AccountingReadyVersion)
	assert.NotNil(t, d.AccountingReadyAt)
	assert.Equal(t, models.NewDate(2026, 1, 31), d.IssueDate)
	assert.Equal(t, int64(11900), d.Content.Payable)
	assert.Equal(t, int64(11900), found[2].Document.Content.Amount)
}

// TestARowIsOneDocument: a row that were found under two ids would be posted twice.
func TestARowIsOneDocument(t *testing.T) {
	t.Parallel()
	db, s := setup(t)
	for _, f := range ask(t, db, s, "invoice:01", "invoice:+1", "invoice: 1", "1", "invoice", "invoice:x", "other:1",
		":1", "invoice:1:", "payment:"+strings.ToUpper(aPayment), "invoice:"+aPayment) {
		assert.Equal(t, accounting.Unknown, f.State)
	}
}

func TestADocumentThatCannotBeReadFailsAlone(t *testing.T) {
	t.Parallel()
	db, s := setup(t)
	wrong := []struct{ document, want string }{
		{`{"typ": "invoice"}`, `document: there is no field "typ"`},
		{
			`{"content": {"total": "11900"}}`,
			`document: /content/total is a text, and a whole number that fits into 64 bits is wanted`,
		},
		{`{"content": {"total": 9223372036854775808}}`, `document: /content/total is 9223372036854775808`},
		{`{"content": {"Total": 2}}`, `document: there is no field "Total": write "total"`},
		{`{"issue_date": "2026-02-30"}`, `document: /issue_date: date 2026-02-30: there is no such day`},
		{`[]`, `document: it is a list, and an object is wanted`},
		{``, `document: it is null`},
	}
	ids := []string{"invoice:1"}
	for i, w := range wrong {
		exec(t, db, `INSERT INTO invoices (org, id, document) VALUES ('acme', $1, NULLIF($2::text, '')::jsonb)`, 10+i,
			w.document)
		ids = append(ids, fmt.Sprintf("invoice:%d", 10+i))
	}
	found := ask(t, db, s, ids...)
	assert.NoError(t, found[0].Err)
	for i, f := range found[1:] {
		assert.Equal(t, accounting.Here, f.State)
		assert.ErrorContains(t, f.Err, wrong[i].want)
		assert.NotNil(t, f.Document.AccountingReadyAt)
	}
}

func TestADocumentThatIsNotReadyNeedsNoContent(t *testing.T) {
	t.Parallel()
	db, s := setup(t)
	exec(t, db, `UPDATE invoices SET ready_at = NULL, document = NULL`)
	f := ask(t, db, s, "invoice:1")[0]
	assert.Equal(t, accounting.Here, f.State)
	assert.NoError(t, f.Err)
	assert.Nil(t, f.Document.AccountingReadyAt)
}

// TestLargeDocumentsAreReadLater: the first key is never put off, whatever its table.
func TestLargeDocumentsAreReadLater(t *testing.T) {
	t.Parallel()
	db, s := setup(t)
	exec(t, db, `INSERT INTO invoices (org, id, document) SELECT 'acme', n, jsonb_build_object('content', jsonb_build_object('number', repeat('x', 100000))) FROM generate_series(100, 199) n`)
	ids := []string{"payment:" + aPayment}
	for n := 100; n < 200; n++ {
		ids = append(ids, fmt.Sprintf("invoice:%d", n))
	}
	found := ask(t, db, s, ids...)
	assert.Equal(t, accounting.Here, found[0].State)
	assert.Equal(t, accounting.Here, found[1].State)
	assert.Equal(t, accounting.Later, found[100].State)
	last := ask(t, db, s, append(ids[1:], ids[0])...)
	assert.Equal(t, accounting.Here, last[0].State)
	assert.Equal(t, accounting.Later, last[100].State, "the payment's table comes after the invoices'")
}

func TestOneTableMayHaveNoNamespace(t *testing.T) {
	t.Parallel()
	db, _ := setup(t)
	table := invoices
	table.Namespace = ""
	s, err := source.New(table)
	require.NoError(t, err)
	assert.Equal(t, []accounting.State{accounting.Here, accounting.Unknown, accounting.Unknown},
		states(ask(t, db, s, "1", "invoice:1", "01")))
}

func TestTablesThatCannotBeTakenTogether(t *testing.T) {
	t.Parallel()
	nameless, colon := invoices, invoices
	nameless.Namespace, colon.Namespace = "", "a:b"
	for want, tables := range map[string][]source.Table{
		"there is no table":                       nil,
		`two tables have the namespace "invoice"`: {invoices, invoices},
		"must be the only one":                    {nameless, payments},
		"must not have a colon":                   {colon},
		"it needs Lock and Read":                  {source.SQL[int64]{Namespace: "invoice"}},
		`table "x": it needs Lock and Read`:       {source.Functions[string]{Namespace: "x"}},
	} {
		_, err := source.New(tables...)
		assert.ErrorContains(t, err, want)
	}
}

func TestAWrongStatementSaysWhichItIs(t *testing.T) {
	t.Parallel()
	db, _ := setup(t)
	tx, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	for want, change := range map[string]func(s *source.SQL[int64]){
		`documents of "invoice": Lock: position 0 of 1 keys`: func(s *source.SQL[int64]) {
			s.Lock = `SELECT 0::bigint WHERE $1::text[] IS NOT NULL AND $2::bigint[] IS NOT NULL`
		},
		`column 2 is called "more", which is none of them; the column version is missing`: func(s *source.SQL[int64]) {
			s.Read = `SELECT 1::bigint AS n, 2 AS more WHERE $1::text[] IS NOT NULL AND $2::bigint[] IS NOT NULL`
		},
	} {
		table := invoices
		change(&table)
		s, err := source.New(table)
		require.NoError(t, err)
		_, err = s.LockAndRead(t.Context(), tx, []accounting.Key{{OrgID: "acme", ID: "invoice:1"}})
		assert.ErrorContains(t, err, want)
	}
}

// Invoices in a table of the application's own are posted, and marked in the transaction that
// posts.
func ExampleNew() {
	t := pgtest.NewExampleTB()
	defer t.Close()
	db := daybooktest.New(t)
	billing, err := source.New(invoices, payments)
	if err != nil {
		panic(err)
	}
	daybooktest.AddOrganization(t, db.Pool, daybooktest.Organization{ID: "acme", Source: "billing"})
	err = pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `INSERT INTO payments VALUES ('acme', $1, 11900)`, aPayment); err != nil {
			return err
		}
		_, err := queue.EnqueueAccountingJob(t.Context(), tx,
			queue.AccountingJob{OrgID: "acme", DocumentID: "payment:" + aPayment, Version: 1})
		return err
	})
	if err != nil {
		panic(err)
	}

	sources := accounting.Sources{"billing": billing}
	queuetest.DrainAccounting(t, db.Pool, queuetest.AccountingOptions{Sources: sources}).RequireCompleted(t)
	fmt.Println(daybooktest.Balances(t, db.Pool, "acme", "EUR"))
	queuetest.RequireSound(t, db.Pool, sources)
	// Output: map[1200:-11900 1360:11900]
}
