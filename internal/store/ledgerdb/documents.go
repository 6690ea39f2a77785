package ledgerdb

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	public "github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/models/strictjson"
)

// What is asked for and found of a document; package accounting says what each means.
type (
	DocumentKey   = public.Key
	FoundState    = public.State
	FoundDocument = public.Found
)

// The answers for a key.
const (
	DocumentHere    = public.Here
	DocumentLocked  = public.Locked
	DocumentDeleted = public.Deleted
	DocumentUnknown = public.Unknown
	DocumentLater   = public.Later
)

// maxContentBytes bounds the contents that LockDocuments reads at a time, as text and roughly:
// about 10,000 lines. A document that is larger alone is read alone.
const maxContentBytes = 2 << 20

// LockDocuments locks the documents that it can get without waiting and reads them, as many as
// maxContentBytes allows. The answers are in the keys' order, and so are the places of their rows:
// those are valid for as long as the transaction does not change the rows.
//
// What a content takes is estimated by what is stored of it: PostgreSQL compresses rows of more
// than 2 kB. Which documents are read first does not matter, so the window has no order, which
// would be a sort of all contents.
func LockDocuments(ctx context.Context, tx pgx.Tx, keys []DocumentKey) ([]FoundDocument, []pgtype.TID, error) {
	const stmt = `
SELECT n, got, place, type, direction, currency, issue_date, value_date, CASE WHEN NOT later THEN content::text END,
       accounting_ready_at, version, accounting_impact_created_at, deleted_at, later
  FROM (SELECT *, got AND sum(size) OVER before > $3 AND sum(size) OVER before > size AS later
          FROM (SELECT k.n, d.org_id IS NOT NULL AS got, d.place, coalesce(d.type, '') AS type, coalesce(d.direction, '') AS direction,
                       coalesce(d.currency, '') AS currency, d.issue_date, d.value_date, d.content,
                       pg_column_size(d.content) * CASE WHEN pg_column_size(d.content) > 2000 THEN 6 ELSE 1 END AS size,
                       d.accounting_ready_at, coalesce(d.accounting_ready_version, 0) AS version, d.accounting_impact_created_at, d.deleted_at
                  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (org_id, id, n)
                  LEFT JOIN LATERAL (
                        SELECT *, ctid AS place FROM daybook.documents x
                         WHERE x.org_id = k.org_id AND x.id = k.id
                           FOR NO KEY UPDATE SKIP LOCKED) d ON true) locked
        WINDOW before AS (ROWS UNBOUNDED PRECEDING)) sized`
	orgs, ids := splitKeys(keys)
	out, at := make([]FoundDocument, len(keys)), make([]pgtype.TID, len(keys))
	var missing []DocumentKey
	var places []int
	_, err := store.Collect(ctx, tx, func(row pgx.CollectableRow) (n int, err error) {
		var got bool
		var d models.Document
		var issue, value *time.Time
		var content pgtype.DriverBytes // PostgreSQL's answer itself, until the next row is read
		var later bool
		var place pgtype.TID
		f := FoundDocument{State: DocumentHere}
		if err = row.Scan(&n, &got, &place, &d.Type, &d.Direction, &d.Currency, &issue, &value, &content,
			&d.AccountingReadyAt, &d.AccountingReadyVersion, &d.AccountingImpactCreatedAt, &d.DeletedAt, &later); err != nil {
			return n, err
		}
		switch {
		case !got:
			missing, places = append(missing, keys[n-1]), append(places, n-1)
		case later:
			f.State = DocumentLater
		default:
			d.OrgID, d.ID = keys[n-1].OrgID, keys[n-1].ID
			d.IssueDate = dateOf(issue)
			if value != nil {
				d.ValueDate = new(dateOf(value))
			}
			f.Document = &d
			d.Content, f.Err = readContent(content)
		}
		out[n-1], at[n-1] = f, place
		return n, nil
	}, stmt, orgs, ids, maxContentBytes)
	if err != nil || len(missing) == 0 {
		return out, at, store.Wrap("lock documents", err)
	}
	exist, err := documentsExist(ctx, tx, missing)
	for i, there := range exist {
		out[places[i]].State = DocumentUnknown
		if there {
			out[places[i]].State = DocumentLocked
		}
	}
	return out, at, err
}

// DeletedOnRecord says for each key whether the document was marked deleted, in the version that
// its job asks for: its row may be gone since.
func DeletedOnRecord(ctx context.Context, tx pgx.Tx, keys []DocumentKey) ([]bool, error) {
	const stmt = `
SELECT coalesce(q.deleted_version = q.version_hint, false)
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (org_id, id, n)
  LEFT JOIN daybook.accounting_work_queue q ON q.org_id = k.org_id AND q.document_id = k.id
 ORDER BY k.n`
	orgs, ids := splitKeys(keys)
	deleted, err := store.Collect(ctx, tx, pgx.RowTo[bool], stmt, orgs, ids)
	return deleted, store.Wrap("look for deletions", err)
}

// documentsExist says for each key whether there is such a document, locked or not.
func documentsExist(ctx context.Context, tx pgx.Tx, keys []DocumentKey) ([]bool, error) {
	const stmt = `
SELECT d.id IS NOT NULL
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (org_id, id, n)
  LEFT JOIN daybook.documents d ON d.org_id = k.org_id AND d.id = k.id
 ORDER BY k.n`
	orgs, ids := splitKeys(keys)
	exist, err := store.Collect(ctx, tx, pgx.RowTo[bool], stmt, orgs, ids)
	return exist, store.Wrap("look for documents", err)
}

func dateOf(t *time.Time) models.Date {
	if t == nil {
		return models.Date{}
	}
	return models.NewDate(t.Year(), t.Month(), t.Day())
}

func splitKeys(keys []DocumentKey) (orgs, ids []string) {
	orgs, ids = make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		orgs[i], ids[i] = k.OrgID, k.ID
	}
	return orgs, ids
}

// SetImpactCreated says beside each document whether an impact of it is live: since now, or not at
// all. The places are those that LockDocuments found; a document whose row is gone has none.
func SetImpactCreated(ctx context.Context, tx pgx.Tx, keys []DocumentKey, places []pgtype.TID, live []bool) error {
	const byPlace = `
UPDATE daybook.documents d
   SET accounting_impact_created_at = CASE WHEN k.live THEN clock_timestamp() END
  FROM (SELECT unnest($1::text[]) AS org_id, unnest($2::text[]) AS id, unnest($3::boolean[]) AS live, unnest($4::tid[]) AS place) k
 WHERE d.ctid = k.place AND d.org_id = k.org_id AND d.id = k.id`
	const byKey = `
UPDATE daybook.documents d
   SET accounting_impact_created_at = CASE WHEN k.live THEN clock_timestamp() END
  FROM unnest($1::text[], $2::text[], $3::boolean[]) AS k (org_id, id, live)
 WHERE d.org_id = k.org_id AND d.id = k.id`
	orgs, ids := splitKeys(keys)
	found := int64(0)
	for _, p := range places {
		if p.Valid {
			found++
		}
	}
	done, err := tx.Exec(ctx, byPlace, orgs, ids, live, places)
	if err == nil && done.RowsAffected() < found {
		// A trigger of the application has changed rows since.
		_, err = tx.Exec(ctx, byKey, orgs, ids, live)
	}
	return store.Wrap("mark documents posted", err)
}

// PutResult says what PutDocuments did with a document.
type PutResult string

const (
	PutInserted  PutResult = "inserted"
	PutChanged   PutResult = "changed"
	PutUnchanged PutResult = "unchanged"
)

// NewDocument is a document that is to be written, with the text of its content.
type NewDocument struct {
	*models.Document
	Text string
}

// Put is what became of a document, and its version unless it is unchanged.
type Put struct {
	Result  PutResult
	Version int64
}

// PutDocument writes a document as domain code would, in the caller's transaction, and leaves it to
// the caller to mark it ready.
func PutDocument(ctx context.Context, tx pgx.Tx, d *models.Document) (PutResult, error) {
	text, err := json.Marshal(d.Content)
	if err != nil {
		return "", fmt.Errorf("encode document %s: %w", d.ID, err)
	}
	puts, err := PutDocuments(ctx, tx, []NewDocument{{d, string(text)}}, false)
	if err != nil {
		return "", err
	}
	return puts[0].Result, nil
}

// PutDocuments writes documents in their order, in one statement, and gives those that it writes
// their next version and readiness if they are ready. A document that is there already with the
// same content is neither changed nor locked; a deleted one is left deleted, unless the undo of an
// import has deleted it. Those with an ImportID become documents of that import. It fails when a
// document is named twice.
func PutDocuments(ctx context.Context, tx pgx.Tx, docs []NewDocument, ready bool) ([]Put, error) {
	const stmt = `
WITH put AS (
    INSERT INTO daybook.documents AS d (org_id, id, type, direction, currency, issue_date, value_date, content, accounting_ready_at, accounting_ready_version, import_id)
    SELECT k.org_id, k.id, k.type, k.direction, k.currency, k.issue_date, k.value_date, k.content, CASE WHEN @ready THEN clock_timestamp() END, @ready::boolean::integer, k.import_id
      FROM (SELECT org_id, id, type, direction, currency, issue_date, value_date, content::jsonb, import_id, n
              FROM unnest(@orgs::text[], @ids::text[], @types::text[], @directions::text[], @currencies::text[], @issue_dates::date[], @value_dates::date[],
                          @contents::text[], @imports::bigint[]) WITH ORDINALITY AS r (org_id, id, type, direction, currency, issue_date, value_date, content, import_id, n)
            OFFSET 0) k
     WHERE NOT EXISTS (
           SELECT FROM daybook.documents d
            WHERE d.org_id = k.org_id AND d.id = k.id
              AND CASE WHEN d.deleted_at IS NOT NULL THEN NOT daybook.is_undone(d)
                       ELSE (d.type, d.direction, d.currency, d.issue_date, d.value_date, d.content)
                            IS NOT DISTINCT FROM (k.type, k.direction, k.currency, k.issue_date, k.value_date, k.content) END)
     ORDER BY k.n
    ON CONFLICT (org_id, id) DO UPDATE
       SET type = excluded.type, direction = excluded.direction, currency = excluded.currency, issue_date = excluded.issue_date,
           value_date = excluded.value_date, content = excluded.content, updated_at = clock_timestamp(),
           accounting_ready_at = coalesce(excluded.accounting_ready_at, d.accounting_ready_at),
           accounting_ready_version = d.accounting_ready_version + @ready::boolean::integer, deleted_at = NULL, import_id = excluded.import_id
     WHERE CASE WHEN d.deleted_at IS NOT NULL THEN daybook.is_undone(d)
                ELSE (d.type, d.direction, d.currency, d.issue_date, d.value_date, d.content)
                     IS DISTINCT FROM
                     (excluded.type, excluded.direction, excluded.currency, excluded.issue_date, excluded.value_date, excluded.content) END
    RETURNING d.org_id, d.id, d.accounting_ready_version, d.xmax = 0 AS inserted, d.import_id, d.updated_at
), written AS (
    INSERT INTO daybook.import_documents (import_id, document_id, created, version, written_at)
    SELECT p.import_id, p.id, p.inserted, p.accounting_ready_version, p.updated_at FROM put p WHERE p.import_id IS NOT NULL
    ON CONFLICT (import_id, document_id) DO UPDATE SET version = excluded.version, written_at = excluded.written_at
)
SELECT org_id, id, accounting_ready_version, inserted FROM put`
	puts := make([]Put, len(docs))
	for i := range puts {
		puts[i].Result = PutUnchanged
	}
	rows, _ := tx.Query(ctx, stmt, columnsOf(docs, ready)) // its error is that of the rows
	next := 0
	var org, id string
	var version int64
	var inserted bool
	_, err := pgx.ForEachRow(rows, []any{&org, &id, &version, &inserted}, func() error {
		// The rows come in the order of the documents, without those that are unchanged.
		for docs[next].OrgID != org || docs[next].ID != id {
			if next++; next == len(docs) {
				return fmt.Errorf("a trigger wrote document %s of organization %s in place of another one", id, org)
			}
		}
		puts[next] = Put{PutChanged, version}
		if inserted {
			puts[next].Result = PutInserted
		}
		return nil
	})
	return puts, store.Wrap("write documents", err)
}

// columnsOf returns the arguments of PutDocuments.
func columnsOf(docs []NewDocument, ready bool) store.Args {
	n := len(docs)
	orgs, ids, types := make([]string, n), make([]string, n), make([]string, n)
	directions, currencies, texts := make([]string, n), make([]string, n), make([]string, n)
	issued, values, imports := make([]time.Time, n), make([]*time.Time, n), make([]*int64, n)
	for i, d := range docs {
		imports[i] = d.ImportID
		orgs[i], ids[i], types[i], directions[i], currencies[i] = d.OrgID, d.ID, string(d.Type), string(d.Direction), d.Currency
		issued[i], values[i], texts[i] = d.IssueDate.Time(), timeOf(store.Value(d.ValueDate)), d.Text
	}
	return store.Args{
		"orgs": orgs, "ids": ids, "types": types, "directions": directions, "currencies": currencies,
		"issue_dates": issued, "value_dates": values, "contents": texts, "imports": imports, "ready": ready,
	}
}

// dates turns calendar days into what pgx encodes as date[].
func dates(days []models.Date) []time.Time {
	out := make([]time.Time, len(days))
	for i, d := range days {
		out[i] = d.Time()
	}
	return out
}

// readContent reads daybook.documents.content, and copies what it keeps of text.
func readContent(text []byte) (c models.Content, err error) {
	if err = strictjson.Document(text, &c, &c); err != nil {
		err = fmt.Errorf("content: %w", err)
	}
	return c, err
}
