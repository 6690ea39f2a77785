package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
)

// LastImpact is the last link of a document's chain of impacts; it is live when it posts.
type LastImpact struct {
	ID              int64
	Seq             int
	Kind            models.ImpactKind
	DocumentVersion int64
	RuleSetVersion  *int64
	RuleID          string
	DocumentDate    models.Date
	PostingDate     models.Date
	EntryCount      int
}

// Live reports whether the document is posted.
func (l *LastImpact) Live() bool { return l != nil && l.Kind == models.ImpactPost }

// LastImpacts reads the last impact of each document, nil where there is none. The answers are in the keys' order.
func LastImpacts(ctx context.Context, tx pgx.Tx, keys []DocumentKey) ([]*LastImpact, error) {
	const stmt = `
SELECT k.n, i.id, i.seq, i.kind, i.document_version, i.rule_set_version, i.rule_id, i.document_date, i.posting_date, i.entry_count
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (org_id, id, n)
 CROSS JOIN LATERAL (
        SELECT * FROM daybook.impacts x
         WHERE x.org_id = k.org_id AND x.document_id = k.id
         ORDER BY x.seq DESC LIMIT 1) i`
	orgs, ids := splitKeys(keys)
	rows, err := tx.Query(ctx, stmt, orgs, ids)
	if err != nil {
		return nil, wrap("read impacts", err)
	}
	out := make([]*LastImpact, len(keys))
	var n int
	var l LastImpact
	_, err = pgx.ForEachRow(rows, []any{&n, &l.ID, &l.Seq, &l.Kind, &l.DocumentVersion, &l.RuleSetVersion, &l.RuleID, &l.DocumentDate, &l.PostingDate, &l.EntryCount}, func() error {
		link := l
		out[n-1] = &link
		return nil
	})
	return out, wrap("read impacts", err)
}

// Posting is the impacts and entries of a chunk, to be inserted together.
type Posting struct {
	Impacts []models.Impact
	Entries []models.Entry
	// Reversals pairs a new reversing impact with the impact whose entries it mirrors.
	Reversals []Reversal
}

// Reversal says that impact ID mirrors the entries of impact Of.
type Reversal struct{ ID, Of int64 }

// ImpactIDs draws n impact ids.
func ImpactIDs(ctx context.Context, tx pgx.Tx, n int) ([]int64, error) {
	const stmt = `SELECT nextval('daybook.impact_id_seq') FROM generate_series(1, $1)`
	rows, err := tx.Query(ctx, stmt, n)
	if err != nil {
		return nil, wrap("draw impact ids", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	return ids, wrap("draw impact ids", err)
}

// InsertPosting inserts impacts, then all their entries in one statement, which the database checks as a whole: complete,
// balanced, known accounts. An impact that reverses gets the mirror of what it reverses.
func InsertPosting(ctx context.Context, tx pgx.Tx, p Posting) error {
	if len(p.Impacts) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	queueImpacts(batch, p.Impacts)
	if len(p.Entries) > 0 || len(p.Reversals) > 0 {
		queueEntries(batch, p.Entries, p.Reversals)
	}
	return wrap("insert the posting", tx.SendBatch(ctx, batch).Close())
}

func queueImpacts(batch *pgx.Batch, impacts []models.Impact) {
	const stmt = `
INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, rule_set_version, rule_id, document_date, posting_date,
                             entry_count, job_id, attempt, workflow_run_id)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::integer[], $6::daybook.impact_kind[], $7::bigint[], $8::text[],
                     $9::date[], $10::date[], $11::integer[], $12::text[], $13::integer[], $14::text[])
 ORDER BY 1`
	n := len(impacts)
	ids, versions, ruleSets := make([]int64, n), make([]int64, n), make([]*int64, n)
	orgs, docs, kinds, rules := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	jobs, runs := make([]string, n), make([]string, n)
	seqs, counts, attempts := make([]int32, n), make([]int32, n), make([]int32, n)
	docDates, postDates := make([]models.Date, n), make([]models.Date, n)
	for i := range impacts {
		m := &impacts[i]
		ids[i], versions[i], ruleSets[i] = m.ID, m.DocumentVersion, m.RuleSetVersion
		orgs[i], docs[i], kinds[i], rules[i] = m.OrgID, m.DocumentID, string(m.Kind), m.RuleID
		jobs[i], runs[i] = m.JobID, m.WorkflowRunID
		seqs[i], counts[i], attempts[i] = int32(m.Seq), int32(m.EntryCount), int32(m.Attempt)
		docDates[i], postDates[i] = m.DocumentDate, m.PostingDate
	}
	batch.Queue(stmt, ids, orgs, docs, versions, seqs, kinds, ruleSets, rules, dates(docDates), dates(postDates), counts, jobs, attempts, runs)
}

func queueEntries(batch *pgx.Batch, entries []models.Entry, reversals []Reversal) {
	const stmt = `
INSERT INTO daybook.entries (impact_id, line_no, org_id, account_code, side, amount_minor, currency, rule_line_id, document_line)
SELECT * FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::text[], $5::daybook.entry_side[], $6::bigint[], $7::text[], $8::text[], $9::integer[])
UNION ALL
SELECT r.id, e.line_no, e.org_id, e.account_code, CASE e.side WHEN 'debit' THEN 'credit' ELSE 'debit' END::daybook.entry_side,
       e.amount_minor, e.currency, e.rule_line_id, e.document_line
  FROM unnest($10::bigint[], $11::bigint[]) AS r (id, mirrored)
  JOIN daybook.entries e ON e.impact_id = r.mirrored
 ORDER BY 1, 2`
	n := len(entries)
	impacts, amounts := make([]int64, n), make([]int64, n)
	lines, docLines := make([]int32, n), make([]*int32, n)
	orgs, accounts, sides, currencies, ruleLines := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for i := range entries {
		e := &entries[i]
		impacts[i], amounts[i], lines[i] = e.ImpactID, e.Amount, int32(e.LineNo)
		orgs[i], accounts[i], sides[i], currencies[i], ruleLines[i] = e.OrgID, e.Account, string(e.Side), e.Currency, e.RuleLineID
		if e.DocumentLine != nil {
			l := int32(*e.DocumentLine)
			docLines[i] = &l
		}
	}
	reversing, mirrored := make([]int64, len(reversals)), make([]int64, len(reversals))
	for i, r := range reversals {
		reversing[i], mirrored[i] = r.ID, r.Of
	}
	batch.Queue(stmt, impacts, lines, orgs, accounts, sides, amounts, currencies, ruleLines, docLines, reversing, mirrored)
}
