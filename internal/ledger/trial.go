package ledger

import (
	"bytes"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// Trial evaluates documents of an organization without posting them.
type Trial struct{ organization }

// NewTrial returns a trial of what an organization posts by, as the transaction sees it.
func NewTrial(ctx context.Context, tx pgx.Tx, org string) (Trial, error) {
	return NewTrials().Of(ctx, tx, org)
}

// Trials makes trials one after the other, or side by side, and keeps the rules and charts that it
// has read, as a worker does.
type Trials struct{ rules *rules }

// NewTrials returns trials that have read nothing.
func NewTrials() Trials { return Trials{newRules()} }

// Of returns a trial of what an organization posts by, as the transaction sees it.
func (t Trials) Of(ctx context.Context, tx pgx.Tx, org string) (Trial, error) {
	orgs, err := t.rules.load(ctx, tx, []string{org})
	return Trial{orgs[org]}, err
}

// Check says whether the amounts of a document can be posted, as posting.Check does. Rules that
// cannot be compiled post nothing, which the document's job says.
func (t Trial) Check(d *models.Document) error { return posting.Check(d, t.rules.set) }

// Version is the rule set's; nil: the organization has none.
func (t Trial) Version() *int64 { return t.ruleSetVersion }

// With is the trial of another rule set with the same chart and periods.
func (t Trial) With(rules *posting.RuleSet) Trial {
	t.rules, t.ruleSetVersion = compiled{set: rules}, new(int64)
	return t
}

// Evaluate returns a document's impact and its posting date after closed periods were looked at, or
// why there is none.
func (t Trial) Evaluate(d *models.Document) (*posting.Impact, models.Date, *models.JobError) {
	impact, err := t.evaluate(d)
	var day models.Date
	if err == nil {
		day, err = t.dayOf(d, impact.PostingDate)
	}
	if err == nil {
		return impact, day, nil
	}
	if e, ok := errors.AsType[*models.JobError](translate(err)); ok {
		return nil, day, e
	}
	return nil, day, models.Errorf(models.CodeProcessorError, "%v", err)
}

// ComputesDates reports whether a rule computes posting dates, of which the document states none.
func (t Trial) ComputesDates() bool { return t.rules.set != nil && t.rules.set.ComputesDates() }

// ComputedDate is the posting date that a rule computes for a document; false: it computes none.
func (t Trial) ComputedDate(d *models.Document) (models.Date, bool) {
	if t.rules.set == nil {
		return models.Date{}, false
	}
	return t.rules.set.ComputedDate(d)
}

// Refused is why the job of a document would fail, of which last is posted; nil: it would not. A nil
// last: nothing is posted.
func (t Trial) Refused(last *ledgerdb.LastImpact, d *models.Document) *models.JobError {
	impact, _, wrong := t.Evaluate(d)
	if wrong == nil && last.Live() && !Stands(last, impact) {
		_, wrong = t.ReversalDate(last.PostingDate)
	}
	return wrong
}

// Stands reports whether an impact is what a document's last one has posted, so that nothing is
// posted anew.
func Stands(last *ledgerdb.LastImpact, m *posting.Impact) bool {
	return last.Live() && bytes.Equal(contentHash(m), last.ContentHash)
}

// ReversalDate is the posting date on which a posting of a day is reversed.
func (t Trial) ReversalDate(day models.Date) (models.Date, *models.JobError) {
	first, err := t.firstOpenDay(day)
	if e, ok := errors.AsType[*models.JobError](err); ok {
		return first, e
	}
	return first, nil
}

// SameContent reports whether two impacts are the same posting, before periods move their dates.
func SameContent(a, b *posting.Impact) bool { return bytes.Equal(contentHash(a), contentHash(b)) }
