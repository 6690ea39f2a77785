package ledgerdb

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
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
	Epoch           int
	ContentHash     []byte
	// ConfirmedUnder holds the rule set versions under which the impact was confirmed for the version
	// that was asked for.
	ConfirmedUnder []int64
	// LastEpoch is the highest epoch in which the version and rule set that were asked for were
	// posted; nil: never.
	LastEpoch *int
	// MovedTo is the latest day on which an impact of the chain was reversed because its own day was
	// closed; nil: each was reversed on its own day.
	MovedTo *models.Date
	// TaxesReplaced says that the document states other taxes now than it did when the impact was
	// posted, or confirmed for the last time.
	TaxesReplaced bool
}

// Live reports whether the document is posted.
func (l *LastImpact) Live() bool { return l != nil && l.Kind == models.ImpactPost }

// Covers reports whether the impact stands for a document version under a rule set (nil: none): it
// was posted for both, or confirmed.
func (l *LastImpact) Covers(version int64, ruleSet *int64) bool {
	if ruleSet == nil {
		return l.DocumentVersion == version && l.RuleSetVersion == nil
	}
	return l.DocumentVersion == version && l.RuleSetVersion != nil && *l.RuleSetVersion == *ruleSet ||
		slices.Contains(l.ConfirmedUnder, *ruleSet)
}

// ImpactKey asks for the last impact of a document, and what is known of a version and a rule set
// (0: none) of it.
type ImpactKey struct {
	DocumentKey
	Version, RuleSetVersion int64
}

// LastImpacts reads the last impact of each document, nil where there is none. The answers are in
// the keys' order.
func LastImpacts(ctx context.Context, tx pgx.Tx, keys []ImpactKey) ([]*LastImpact, error) {
	const stmt = `
SELECT k.n, i.id, i.seq, i.kind, i.document_version, i.rule_set_version, i.rule_id, i.document_date, i.posting_date, i.entry_count, i.epoch,
       i.content_hash,
       ARRAY(SELECT c.rule_set_version FROM daybook.confirmations c WHERE c.impact_id = i.id AND c.document_version = k.version),
       (SELECT max(x.epoch) FROM daybook.impacts x
         WHERE x.org_id = k.org_id AND x.document_id = k.id AND x.document_version = k.version AND x.rule_set_version = k.rule_set AND x.kind = 'post'),
       CASE WHEN i.seq > 1 THEN
           (SELECT max(r.posting_date) FROM daybook.impacts r
              JOIN daybook.impacts o ON o.org_id = r.org_id AND o.document_id = r.document_id AND o.seq = r.previous_seq AND o.posting_date < r.posting_date
             WHERE r.org_id = k.org_id AND r.document_id = k.id AND r.kind = 'reverse') END,
       EXISTS (SELECT FROM daybook.replaced_taxes t JOIN daybook.documents d ON d.org_id = i.org_id AND d.id = i.document_id
                WHERE t.impact_id = i.id AND t.confirmations = (SELECT count(*) FROM daybook.confirmations c WHERE c.impact_id = i.id)
                  AND (t.type, t.direction, t.currency, t.country, t.taxes)
                      IS DISTINCT FROM (d.type, d.direction, d.currency, coalesce(d.content ->> 'country', ''), daybook.stated_taxes(d.content)))
  FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS k (org_id, id, version, rule_set, n)
 CROSS JOIN LATERAL (
        SELECT * FROM daybook.impacts x
         WHERE x.org_id = k.org_id AND x.document_id = k.id
         ORDER BY x.seq DESC LIMIT 1) i`
	orgs, ids := make([]string, len(keys)), make([]string, len(keys))
	versions, ruleSets := make([]int64, len(keys)), make([]int64, len(keys))
	for i, k := range keys {
		orgs[i], ids[i], versions[i], ruleSets[i] = k.OrgID, k.ID, k.Version, k.RuleSetVersion
	}
	out := make([]*LastImpact, len(keys))
	_, err := store.Collect(ctx, tx, func(row pgx.CollectableRow) (n int, err error) {
		l := &LastImpact{}
		if err = row.Scan(&n, &l.ID, &l.Seq, &l.Kind, &l.DocumentVersion, &l.RuleSetVersion, &l.RuleID, &l.DocumentDate,
			&l.PostingDate,
			&l.EntryCount, &l.Epoch, &l.ContentHash, &l.ConfirmedUnder, &l.LastEpoch, &l.MovedTo,
			&l.TaxesReplaced); err == nil {
			out[n-1] = l
		}
		return n, err
	}, stmt, orgs, ids, versions, ruleSets)
	return out, store.Wrap("read impacts", err)
}

// EntriesOf reads the entries of impacts, each impact's in their order.
func EntriesOf(ctx context.Context, q store.Querier, impacts []int64) (map[int64][]models.Entry, error) {
	const stmt = `
SELECT impact_id, line_no, account_code, side, amount_minor, currency FROM daybook.entries WHERE impact_id = ANY ($1) ORDER BY impact_id, line_no`
	all := map[int64][]models.Entry{}
	_, err := store.Collect(ctx, q, func(row pgx.CollectableRow) (n int, err error) {
		var e models.Entry
		if err = row.Scan(&e.ImpactID, &e.LineNo, &e.Account, &e.Side, &e.Amount, &e.Currency); err == nil {
			all[e.ImpactID] = append(all[e.ImpactID], e)
		}
		return 0, err
	}, stmt, impacts)
	return all, store.Wrap("read entries", err)
}

// Posting is the impacts and entries of a chunk, to be inserted together.
type Posting struct {
	Impacts []models.Impact
	Entries []models.Entry
	// Reversals pairs a new reversing impact with the impact whose entries it mirrors.
	Reversals []Reversal
	// Confirmations say that live impacts stand under a later version or rule set.
	Confirmations []models.Confirmation
}

// Reversal says that impact ID mirrors the entries of impact Of.
type Reversal struct{ ID, Of int64 }

// ImpactIDs draws n impact ids.
func ImpactIDs(ctx context.Context, tx pgx.Tx, n int) ([]int64, error) {
	const stmt = `SELECT nextval('daybook.impact_id_seq') FROM generate_series(1, $1)`
	ids, err := store.Collect(ctx, tx, pgx.RowTo[int64], stmt, n)
	return ids, store.Wrap("draw impact ids", err)
}

// InsertPosting inserts impacts and all their entries in one statement, which the database checks
// as a whole: complete, balanced, known accounts, open periods. An impact that reverses gets the
// mirror of what it reverses.
func InsertPosting(ctx context.Context, tx pgx.Tx, p Posting) error {
	batch := &pgx.Batch{}
	if len(p.Impacts) > 0 {
		queuePosting(batch, p)
	}
	if len(p.Confirmations) > 0 {
		queueConfirmations(batch, p.Confirmations)
	}
	if batch.Len() == 0 {
		return nil
	}
	return store.Wrap("insert the posting", tx.SendBatch(ctx, batch).Close())
}

func queuePosting(batch *pgx.Batch, p Posting) {
	const stmt = `
WITH inserted AS (
    INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, rule_set_version, rule_id, document_date, posting_date,
                                 entry_count, job_id, attempt, workflow_run_id, epoch, content_hash, no_entries)
    SELECT unnest(@ids::bigint[]), unnest(@orgs::text[]), unnest(@documents::text[]), unnest(@versions::bigint[]), unnest(@seqs::integer[]), unnest(@kinds::daybook.impact_kind[]),
           unnest(@rule_sets::bigint[]), unnest(@rules::text[]), unnest(@document_dates::date[]), unnest(@posting_dates::date[]), unnest(@entry_counts::integer[]),
           unnest(@jobs::text[]), unnest(@attempts::integer[]), unnest(@runs::text[]), unnest(@epochs::integer[]), unnest(@hashes::bytea[]), unnest(@no_entries::text[])
)
INSERT INTO daybook.entries (impact_id, line_no, org_id, account_code, side, amount_minor, currency, rule_line_id, document_line, dimensions)
SELECT unnest(@entry_impacts::bigint[]), unnest(@entry_lines::integer[]), unnest(@entry_orgs::text[]), unnest(@entry_accounts::text[]), unnest(@entry_sides::daybook.entry_side[]),
       unnest(@entry_amounts::bigint[]), unnest(@entry_currencies::text[]), unnest(@entry_rule_lines::text[]), unnest(@entry_document_lines::integer[]),
       unnest(@entry_dimensions::jsonb[])
UNION ALL
SELECT r.id, e.line_no, e.org_id, e.account_code, CASE e.side WHEN 'debit' THEN 'credit' ELSE 'debit' END::daybook.entry_side,
       e.amount_minor, e.currency, e.rule_line_id, e.document_line, e.dimensions
  FROM unnest(@reversing::bigint[], @mirrored::bigint[]) AS r (id, mirrored)
  JOIN daybook.entries e ON e.impact_id = r.mirrored`
	reversing, mirrored := make([]int64, len(p.Reversals)), make([]int64, len(p.Reversals))
	for i, r := range p.Reversals {
		reversing[i], mirrored[i] = r.ID, r.Of
	}
	a := store.Args{"reversing": reversing, "mirrored": mirrored}
	addImpacts(a, p.Impacts)
	addEntries(a, p.Entries)
	batch.Queue(stmt, a)
}

// addImpacts adds impacts to the arguments of a statement, column by column.
func addImpacts(a store.Args, impacts []models.Impact) {
	n := len(impacts)
	ids, versions, ruleSets := make([]int64, n), make([]int64, n), make([]*int64, n)
	orgs, docs, kinds, rules := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	jobs, runs, hashes, noEntries := make([]string, n), make([]string, n), make([][]byte, n), make([]string, n)
	seqs, counts, attempts, epochs := make([]int32, n), make([]int32, n), make([]int32, n), make([]int32, n)
	docDates, postDates := make([]models.Date, n), make([]models.Date, n)
	for i := range impacts {
		m := &impacts[i]
		ids[i], versions[i], ruleSets[i] = m.ID, m.DocumentVersion, m.RuleSetVersion
		orgs[i], docs[i], kinds[i], rules[i] = m.OrgID, m.DocumentID, string(m.Kind), m.RuleID
		jobs[i], runs[i], hashes[i], noEntries[i] = m.JobID, m.WorkflowRunID, m.ContentHash, string(m.NoEntries)
		seqs[i], counts[i], attempts[i], epochs[i] = int32(m.Seq), int32(m.EntryCount), int32(m.Attempt), int32(m.Epoch)
		docDates[i], postDates[i] = m.DocumentDate, m.PostingDate
	}
	a["ids"], a["orgs"], a["documents"], a["versions"], a["seqs"], a["kinds"] = ids, orgs, docs, versions, seqs, kinds
	a["rule_sets"], a["rules"], a["document_dates"], a["posting_dates"] = ruleSets, rules, dates(docDates),
		dates(postDates)
	a["entry_counts"], a["jobs"], a["attempts"], a["runs"], a["epochs"], a["hashes"] = counts, jobs, attempts, runs,
		epochs, hashes
	a["no_entries"] = noEntries
}

// addEntries adds entries to the arguments of a statement, column by column.
func addEntries(a store.Args, entries []models.Entry) {
	n := len(entries)
	impacts, amounts := make([]int64, n), make([]int64, n)
	lines, docLines := make([]int32, n), make([]*int32, n)
	orgs, accounts, sides, currencies, ruleLines := make([]string, n), make([]string, n), make([]string, n),
		make([]string, n), make([]string, n)
	for i := range entries {
		e := &entries[i]
		impacts[i], amounts[i], lines[i] = e.ImpactID, e.Amount, int32(e.LineNo)
		orgs[i], accounts[i], sides[i], currencies[i], ruleLines[i] = e.OrgID, e.Account, string(e.Side), e.Currency,
			e.RuleLineID
		if e.DocumentLine != nil {
			docLines[i] = new(int32(*e.DocumentLine))
		}
	}
	a["entry_impacts"], a["entry_lines"], a["entry_orgs"], a["entry_accounts"], a["entry_sides"] = impacts, lines, orgs,
		accounts, sides
	a["entry_amounts"], a["entry_currencies"], a["entry_rule_lines"], a["entry_document_lines"] = amounts, currencies,
		ruleLines, docLines
	a["entry_dimensions"] = dimensions(entries)
}

// dimensions are those of entries as JSON. They are nil where no entry has any: then the column is
// null in all rows, at no cost.
func dimensions(entries []models.Entry) []*string {
	var all []*string
	for i := range entries {
		if len(entries[i].Dimensions) == 0 {
			continue
		}
		if all == nil {
			all = make([]*string, len(entries))
		}
		all[i] = entries[i].Dimensions.JSON()
	}
	return all
}

func queueConfirmations(batch *pgx.Batch, confirmations []models.Confirmation) {
	const stmt = `
INSERT INTO daybook.confirmations (impact_id, document_version, rule_set_version, job_id, attempt, workflow_run_id)
SELECT * FROM unnest(@impacts::bigint[], @versions::bigint[], @rule_sets::bigint[], @jobs::text[], @attempts::integer[], @runs::text[])`
	n := len(confirmations)
	impacts, versions, ruleSets := make([]int64, n), make([]int64, n), make([]int64, n)
	jobs, attempts, runs := make([]string, n), make([]int32, n), make([]string, n)
	for i, c := range confirmations {
		impacts[i], versions[i], ruleSets[i] = c.ImpactID, c.DocumentVersion, c.RuleSetVersion
		jobs[i], attempts[i], runs[i] = c.JobID, int32(c.Attempt), c.WorkflowRunID
	}
	batch.Queue(stmt, store.Args{
		"impacts": impacts, "versions": versions, "rule_sets": ruleSets, "jobs": jobs,
		"attempts": attempts, "runs": runs,
	})
}
