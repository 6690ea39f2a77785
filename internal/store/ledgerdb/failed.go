package ledgerdb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// FailedDocument is a document whose job failed.
type FailedDocument struct {
	ID      string
	Version int64
	Code    models.ErrorCode
	Message string
	// At is when the job failed.
	At time.Time
}

// The statements about failed jobs name a code by its bounds and ask for the order of the codes: so
// PostgreSQL walks the index that begins with the organization and the code, and not the one of all
// failed jobs.

// FailedDocuments lists an organization's documents whose jobs failed with one of the codes, in the
// order of the codes, those of a code that failed last first, at most limit.
func FailedDocuments(ctx context.Context, q store.Querier, org string, codes []models.ErrorCode,
	limit int,
) ([]FailedDocument, error) {
	const stmt = `
SELECT document_id, version_hint, last_error_code, coalesce(last_error, ''), updated_at
  FROM daybook.accounting_work_queue
 WHERE org_id = $1 AND state = 'failed' AND last_error_code >= $2 AND last_error_code <= $2
 ORDER BY last_error_code, updated_at DESC, id
 LIMIT $3`
	var failed []FailedDocument
	for _, code := range codes {
		if len(failed) == limit {
			break
		}
		some, err := store.Collect(ctx, q, pgx.RowToStructByPos[FailedDocument], stmt, org, string(code), limit-len(failed))
		if err != nil {
			return nil, store.Wrap("list failed documents", err)
		}
		failed = append(failed, some...)
	}
	return failed, nil
}

// FailureCount is how many jobs of an organization failed with a code.
type FailureCount struct {
	Code models.ErrorCode
	Jobs int64
}

// MaxFailures is how far CountFailures counts: a greater number is given as MaxFailures + 1.
const MaxFailures = 10000

// CountFailures counts an organization's failed jobs by code, in the order of the codes; codes
// without any are left out.
func CountFailures(ctx context.Context, q store.Querier, org string, codes []models.ErrorCode) ([]FailureCount, error) {
	const stmt = `
SELECT count(*)
  FROM (SELECT 1 FROM daybook.accounting_work_queue
         WHERE org_id = $1 AND state = 'failed' AND last_error_code >= $2 AND last_error_code <= $2
         ORDER BY last_error_code
         LIMIT $3) counted`
	var counts []FailureCount
	for _, code := range codes {
		jobs, err := store.Collect(ctx, q, pgx.RowTo[int64], stmt, org, string(code), MaxFailures+1)
		if err != nil {
			return nil, store.Wrap("count failed documents", err)
		}
		if jobs[0] > 0 {
			counts = append(counts, FailureCount{Code: code, Jobs: jobs[0]})
		}
	}
	return counts, nil
}

// RecentDocuments lists the documents of an organization that have the latest posting dates, the
// latest first, at most limit.
func RecentDocuments(ctx context.Context, q store.Querier, org string, limit int) ([]string, error) {
	// A document that was posted anew has several impacts.
	const perDocument = 4
	const stmt = `SELECT document_id FROM daybook.impacts WHERE org_id = $1 ORDER BY posting_date DESC, id DESC LIMIT $2`
	var ids []string
	seen := map[string]bool{}
	var id string
	err := store.Each(ctx, q, []any{&id}, func() error {
		if !seen[id] && len(ids) < limit {
			seen[id] = true
			ids = append(ids, id)
		}
		return nil
	}, stmt, org, limit*perDocument)
	return ids, store.Wrap("list recent documents", err)
}

// UnfinishedDocuments lists the documents of an organization whose jobs failed or wait.
func UnfinishedDocuments(ctx context.Context, q store.Querier, org string) ([]string, error) {
	const stmt = `SELECT document_id FROM daybook.accounting_work_queue WHERE org_id = $1 AND state IN ('pending', 'leased', 'failed')`
	ids, err := store.Collect(ctx, q, pgx.RowTo[string], stmt, org)
	return ids, store.Wrap("list unfinished documents", err)
}

// ReadDocuments calls f with each of an organization's documents of daybook.documents that are
// named, without locking them, one after the other: their contents are not held together. invalid
// says why a content cannot be read. An error of f ends it.
func ReadDocuments(ctx context.Context, q store.Querier, org string, ids []string,
	f func(d *models.Document, invalid error) error,
) error {
	const stmt = `
SELECT d.id, d.type, d.direction, d.currency, d.issue_date, d.value_date, d.content::text, d.accounting_ready_at, d.accounting_ready_version, d.deleted_at
  FROM unnest($2::text[]) AS k (id)
 CROSS JOIN LATERAL (SELECT * FROM daybook.documents x WHERE x.org_id = $1 AND x.id = k.id LIMIT 1) d`
	var d models.Document
	var issue, value *time.Time
	var content pgtype.DriverBytes
	fields := []any{
		&d.ID, &d.Type, &d.Direction, &d.Currency, &issue, &value, &content, &d.AccountingReadyAt,
		&d.AccountingReadyVersion, &d.DeletedAt,
	}
	err := store.Each(ctx, q, fields, func() error {
		found := d
		found.OrgID, found.IssueDate = org, dateOf(issue)
		if value != nil {
			found.ValueDate = new(dateOf(value))
		}
		var invalid error
		found.Content, invalid = readContent(content)
		return f(&found, invalid)
	}, stmt, org, ids)
	return store.Wrap("read documents", err)
}
