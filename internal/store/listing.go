package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/daybook-dev/daybook/internal/failure"
	"github.com/daybook-dev/daybook/models"
)

// Errors of reading.
var (
	// ErrOrganizationNotFound: the database has nothing of the organization: no configuration, no document and no job.
	ErrOrganizationNotFound = failure.New(failure.OrganizationNotFound, "no such organization")
	// ErrNoRuleSet: the organization has no active rule set; apply one.
	ErrNoRuleSet = failure.New(failure.NoRuleSet, "no active rule set")
)

func noOrganization(id string) error {
	return fmt.Errorf("%w: %s; it is known from its first rules, account, document or job on", ErrOrganizationNotFound, id)
}

// DefaultLimit is how many rows a list has when its filter does not say.
const DefaultLimit = 100

// Listing reads for the command line and the HTTP API: lists, searches and single rows. It locks and changes nothing.
type Listing struct {
	pool *pgxpool.Pool
	sql  *sql.DB
	db   *gorm.DB
}

// NewListing returns a listing on pool, which stays the caller's to close. Close the listing first.
func NewListing(pool *pgxpool.Pool) (*Listing, error) {
	handle := stdlib.OpenDBFromPool(pool)
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: handle}), &gorm.Config{
		Logger: logger.Discard, SkipDefaultTransaction: true, DisableAutomaticPing: true,
	})
	if err != nil {
		return nil, errors.Join(wrap("open the listing", err), handle.Close())
	}
	return &Listing{pool: pool, sql: handle, db: db}, nil
}

// Close ends the listing; the pool stays open.
func (l *Listing) Close() error { return l.sql.Close() }

// where adds a condition on a column, unless the value is empty: that means any.
func where[T ~string](q *gorm.DB, condition string, value T) *gorm.DB {
	if value == "" {
		return q
	}
	return q.Where(condition, value)
}

// find reads the rows of a query; doing says in an error what was being done.
func find[T any](doing string, q *gorm.DB) ([]T, error) {
	rows := []T{}
	err := q.Find(&rows).Error
	return rows, wrap(doing, err)
}

// one reads the row of a query, or returns missing when there is none.
func one[T any](doing string, q *gorm.DB, missing error) (T, error) {
	var row T
	err := q.Take(&row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return row, missing
	}
	return row, wrap(doing, err)
}

// HistoryPage says which part of the history of a job to read, which may be long.
type HistoryPage struct {
	// Before is the id of an attempt: older ones are read; 0: the newest.
	Before int64
	// Limit is how many are read at most; default DefaultLimit.
	Limit int
}

// history are the attempts of a page, the newest first.
func history(db *gorm.DB, jobID string, p HistoryPage) *gorm.DB {
	q := db.Where("job_id = ?", jobID).Order("id DESC").Limit(cmp.Or(p.Limit, DefaultLimit))
	if p.Before > 0 {
		q = q.Where("id < ?", p.Before)
	}
	return q
}

// Attempts lists a page of the attempts at a job, the newest first.
func (l *Listing) Attempts(ctx context.Context, jobID string, p HistoryPage) ([]models.Attempt, error) {
	return find[models.Attempt]("list attempts", history(l.db.WithContext(ctx), jobID, p))
}

// Impacts lists the chain of a document's impacts.
func (l *Listing) Impacts(ctx context.Context, org, document string) ([]models.Impact, error) {
	return find[models.Impact]("list impacts", l.db.WithContext(ctx).Where("org_id = ? AND document_id = ?", org, document).Order("seq"))
}

// EntryFilter says which entries to list. OrgID is required; the zero value of each other field means any.
type EntryFilter struct {
	OrgID      string
	DocumentID string
	Account    string
	// Limit is how many are listed at most; default DefaultLimit.
	Limit int
}

// EntryLine is an entry with the columns that explain it.
type EntryLine struct {
	models.Entry
	DocumentID      string            `gorm:"column:document_id" json:"document_id"`
	DocumentVersion int64             `gorm:"column:document_version" json:"document_version"`
	Kind            models.ImpactKind `gorm:"column:kind" json:"kind"`
	PostingDate     models.Date       `gorm:"column:posting_date" json:"posting_date"`
	DocumentDate    models.Date       `gorm:"column:document_date" json:"document_date"`
	RuleSetVersion  *int64            `gorm:"column:rule_set_version" json:"rule_set_version,omitempty"`
	RuleID          string            `gorm:"column:rule_id" json:"rule_id,omitempty"`
	Epoch           int               `gorm:"column:epoch" json:"epoch,omitempty"`
	JobID           string            `gorm:"column:job_id" json:"job_id"`
	Attempt         int               `gorm:"column:attempt" json:"attempt"`
	WorkflowRunID   string            `gorm:"column:workflow_run_id" json:"workflow_run_id,omitempty"`
}

// Entries lists entries, the last posted impact first, the lines of an impact in their order.
func (l *Listing) Entries(ctx context.Context, f EntryFilter) ([]EntryLine, error) {
	return find[EntryLine]("list entries", l.entries(ctx, f))
}

func (l *Listing) entries(ctx context.Context, f EntryFilter) *gorm.DB {
	q := l.db.WithContext(ctx).Table("daybook.entries AS e").
		Select("e.*, i.document_id, i.document_version, i.kind, i.posting_date, i.document_date, i.rule_set_version, i.rule_id, i.epoch, "+
			"i.job_id, i.attempt, i.workflow_run_id").
		Joins("JOIN daybook.impacts i ON i.id = e.impact_id").
		Where("e.org_id = ?", f.OrgID).Order("e.impact_id DESC, e.line_no").Limit(cmp.Or(f.Limit, DefaultLimit))
	if f.DocumentID != "" {
		q = q.Where("i.document_id = ? AND i.org_id = ?", f.DocumentID, f.OrgID)
	}
	return where(q, "e.account_code = ?", f.Account)
}

// Organizations lists the organizations that Daybook knows.
func (l *Listing) Organizations(ctx context.Context) ([]models.Organization, error) {
	return find[models.Organization]("list organizations", l.db.WithContext(ctx).Order("id"))
}

// Organization reads one organization, or returns ErrOrganizationNotFound. One that has documents or jobs alone, which SQL may have written,
// has the defaults of a configuration.
func (l *Listing) Organization(ctx context.Context, id string) (models.Organization, error) {
	o, err := one[models.Organization]("read the organization", l.db.WithContext(ctx).Where("id = ?", id), noOrganization(id))
	if !errors.Is(err, ErrOrganizationNotFound) {
		return o, err
	}
	unknown, otherErr := UnknownOrganizations(ctx, l.pool, []string{id})
	if otherErr != nil {
		return o, otherErr
	}
	if len(unknown) > 0 {
		return o, err
	}
	return models.Organization{ID: id, ClosedPeriodPolicy: models.PolicyFail}, nil
}

// Accounts lists an organization's chart of accounts in the order of the codes.
func (l *Listing) Accounts(ctx context.Context, org string) ([]models.Account, error) {
	return find[models.Account]("list accounts", l.db.WithContext(ctx).Where("org_id = ?", org).Order("code"))
}

// ActiveRuleSet reads the rule set that an organization posts by, or returns ErrNoRuleSet.
func (l *Listing) ActiveRuleSet(ctx context.Context, org string) (models.RuleSet, error) {
	o, err := l.Organization(ctx, org)
	switch {
	case err != nil:
		return models.RuleSet{}, err
	case o.ActiveRuleSet == nil:
		return models.RuleSet{}, fmt.Errorf("%w: organization %s", ErrNoRuleSet, org)
	}
	return l.ruleSet(ctx, org, *o.ActiveRuleSet)
}
