package books

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/internal/disposition"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// Defaults of PreviewOptions.
const (
	DefaultPreviewDocuments = 200
	DefaultPreviewTime      = 5 * time.Second
)

// PreviewOptions say what to try a rule set on.
type PreviewOptions struct {
	// Failed is how many documents whose jobs failed are tried at most, Recent how many of those that
	// were posted; default DefaultPreviewDocuments.
	Failed, Recent int
	// Time is how long documents are tried at most; default DefaultPreviewTime.
	Time time.Duration
}

// Preview is what a rule set would make of an organization's documents.
type Preview struct {
	// Source is where the organization's documents are. Documents of another source than
	// daybook.documents are not tried: only the application reads them.
	Source string
	// Active is the version that the organization posts by; nil: none.
	Active *int64
	// MissingAccounts are those that the rules can post to and the chart lacks.
	MissingAccounts []string
	// Failures are the organization's failed jobs by code.
	Failures []FailureCount
	// Failed are documents whose jobs failed, those first that an activation brings back; Recent
	// those with the latest posting dates.
	Failed, Recent []Previewed
	// Untried counts documents that were to be tried when the time was up.
	Untried int
}

// FailureCount is how many jobs of an organization failed with a code.
type FailureCount struct {
	Code models.ErrorCode
	// Jobs is how many, up to MaxFailures; MaxFailures + 1: there are more.
	Jobs int64
}

// MaxFailures is how far the failed jobs of a code are counted.
const MaxFailures = ledgerdb.MaxFailures

// Previewed is a document under the present rules and under those that are tried.
type Previewed struct {
	ID      string
	Type    models.DocumentType
	Version int64
	// Code and Message are its failed job's; empty: it did not fail.
	Code    models.ErrorCode
	Message string
	// ComesBack says that activating a rule set makes the job pending again.
	ComesBack bool
	// Now is what the present rules make of the document, Then what the others would.
	Now, Then PreviewOutcome
}

// Same reports whether both rule sets make the same of the document.
func (p *Previewed) Same() bool {
	if p.Now.Impact == nil || p.Then.Impact == nil {
		return p.Now.Impact == nil && p.Then.Impact == nil && p.Now.Code == p.Then.Code
	}
	return p.Now.PostingDate == p.Then.PostingDate && ledger.SameContent(p.Now.Impact, p.Then.Impact)
}

// PreviewOutcome is what rules make of a document: an impact, or an error.
type PreviewOutcome struct {
	Impact *posting.Impact
	// PostingDate is the impact's after closed periods were looked at.
	PostingDate models.Date
	// Code and Message say why there is no impact.
	Code    models.ErrorCode
	Message string
}

var errTimeUp = errors.New("the time is up")

// PreviewRules tries a rule set on documents of an organization: what an activation of it would
// change. It reads one state of the database, locks no row and writes nothing.
//
// Errors: ErrOrganizationNotFound.
func PreviewRules(ctx context.Context, db DB, org string, rules *posting.RuleSet, o PreviewOptions) (Preview, error) {
	if err := check(db); err != nil {
		return Preview{}, err
	}
	o.Failed, o.Recent = cmp.Or(o.Failed, DefaultPreviewDocuments), cmp.Or(o.Recent, DefaultPreviewDocuments)
	p := previewer{org: org, rules: rules, options: o, began: time.Now()}
	err := store.ReadSnapshot(ctx, db, func(tx pgx.Tx) error { return p.run(ctx, tx) })
	return p.preview, store.Wrap("try the rule set", err)
}

type previewer struct {
	org     string
	rules   *posting.RuleSet
	options PreviewOptions
	began   time.Time
	now     ledger.Trial
	then    ledger.Trial
	preview Preview
}

func (p *previewer) run(ctx context.Context, tx pgx.Tx) error {
	if err := known(ctx, tx, p.org); err != nil {
		return err
	}
	needs, err := store.NeedsOf(ctx, tx, []string{p.org})
	if err != nil {
		return err
	}
	if p.now, err = ledger.NewTrial(ctx, tx, p.org); err != nil {
		return err
	}
	if p.preview.MissingAccounts, err = missingAccounts(ctx, tx, p.org, p.rules); err != nil {
		return err
	}
	p.then = p.now.With(p.rules)
	p.preview.Source, p.preview.Active = needs[p.org].Source, p.now.Version()
	failing := failingCodes()
	counts, err := ledgerdb.CountFailures(ctx, tx, p.org, failing)
	for _, c := range counts {
		p.preview.Failures = append(p.preview.Failures, FailureCount(c))
	}
	if err != nil || p.preview.Source != store.SourceDaybook {
		return err
	}
	if err := p.tryFailed(ctx, tx, failing); err != nil {
		return err
	}
	return p.tryRecent(ctx, tx)
}

// failingCodes are the codes that a failed job can have, those first that an activation brings
// back.
func failingCodes() []models.ErrorCode {
	codes := ledgerdb.CodesOfRules()
	for _, row := range disposition.Table() {
		if row.Treatment != disposition.TreatReschedule && row.Treatment != disposition.TreatCancel &&
			!slices.Contains(codes, row.Code) {
			codes = append(codes, row.Code)
		}
	}
	return codes
}

func (p *previewer) tryFailed(ctx context.Context, tx pgx.Tx, codes []models.ErrorCode) error {
	failed, err := ledgerdb.FailedDocuments(ctx, tx, p.org, codes, p.options.Failed)
	if err != nil {
		return err
	}
	ids := make([]string, len(failed))
	for i, f := range failed {
		ids[i] = f.ID
	}
	tried, err := p.try(ctx, tx, ids)
	for _, f := range failed {
		if d, ok := tried[f.ID]; ok {
			d.Code, d.Message, d.ComesBack = f.Code, f.Message, slices.Contains(ledgerdb.CodesOfRules(), f.Code)
			p.preview.Failed = append(p.preview.Failed, d)
		}
	}
	return err
}

func (p *previewer) tryRecent(ctx context.Context, tx pgx.Tx) error {
	ids, err := ledgerdb.RecentDocuments(ctx, tx, p.org, p.options.Recent)
	if err != nil {
		return err
	}
	failed := func(id string) bool {
		return slices.ContainsFunc(p.preview.Failed, func(d Previewed) bool { return d.ID == id })
	}
	ids = slices.DeleteFunc(ids, failed)
	tried, err := p.try(ctx, tx, ids)
	for _, id := range ids {
		if d, ok := tried[id]; ok {
			p.preview.Recent = append(p.preview.Recent, d)
		}
	}
	return err
}

// try evaluates documents that are ready, until the time is up. Others are left out.
func (p *previewer) try(ctx context.Context, tx pgx.Tx, ids []string) (map[string]Previewed, error) {
	tried := make(map[string]Previewed, len(ids))
	read := 0
	err := ledgerdb.ReadDocuments(ctx, tx, p.org, ids, func(d *models.Document, invalid error) error {
		if time.Since(p.began) > cmp.Or(p.options.Time, DefaultPreviewTime) {
			return errTimeUp
		}
		read++
		if d.AccountingReadyAt == nil || d.DeletedAt != nil {
			return nil
		}
		tried[d.ID] = Previewed{
			ID: d.ID, Type: d.Type, Version: d.AccountingReadyVersion, Now: outcome(p.now, d, invalid),
			Then: outcome(p.then, d, invalid),
		}
		return nil
	})
	if errors.Is(err, errTimeUp) {
		p.preview.Untried += len(ids) - read
		err = nil
	}
	return tried, err
}

// outcome says what would become of a document.
func outcome(t ledger.Trial, d *models.Document, invalid error) PreviewOutcome {
	if invalid != nil {
		return PreviewOutcome{Code: models.CodeDocumentInvalid, Message: invalid.Error()}
	}
	impact, day, wrong := t.Evaluate(d)
	if wrong != nil {
		return PreviewOutcome{Code: wrong.Code, Message: wrong.Message}
	}
	return PreviewOutcome{Impact: impact, PostingDate: day}
}
