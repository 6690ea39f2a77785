package ledgerdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// JournalPrefix begins the ids of journals that people write.
const JournalPrefix = "journal:"

// NewJournalID makes the id of a journal. Ids are in the order of time.
func NewJournalID(ctx context.Context, q store.Querier) (id string, err error) {
	const stmt = `
SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYYMMDD"T"HH24MISSMS') || '-' || substr(replace(gen_random_uuid()::text, '-', ''), 1, 8)`
	err = q.QueryRow(ctx, stmt).Scan(&id)
	return JournalPrefix + id, store.Wrap("make the id of a journal", err)
}

// KnownJournal is what there is under the id of a journal.
type KnownJournal struct {
	Found, Journal, Deleted bool
	// YearEnd says that it closes a year, on the day of its date.
	YearEnd bool
	Date    models.Date
}

// LockJournal locks the document under an id and says what it is.
func LockJournal(ctx context.Context, tx pgx.Tx, org, id string) (k KnownJournal, err error) {
	const stmt = `
SELECT true, coalesce(jsonb_typeof(d.content -> 'journal') = 'object', false), d.deleted_at IS NOT NULL,
       coalesce(d.content #> '{journal,year_end}' = 'true', false), d.issue_date
  FROM daybook.documents d
 WHERE d.org_id = $1 AND d.id = $2
   FOR NO KEY UPDATE`
	err = tx.QueryRow(ctx, stmt, org, id).Scan(&k.Found, &k.Journal, &k.Deleted, &k.YearEnd, &k.Date)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return k, store.Wrap("read the journal", err)
}

// JournalQuery says which journals to list.
type JournalQuery struct {
	OrgID string
	// Before leaves out those from this id on; empty: none.
	Before string
	// Limit is how many are listed at most; 0: store.DefaultLimit.
	Limit int
}

// Journals lists the journals of an organization whose ids begin with JournalPrefix, in the reverse
// order of their ids.
func Journals(ctx context.Context, q store.Querier, f JournalQuery) ([]models.Document, error) {
	const stmt = `
SELECT d.org_id, d.id, d.type, d.direction, d.currency, d.issue_date, d.value_date, d.content::text, d.accounting_ready_at, d.accounting_ready_version,
       d.accounting_impact_created_at, d.deleted_at, d.import_id, d.created_at, d.updated_at
  FROM daybook.documents d
 WHERE d.org_id = @org AND d.id >= @first AND d.id < @before AND jsonb_typeof(d.content -> 'journal') = 'object'
 ORDER BY d.id DESC
 LIMIT @most`
	list, err := store.Collect(ctx, q, func(row pgx.CollectableRow) (d models.Document, err error) {
		var issued, value *time.Time
		var content []byte
		if err = row.Scan(&d.OrgID, &d.ID, &d.Type, &d.Direction, &d.Currency, &issued, &value, &content, &d.AccountingReadyAt,
			&d.AccountingReadyVersion, &d.AccountingImpactCreatedAt, &d.DeletedAt, &d.ImportID, &d.CreatedAt,
			&d.UpdatedAt); err != nil {
			return d, err
		}
		d.IssueDate = dateOf(issued)
		if value != nil {
			d.ValueDate = new(dateOf(value))
		}
		if d.Content, err = readContent(content); err != nil {
			err = fmt.Errorf("document %s: %w", d.ID, err)
		}
		return d, err
	}, stmt, store.Args{
		"org": f.OrgID, "first": JournalPrefix, "before": cmp.Or(f.Before, JournalPrefix+lastCharacter),
		"most": cmp.Or(f.Limit, store.DefaultLimit),
	})
	return list, store.Wrap("list journals", err)
}
