package ledgerdb

import (
	"cmp"
	"context"
	"math/big"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// documentScan is how many documents a page of FindDocuments looks at, at most, when its filter
// leaves some out: one that matches few of many documents costs no more than one that matches all.
const documentScan = 2000

// DocumentQuery says which documents to list. OrgID is required; the zero value of each other field
// means any.
type DocumentQuery struct {
	OrgID string
	// Prefix is what the ids begin with.
	Prefix string
	Type   models.DocumentType
	// State is that of the document's job.
	State models.JobState
	// Posted asks for documents with a live impact, or without one; nil: both.
	Posted *bool
	// ImportID is the import that wrote the document last.
	ImportID int64
	// From and To are the first and the last date that is printed on a document.
	From, To models.Date
	// After leaves out the documents up to this id.
	After string
	// Limit is how many are listed at most; default DefaultLimit.
	Limit int
}

// filtered reports whether the query leaves out documents by anything but their ids.
func (q DocumentQuery) filtered() bool {
	return q.ImportID != 0 || q.Type != "" || q.State != "" || q.Posted != nil || !q.From.IsZero() || !q.To.IsZero()
}

// DocumentLine is a document in a list, with how it stands. One that the application keeps in
// tables of its own has only what its job and its impacts say.
type DocumentLine struct {
	ID string
	// Here says that daybook.documents has it; the fields up to DeletedAt are that row's.
	Here      bool
	Type      models.DocumentType
	Direction models.Direction
	Currency  string
	// Number and Counterparty are what its content says; empty: nothing.
	Number       string
	Counterparty string
	// Amount is what it comes to in minor units of Currency: its total, else what is payable, else the
	// amount of a payment, else the debits of a journal in that currency. Nil: it states none.
	Amount *big.Int
	// Date is the date that is printed on the document, as its row or its last impact has it; zero:
	// not known.
	Date      models.Date
	ValueDate models.Date
	Version   int64
	ReadyAt   *time.Time
	DeletedAt *time.Time
	// CreatedAt and UpdatedAt are those of the row of daybook.documents; nil: it has none.
	CreatedAt *time.Time
	UpdatedAt *time.Time
	// JobState and ErrorCode are its job's; empty: it has none.
	JobState  models.JobState
	ErrorCode models.ErrorCode
	// PostedVersion is the live impact's; nil: it is not posted.
	PostedVersion *int64
	// NoEntries is why it is posted without an entry; empty: it has some, or is not posted.
	NoEntries models.NoEntries
	// ImportID is the import that wrote it last; nil: none did.
	ImportID *int64
}

// DocumentPage is a part of a list.
type DocumentPage struct {
	Documents []DocumentLine
	// Next is the id after which the list goes on; "": it ends here.
	Next string
}

// FindDocuments lists an organization's documents in the order of their ids: those of
// daybook.documents, and those of which there is a job or an impact alone. A page may have fewer
// than Limit documents, or none, and a Next.
func FindDocuments(ctx context.Context, q store.Querier, f DocumentQuery) (DocumentPage, error) {
	// Each key is looked up by itself (LIMIT 1): a join might read all documents of the organization.
	const stmt = `
WITH keys AS MATERIALIZED (
    (SELECT id FROM daybook.documents WHERE @import::bigint = 0 AND org_id = @org AND id > @after AND id >= @prefix AND id < @end ORDER BY id LIMIT @scan)
     UNION
    (SELECT document_id FROM daybook.import_documents WHERE import_id = @import AND document_id > @after AND document_id >= @prefix AND document_id < @end ORDER BY document_id LIMIT @scan)
     UNION
    (SELECT document_id FROM daybook.accounting_work_queue WHERE @import::bigint = 0 AND org_id = @org AND document_id > @after AND document_id >= @prefix AND document_id < @end ORDER BY document_id LIMIT @scan)
     UNION
    (SELECT document_id FROM daybook.impacts WHERE @import::bigint = 0 AND org_id = @org AND document_id > @after AND document_id >= @prefix AND document_id < @end AND seq = 1 ORDER BY document_id LIMIT @scan)
     ORDER BY 1 LIMIT @scan
)
SELECT scanned.n, coalesce(scanned.last, ''), x.*
  FROM (SELECT count(*) AS n, max(id) AS last FROM keys) scanned
  LEFT JOIN (
        SELECT k.id, d.id IS NOT NULL AS here, coalesce(d.type, '') AS type, coalesce(d.direction, '') AS direction, coalesce(d.currency, '') AS currency,
               coalesce(d.issue_date, i.document_date) AS date, coalesce(d.accounting_ready_version, j.version_hint, 0) AS version,
               d.accounting_ready_at, d.deleted_at, coalesce(j.state::text, '') AS state, coalesce(j.last_error_code, '') AS code,
               CASE WHEN i.kind = 'post' THEN i.document_version END AS posted, d.value_date, d.created_at, d.updated_at,
               CASE WHEN i.kind = 'post' THEN i.no_entries ELSE '' END AS no_entries, d.import_id,
               coalesce(d.content ->> 'number', '') AS number, coalesce(d.content ->> 'counterparty', '') AS counterparty,
               daybook.stated_amount(d.content)::text AS amount
          FROM keys k
          LEFT JOIN LATERAL (SELECT * FROM daybook.documents x WHERE x.org_id = @org AND x.id = k.id LIMIT 1) d ON true
          LEFT JOIN LATERAL (SELECT * FROM daybook.accounting_work_queue x WHERE x.org_id = @org AND x.document_id = k.id LIMIT 1) j ON true
          LEFT JOIN LATERAL (
                SELECT p.kind, p.document_version, p.document_date, p.no_entries FROM daybook.impacts p
                 WHERE p.org_id = @org AND p.document_id = k.id ORDER BY p.seq DESC LIMIT 1) i ON true
         WHERE (@import::bigint = 0 OR d.import_id = @import) AND (@type = '' OR d.type = @type) AND (@state = '' OR j.state::text = @state)
           AND (@posted::boolean IS NULL OR (i.kind IS NOT DISTINCT FROM 'post') = @posted)
           AND (@from::date IS NULL OR coalesce(d.issue_date, i.document_date) >= @from) AND (@to::date IS NULL OR coalesce(d.issue_date, i.document_date) <= @to)
         ORDER BY k.id
         LIMIT @most) x ON true
 ORDER BY x.id`
	limit := cmp.Or(max(f.Limit, 0), store.DefaultLimit)
	scan := limit + 1
	if f.filtered() {
		scan = max(scan, documentScan)
	}
	var page DocumentPage
	var scanned int
	var last string
	rows, err := store.Collect(ctx, q, func(row pgx.CollectableRow) (DocumentLine, error) {
		var l nullableLine
		err := row.Scan(&scanned, &last, &l.id, &l.here, &l.kind, &l.direction, &l.currency, &l.date, &l.version,
			&l.readyAt, &l.deletedAt, &l.state, &l.code, &l.posted,
			&l.valueDate, &l.createdAt, &l.updatedAt, &l.noEntries, &l.importID, &l.number, &l.counterparty, &l.amount)
		return l.line(), err
	}, stmt, store.Args{
		"org": f.OrgID, "after": f.After, "prefix": f.Prefix, "end": f.Prefix + lastCharacter, "scan": scan,
		"type": string(f.Type), "state": string(f.State), "import": f.ImportID,
		"posted": f.Posted, "from": timeOf(f.From), "to": timeOf(f.To), "most": limit + 1,
	})
	if err != nil {
		return page, store.Wrap("list documents", err)
	}
	for _, l := range rows {
		if l.ID != "" {
			page.Documents = append(page.Documents, l)
		}
	}
	switch {
	case len(page.Documents) > limit:
		page.Documents = page.Documents[:limit]
		page.Next = page.Documents[limit-1].ID
	case scanned == scan:
		page.Next = last
	}
	return page, nil
}

// lastCharacter sorts after every character that an id has.
const lastCharacter = "\U0010FFFF"

// nullableLine is a row of FindDocuments; all of it is NULL where no document matches.
type nullableLine struct {
	id, kind, direction, currency, state, code *string
	number, counterparty, amount               *string
	noEntries                                  *models.NoEntries
	here                                       *bool
	date, valueDate, createdAt, updatedAt      *time.Time
	version, posted, importID                  *int64
	readyAt, deletedAt                         *time.Time
}

func (l nullableLine) line() DocumentLine {
	if l.id == nil {
		return DocumentLine{}
	}
	var amount *big.Int
	if l.amount != nil {
		amount, _ = new(big.Int).SetString(*l.amount, 10) // content that is not whole states none
	}
	return DocumentLine{
		Number: *l.number, Counterparty: *l.counterparty, Amount: amount,
		ID: *l.id, Here: *l.here, Type: models.DocumentType(*l.kind), Direction: models.Direction(*l.direction),
		Currency: *l.currency, Date: dateOf(l.date),
		Version: *l.version, ReadyAt: l.readyAt, DeletedAt: l.deletedAt, JobState: models.JobState(*l.state),
		ErrorCode: models.ErrorCode(*l.code), PostedVersion: l.posted,
		ValueDate: dateOf(l.valueDate), CreatedAt: l.createdAt, UpdatedAt: l.updatedAt,
		NoEntries: *l.noEntries, ImportID: l.importID,
	}
}
