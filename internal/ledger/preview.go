package ledger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/disposition"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/posting"
)

// Defaults of PreviewOptions.
const (
	DefaultPreviewDocuments = 200
	DefaultPreviewTime      = 5 * time.Second
)

// PreviewOptions say what to try a rule set on.
type PreviewOptions struct {
	OrgID string
	Rules *posting.RuleSet
	// Failed is how many documents whose jobs failed are tried at most, Recent how many of those that were posted; default
	// DefaultPreviewDocuments.
	Failed, Recent int
	// Time is how long documents are tried at most; default DefaultPreviewTime.
	Time time.Duration
}

// Preview is what a rule set would make of an organization's documents.
type Preview struct {
	// Source is where the organization's documents are. Documents of another source than daybook.documents are not tried: only the
	// application reads them.
	Source string
	// Active is the version that the organization posts by; nil: none.
	Active *int64
	// MissingAccounts are those that the rules can post to and the chart lacks.
	MissingAccounts []string
	// Failures are the organization's failed jobs by code.
	Failures []ledgerdb.FailureCount
	// Failed are documents whose jobs failed, those first that an activation brings back; Recent those with the latest posting dates.
	Failed, Recent []Previewed
	// Untried counts documents that were to be tried when the time was up.
	Untried int
}

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
	return p.Now.PostingDate == p.Then.PostingDate && bytes.Equal(contentHash(p.Now.Impact), contentHash(p.Then.Impact))
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

// PreviewRules tries a rule set on documents of an organization. It reads one state of the database, locks no row and writes nothing.
func PreviewRules(ctx context.Context, pool *pgxpool.Pool, o PreviewOptions) (Preview, error) {
	o.Failed, o.Recent = cmp.Or(o.Failed, DefaultPreviewDocuments), cmp.Or(o.Recent, DefaultPreviewDocuments)
	p := previewer{options: o, began: time.Now()}
	err := store.ReadSnapshot(ctx, pool, func(tx pgx.Tx) error { return p.run(ctx, tx) })
	return p.preview, store.Wrap("try the rule set", err)
}

type previewer struct {
	options PreviewOptions
	began   time.Time
	now     organization
	then    organization
	preview Preview
}

func (p *previewer) run(ctx context.Context, tx pgx.Tx) error {
	org := p.options.OrgID
	needs, err := store.NeedsOf(ctx, tx, []string{org})
	if err != nil {
		return err
	}
	orgs, err := newRules().load(ctx, tx, []string{org})
	if err != nil {
		return err
	}
	if p.preview.MissingAccounts, err = MissingAccounts(ctx, tx, org, p.options.Rules); err != nil {
		return err
	}
	p.now = orgs[org]
	p.then = p.now
	p.then.rules, p.then.ruleSetVersion = compiled{set: p.options.Rules}, new(int64)
	p.preview.Source, p.preview.Active = needs[org].Source, p.now.ruleSetVersion
	failing := failingCodes()
	if p.preview.Failures, err = ledgerdb.CountFailures(ctx, tx, org, failing); err != nil || p.preview.Source != store.SourceDaybook {
		return err
	}
	if err := p.tryFailed(ctx, tx, failing); err != nil {
		return err
	}
	return p.tryRecent(ctx, tx)
}

// failingCodes are the codes that a failed job can have, those first that an activation brings back.
func failingCodes() []models.ErrorCode {
	codes := ledgerdb.CodesOfRules()
	for _, row := range disposition.Table() {
		if row.Treatment != disposition.TreatReschedule && row.Treatment != disposition.TreatCancel && !slices.Contains(codes, row.Code) {
			codes = append(codes, row.Code)
		}
	}
	return codes
}

func (p *previewer) tryFailed(ctx context.Context, tx pgx.Tx, codes []models.ErrorCode) error {
	failed, err := ledgerdb.FailedDocuments(ctx, tx, p.options.OrgID, codes, p.options.Failed)
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
	ids, err := ledgerdb.RecentDocuments(ctx, tx, p.options.OrgID, p.options.Recent)
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
	err := ledgerdb.ReadDocuments(ctx, tx, p.options.OrgID, ids, func(d *models.Document, invalid error) error {
		if time.Since(p.began) > cmp.Or(p.options.Time, DefaultPreviewTime) {
			return errTimeUp
		}
		read++
		if d.AccountingReadyAt == nil || d.DeletedAt != nil {
			return nil
		}
		tried[d.ID] = Previewed{ID: d.ID, Type: d.Type, Version: d.AccountingReadyVersion, Now: p.now.preview(d, invalid), Then: p.then.preview(d, invalid)}
		return nil
	})
	if errors.Is(err, errTimeUp) {
		p.preview.Untried += len(ids) - read
		err = nil
	}
	return tried, err
}

// preview says what would become of a document.
func (o organization) preview(d *models.Document, invalid error) PreviewOutcome {
	if invalid != nil {
		return PreviewOutcome{Code: models.CodeDocumentInvalid, Message: invalid.Error()}
	}
	impact, err := o.evaluate(d)
	var day models.Date
	if err == nil {
		day, err = o.postingDate(impact.PostingDate)
	}
	if err == nil {
		return PreviewOutcome{Impact: impact, PostingDate: day}
	}
	out := PreviewOutcome{Code: models.CodeProcessorError, Message: err.Error()}
	if e, ok := errors.AsType[*models.JobError](translate(err)); ok {
		out.Code, out.Message = e.Code, e.Message
	}
	return out
}
