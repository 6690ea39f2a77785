package listing

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// Impacts lists the chain of a document's impacts.
func (l *Listing) Impacts(ctx context.Context, org, document string) ([]models.Impact, error) {
	return find[models.Impact]("list impacts",
		l.db.WithContext(ctx).Where("org_id = ? AND document_id = ?", org, document).Order("seq"))
}

// PostedElsewhere reads what another system has posted of a document, or returns
// ErrDocumentNotFound when that is nothing.
func (l *Listing) PostedElsewhere(ctx context.Context, org, document string) (models.PostedElsewhere, error) {
	missing := fmt.Errorf("%w that is posted elsewhere: organization %s, document %s", store.ErrDocumentNotFound, org,
		document)
	return one[models.PostedElsewhere]("read what is posted elsewhere",
		l.db.WithContext(ctx).Where("org_id = ? AND document_id = ?", org, document), missing)
}

// EntryFilter says which entries to list. OrgID is required; the zero value of each other field
// means any.
type EntryFilter struct {
	OrgID      string
	DocumentID string
	Account    string
	Currency   string
	// From and To are the first and the last posting date.
	From, To models.Date
	// Limit is how many are listed at most; default DefaultLimit.
	Limit int
}

// EntryPlace is where a list of entries goes on: after this line.
type EntryPlace struct {
	Day      models.Date
	ImpactID int64
	LineNo   int
}

// Place is the line's.
func Place(l *ledgerdb.EntryLine) EntryPlace {
	return EntryPlace{Day: l.PostingDate, ImpactID: l.ImpactID, LineNo: l.LineNo}
}

// Entries lists entries from a place on, those with the latest posting date first, the last posted
// impact of a day first; the zero place: from the beginning. An index has this order, so that a
// page reads few entries of any span of days, and none of other organizations.
func (l *Listing) Entries(ctx context.Context, f EntryFilter, after EntryPlace) ([]ledgerdb.EntryLine, error) {
	q := l.entriesOf(ctx, f).Where("i.org_id = ?", f.OrgID).Order("i.posting_date DESC, i.id DESC, e.line_no")
	if f.Account != "" {
		// Beside an account this leads to an index; alone it would only lead to all entries of the
		// organization.
		q = q.Where("e.org_id = ?", f.OrgID)
	}
	if !after.Day.IsZero() {
		q = q.Where("(i.posting_date, i.id) <= (?, ?) AND ((i.posting_date, i.id) < (?, ?) OR e.line_no > ?)", after.Day,
			after.ImpactID, after.Day, after.ImpactID, after.LineNo)
	}
	return find[ledgerdb.EntryLine]("list entries", q)
}

func (l *Listing) entriesOf(ctx context.Context, f EntryFilter) *gorm.DB {
	q := l.db.WithContext(ctx).Table("daybook.entries AS e").
		Select("e.*, i.document_id, i.document_version, i.kind, i.posting_date, i.document_date, i.rule_set_version, " +
			"i.rule_id, i.epoch, " +
			"i.job_id, i.attempt, i.workflow_run_id").
		Joins("JOIN daybook.impacts i ON i.id = e.impact_id").Limit(cmp.Or(f.Limit, store.DefaultLimit))
	if f.DocumentID != "" {
		q = q.Where("i.document_id = ? AND i.org_id = ?", f.DocumentID, f.OrgID)
	}
	if !f.From.IsZero() {
		q = q.Where("i.org_id = ? AND i.posting_date >= ?", f.OrgID, f.From)
	}
	if !f.To.IsZero() {
		q = q.Where("i.org_id = ? AND i.posting_date <= ?", f.OrgID, f.To)
	}
	return where(where(q, "e.account_code = ?", f.Account), "e.currency = ?", f.Currency)
}

// Organizations lists the organizations that Daybook knows.
func (l *Listing) Organizations(ctx context.Context) ([]models.Organization, error) {
	return find[models.Organization]("list organizations", l.db.WithContext(ctx).Order("id"))
}

// Organization reads one organization, or returns ErrOrganizationNotFound. One that has documents
// or jobs alone, which SQL may have written, has the defaults of a configuration.
func (l *Listing) Organization(ctx context.Context, id string) (models.Organization, error) {
	o, err := one[models.Organization]("read the organization", l.db.WithContext(ctx).Where("id = ?", id),
		store.NoOrganization(id))
	if !errors.Is(err, store.ErrOrganizationNotFound) {
		return o, err
	}
	unknown, otherErr := store.UnknownOrganizations(ctx, l.pool, []string{id})
	if otherErr != nil {
		return o, otherErr
	}
	if len(unknown) > 0 {
		return o, err
	}
	return models.Organization{ID: id, ClosedPeriodPolicy: models.PolicyFail}, nil
}
