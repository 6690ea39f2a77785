package ledgerdb

import (
	"context"
	"math/big"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// ExportFilter says which part of the ledger to export. The zero value is all of it.
type ExportFilter struct {
	// OrgID is the organization; empty: all.
	OrgID string
	// From and To are the first and the last posting date; no date: no limit.
	From, To models.Date
}

// ExportEntry is one line of an exported impact.
type ExportEntry struct {
	LineNo  int
	Account string
	Side    models.Side
	// Amount is in minor units of Currency and positive.
	Amount     int64
	Currency   string
	RuleLineID string
	// DocumentLine is the position, from 1, in the document's list that the rule line ran over; nil:
	// it ran over none.
	DocumentLine *int
	// Dimensions are what statements can be split by; nil: nothing.
	Dimensions models.Dimensions
}

// ExportImpact is an impact with its entries, in the order of their numbers.
type ExportImpact struct {
	models.Impact
	// Counterparty is what the document says now; empty: it names none, or it is not in
	// daybook.documents.
	Counterparty string
	// Reverses is the impact that this one mirrors; nil: it posts.
	Reverses *int64
	Entries  []ExportEntry
}

// ExportBalance is what was debited less what was credited to an account in a currency, summed up
// by the database.
type ExportBalance struct {
	OrgID, Account, Currency string
	// Balance is in minor units of Currency; it may be greater than 64 bits hold.
	Balance *big.Int
}

// ExportSpan is the first and the last posting date of impacts with entries; no dates: there are
// none.
type ExportSpan struct{ First, Last models.Date }

// ExportReader reads a part of the ledger as it was at one moment.
type ExportReader struct {
	tx   pgx.Tx
	args []any
}

// ReadExport calls read with a reader of what the filter selects. All that it reads is of one
// moment, and it holds no lock that a caller waits for.
func ReadExport(ctx context.Context, pool *pgxpool.Pool, f ExportFilter, read func(*ExportReader) error) error {
	err := store.ReadSnapshot(ctx, pool, func(tx pgx.Tx) error {
		return read(&ExportReader{tx: tx, args: []any{f.OrgID, timeOf(f.From), timeOf(f.To)}})
	})
	return store.Wrap("read the ledger", err)
}

// Accounts reads the charts of accounts, in the order of organizations and codes.
func (r *ExportReader) Accounts(ctx context.Context) ([]models.Account, error) {
	const stmt = `SELECT org_id, code, name, type FROM daybook.accounts WHERE $1 = '' OR org_id = $1 ORDER BY org_id, code`
	return store.Collect(ctx, r.tx, pgx.RowToStructByNameLax[models.Account], stmt, r.args[0])
}

// Span reads the first and the last posting date.
func (r *ExportReader) Span(ctx context.Context) (ExportSpan, error) {
	const stmt = `
SELECT min(posting_date), max(posting_date)
  FROM daybook.impacts
 WHERE entry_count > 0 AND ($1 = '' OR org_id = $1)
   AND ($2::date IS NULL OR posting_date >= $2) AND ($3::date IS NULL OR posting_date <= $3)`
	var s ExportSpan
	err := r.tx.QueryRow(ctx, stmt, r.args...).Scan(&s.First, &s.Last)
	return s, err
}

// Balances sums the entries by organization, account and currency, in that order. A balance of zero
// is one too.
func (r *ExportReader) Balances(ctx context.Context) ([]ExportBalance, error) {
	const stmt = `
SELECT e.org_id, e.account_code, e.currency, sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END)::text
  FROM daybook.entries e
  JOIN daybook.impacts i ON i.id = e.impact_id
 WHERE ($1 = '' OR i.org_id = $1)
   AND ($2::date IS NULL OR i.posting_date >= $2) AND ($3::date IS NULL OR i.posting_date <= $3)
 GROUP BY e.org_id, e.account_code, e.currency
 ORDER BY e.org_id, e.account_code, e.currency COLLATE "C"`
	return store.Collect(ctx, r.tx, func(row pgx.CollectableRow) (ExportBalance, error) {
		var b ExportBalance
		var sum string
		if err := row.Scan(&b.OrgID, &b.Account, &b.Currency, &sum); err != nil {
			return b, err
		}
		var err error
		b.Balance, err = WholeNumber(sum)
		return b, err
	}, stmt, r.args...)
}

// Parties calls f with each counterparty of an impact with entries, or where there is none the
// document's id, once and in the order of their bytes.
func (r *ExportReader) Parties(ctx context.Context, f func(string) error) error {
	const stmt = `
SELECT DISTINCT coalesce(nullif((SELECT d.content ->> 'counterparty' FROM daybook.documents d WHERE d.org_id = i.org_id AND d.id = i.document_id), ''),
                         i.document_id) COLLATE "C" AS party
  FROM daybook.impacts i
 WHERE i.entry_count > 0 AND ($1 = '' OR i.org_id = $1)
   AND ($2::date IS NULL OR i.posting_date >= $2) AND ($3::date IS NULL OR i.posting_date <= $3)
 ORDER BY party`
	var party string
	return store.Each(ctx, r.tx, []any{&party}, func() error { return f(party) }, stmt, r.args...)
}

// Dimensions reads the keys of the dimensions that entries have, in order.
func (r *ExportReader) Dimensions(ctx context.Context) ([]string, error) {
	const stmt = `
SELECT DISTINCT k.key COLLATE "C" AS key
  FROM daybook.entries e
  JOIN daybook.impacts i ON i.id = e.impact_id
 CROSS JOIN LATERAL jsonb_object_keys(e.dimensions) AS k (key)
 WHERE e.dimensions IS NOT NULL AND ($1 = '' OR i.org_id = $1)
   AND ($2::date IS NULL OR i.posting_date >= $2) AND ($3::date IS NULL OR i.posting_date <= $3)
 ORDER BY key`
	return store.Collect(ctx, r.tx, pgx.RowTo[string], stmt, r.args...)
}

// Impacts calls f with each impact, in the order of posting dates and ids. They are read from the
// connection one by one, as f returns, so that memory holds no more than one. f must not keep the
// impact, which is used again.
//
// Documents and reversed impacts are looked up by subqueries: joined, they tempt the planner into
// far worse while the tables have no statistics, as after a first import.
func (r *ExportReader) Impacts(ctx context.Context, f func(*ExportImpact) error) error {
	const stmt = `
SELECT i.id, i.org_id, i.document_id, i.document_version, i.seq, i.kind, i.rule_set_version, i.rule_id, i.document_date, i.posting_date,
       i.entry_count, i.epoch,
       coalesce((SELECT d.content ->> 'counterparty' FROM daybook.documents d WHERE d.org_id = i.org_id AND d.id = i.document_id), ''),
       CASE i.kind WHEN 'reverse' THEN
           (SELECT o.id FROM daybook.impacts o WHERE o.org_id = i.org_id AND o.document_id = i.document_id AND o.seq = i.previous_seq) END,
       e.lines, e.accounts, e.sides, e.amounts, e.currencies, e.rule_lines, e.document_lines, e.dimensions
  FROM daybook.impacts i
 CROSS JOIN LATERAL (
        SELECT array_agg(x.line_no) AS lines, array_agg(x.account_code) AS accounts, array_agg(x.side::text) AS sides,
               array_agg(x.amount_minor) AS amounts, array_agg(x.currency) AS currencies, array_agg(x.rule_line_id) AS rule_lines,
               array_agg(x.document_line) AS document_lines,
               CASE WHEN count(x.dimensions) > 0 THEN array_agg(x.dimensions) END AS dimensions
          FROM (SELECT * FROM daybook.entries WHERE impact_id = i.id ORDER BY line_no) x) e
 WHERE ($1 = '' OR i.org_id = $1)
   AND ($2::date IS NULL OR i.posting_date >= $2) AND ($3::date IS NULL OR i.posting_date <= $3)
 ORDER BY i.posting_date, i.id`
	var m ExportImpact
	var lines []int
	var accounts, sides, currencies, ruleLines []string
	var amounts []int64
	var documentLines []*int
	var dimensions []models.Dimensions
	return store.Each(ctx, r.tx, []any{
		&m.ID, &m.OrgID, &m.DocumentID, &m.DocumentVersion, &m.Seq, &m.Kind, &m.RuleSetVersion, &m.RuleID, &m.DocumentDate,
		&m.PostingDate,
		&m.EntryCount, &m.Epoch, &m.Counterparty, &m.Reverses,
		&lines, &accounts, &sides, &amounts, &currencies, &ruleLines, &documentLines, &dimensions,
	}, func() error {
		m.Entries = m.Entries[:0]
		for n := range lines {
			m.Entries = append(m.Entries, ExportEntry{
				LineNo: lines[n], Account: accounts[n], Side: models.Side(sides[n]), Amount: amounts[n],
				Currency:   currencies[n],
				RuleLineID: ruleLines[n], DocumentLine: documentLines[n],
			})
			if dimensions != nil {
				m.Entries[n].Dimensions = dimensions[n]
			}
		}
		return f(&m)
	}, stmt, r.args...)
}
