package ledgerdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// ErrImportUndone: the import was undone while it ran, and writes nothing more.
var ErrImportUndone = failure.New(failure.ImportUndone, "the import was undone meanwhile")

// BeginImport puts an import on record, of which Format, Files and Actor count, and returns its id.
func BeginImport(ctx context.Context, q store.Querier, i models.Import) (id int64, err error) {
	const stmt = `
INSERT INTO daybook.imports (org_id, format, files, actor) VALUES ($1, $2, $3, $4) RETURNING id`
	err = q.QueryRow(ctx, stmt, i.OrgID, i.Format, i.Files, i.Actor).Scan(&id)
	return id, store.Wrap("put the import on record", err)
}

// ContinueImport holds an import that is to get more documents, so that it is not undone meanwhile.
// Errors: ErrImportUndone, store.ErrImportNotFound.
func ContinueImport(ctx context.Context, tx pgx.Tx, org string, id int64) error {
	const stmt = `SELECT undo_started_at IS NOT NULL FROM daybook.imports WHERE id = $1 AND org_id = $2 FOR UPDATE`
	var undone bool
	switch err := tx.QueryRow(ctx, stmt, id, org).Scan(&undone); {
	case errors.Is(err, pgx.ErrNoRows):
		return store.Refuse(store.ErrImportNotFound, fmt.Sprintf("there is no import %d", id),
			"leave the import's id out, and the document gets one of its own")
	case err == nil && undone:
		return ErrImportUndone
	default:
		return store.Wrap("hold the import", err)
	}
}

// EndImport puts on record that an import has ended, and adds to its counts.
func EndImport(ctx context.Context, q store.Querier, i models.Import) error {
	const stmt = `
UPDATE daybook.imports SET ended_at = clock_timestamp(), inserted = inserted + $2, changed = changed + $3, unchanged = unchanged + $4
 WHERE id = $1 RETURNING id`
	return store.Wrap("put the import's end on record",
		q.QueryRow(ctx, stmt, i.ID, i.Inserted, i.Changed, i.Unchanged).Scan(&i.ID))
}

// PutImported is PutDocuments for imports that are on record: each document has its ImportID. It
// keeps what the documents are that it changes. A document that was deleted by the undo of an
// import counts as inserted. It fails with ErrImportUndone when one of the imports was undone.
func PutImported(ctx context.Context, tx pgx.Tx, docs []NewDocument) ([]Put, error) {
	const hold = `
SELECT id FROM daybook.imports WHERE id = ANY ($1::bigint[]) AND undo_started_at IS NULL ORDER BY id FOR SHARE`
	// What is unchanged is read once, and not locked.
	const stmt = `
WITH found AS MATERIALIZED (
    SELECT k.n, k.import_id, d.org_id, d.id,
           CASE WHEN d.deleted_at IS NOT NULL THEN NOT daybook.is_undone(d)
                ELSE (d.type, d.direction, d.currency, d.issue_date, d.value_date, d.content)
                     IS NOT DISTINCT FROM (k.type, k.direction, k.currency, k.issue_date, k.value_date, k.content::jsonb) END AS same
      FROM unnest(@orgs::text[], @ids::text[], @types::text[], @directions::text[], @currencies::text[], @issue_dates::date[], @value_dates::date[],
                  @contents::text[], @imports::bigint[]) WITH ORDINALITY AS k (org_id, id, type, direction, currency, issue_date, value_date, content, import_id, n)
     CROSS JOIN LATERAL (SELECT * FROM daybook.documents x WHERE x.org_id = k.org_id AND x.id = k.id OFFSET 0) d
     ORDER BY k.n
), former AS (
    INSERT INTO daybook.import_documents AS m (import_id, document_id, created, version, written_at, former)
    SELECT f.import_id, f.id, x.deleted_at IS NOT NULL, x.accounting_ready_version, x.updated_at,
           CASE WHEN x.deleted_at IS NULL
                THEN jsonb_build_object('type', x.type, 'direction', x.direction, 'currency', x.currency, 'issue_date', x.issue_date, 'value_date', x.value_date,
                         'content', x.content, 'ready', x.accounting_ready_at IS NOT NULL, 'version', x.accounting_ready_version, 'import_id', x.import_id) END
      FROM found f
     CROSS JOIN LATERAL (SELECT * FROM daybook.documents x WHERE x.org_id = f.org_id AND x.id = f.id FOR NO KEY UPDATE) x
     WHERE NOT f.same
    -- What a document was before the import, not before a later part of it, unless it was changed otherwise between the two.
    ON CONFLICT (import_id, document_id) DO UPDATE SET created = excluded.created, former = excluded.former
     WHERE (m.version, m.written_at) IS DISTINCT FROM (excluded.version, excluded.written_at)
    RETURNING import_id, document_id, created
)
SELECT f.n, f.same, coalesce(p.created, false) FROM found f LEFT JOIN former p ON p.import_id = f.import_id AND p.document_id = f.id`
	var imports []int64
	for _, d := range docs {
		imports = append(imports, *d.ImportID)
	}
	slices.Sort(imports)
	imports = slices.Compact(imports)
	held, err := store.Collect(ctx, tx, pgx.RowTo[int64], hold, imports)
	if err == nil && len(held) < len(imports) {
		err = ErrImportUndone
	}
	if err != nil {
		return nil, store.Wrap("hold the import", err)
	}

	columns := columnsOf(docs, true)
	delete(columns, "ready")
	same, anew := make([]bool, len(docs)), make([]bool, len(docs))
	_, err = store.Collect(ctx, tx, func(row pgx.CollectableRow) (n int, err error) {
		var unchanged, created bool
		if err = row.Scan(&n, &unchanged, &created); err == nil {
			same[n-1], anew[n-1] = unchanged, created
		}
		return n, err
	}, stmt, columns)
	if err != nil {
		return nil, store.Wrap("read the documents that the import changes", err)
	}

	puts := make([]Put, len(docs))
	var write []NewDocument
	var places []int
	for n, d := range docs {
		puts[n].Result = PutUnchanged
		if !same[n] {
			write, places = append(write, d), append(places, n)
		}
	}
	if len(write) == 0 {
		return puts, nil
	}
	written, err := PutDocuments(ctx, tx, write, true)
	if err != nil {
		return nil, err
	}
	for i, n := range places {
		puts[n] = written[i]
		if anew[n] && puts[n].Result == PutChanged {
			puts[n].Result = PutInserted
		}
	}
	return puts, nil
}

// ImportOf is the import that wrote a document last; 0: none did.
func ImportOf(ctx context.Context, q store.Querier, org, document string) (id int64, err error) {
	const stmt = `SELECT coalesce(import_id, 0) FROM daybook.documents WHERE org_id = $1 AND id = $2`
	err = q.QueryRow(ctx, stmt, org, document).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return id, store.Wrap("read the document's import", err)
}

// ImportQuery says which imports to list; the zero value of a field means any.
type ImportQuery struct {
	OrgID string
	ID    int64
	// Before leaves out the imports from this id on.
	Before int64
	// Limit is how many are listed at most; default DefaultLimit.
	Limit int
}

// Imports lists imports, the latest first.
func Imports(ctx context.Context, q store.Querier, f ImportQuery) ([]models.Import, error) {
	const stmt = `
SELECT id, org_id, format, files, actor, started_at, ended_at, inserted, changed, unchanged, undo_started_at, undo_ended_at, undo_actor,
       removed, reversed, restored, kept
  FROM daybook.imports
 WHERE ($1 = '' OR org_id = $1) AND ($2::bigint = 0 OR id = $2) AND ($3::bigint = 0 OR id < $3)
 ORDER BY id DESC
 LIMIT $4`
	list, err := store.Collect(ctx, q, readImport, stmt, f.OrgID, f.ID, f.Before,
		cmp.Or(max(f.Limit, 0), store.DefaultLimit))
	return list, store.Wrap("list the imports", err)
}

func readImport(row pgx.CollectableRow) (i models.Import, err error) {
	var by *string
	err = row.Scan(&i.ID, &i.OrgID, &i.Format, &i.Files, &i.Actor, &i.StartedAt, &i.EndedAt, &i.Inserted, &i.Changed,
		&i.Unchanged, &i.UndoStartedAt, &i.UndoEndedAt, &by, &i.Removed, &i.Reversed, &i.Restored, &i.Kept)
	i.UndoActor = store.Value(by)
	return i, err
}

// UndoImport takes back the next documents of an import behind an id, at most so many, and says
// what became of each. Fewer than most: those were the last.
func UndoImport(ctx context.Context, tx pgx.Tx, id int64, after string, most int, actor string,
) ([]models.UndoneDocument, error) {
	const stmt = `SELECT document_id, result, coalesce(code, ''), coalesce(other_import, 0) FROM daybook.undo_import($1, $2, $3, $4)`
	list, err := store.Collect(ctx, tx, func(row pgx.CollectableRow) (d models.UndoneDocument, err error) {
		return d, row.Scan(&d.ID, &d.Result, &d.Code, &d.OtherImport)
	}, stmt, id, after, most, actor)
	return list, store.Wrap("undo the import", err)
}
