package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
)

// auditChunk is how many documents of a source are compared in one transaction.
const auditChunk = 200

// errUndo rolls back a transaction that only reads.
var errUndo = errors.New("nothing is to be kept")

// Audit is audit.Run, and compares what is posted with the documents of the sources as well.
//
// Documents of a source are read by LockAndRead, in small transactions that are rolled back: each
// is held for a moment, and those that another transaction holds are counted and left out. The
// audit asks for the documents that Daybook has a job or an impact of; a document that was never
// enqueued is known to its application alone.
func Audit(ctx context.Context, pool *pgxpool.Pool, sources Sources, o audit.Options) (audit.Report, error) {
	o.Limit = cmp.Or(max(o.Limit, 0), audit.DefaultFindings)
	r, err := audit.Run(ctx, pool, o)
	if err != nil {
		return r, err
	}
	for i := range r.Figures.Sources {
		f := &r.Figures.Sources[i]
		if source := sources[f.Name]; source != nil && f.Name != store.SourceDaybook {
			a := auditor{pool: pool, source: source, figures: f, report: &r, limit: o.Limit}
			if err := a.run(ctx, o.OrgID); err != nil {
				return r, fmt.Errorf("audit the source %s: %w", f.Name, err)
			}
			f.Checked = true
		}
	}
	return r, nil
}

// auditor compares the documents of one source.
type auditor struct {
	pool    *pgxpool.Pool
	source  DocumentSource
	figures *audit.SourceFigures
	report  *audit.Report
	limit   int
}

func (a *auditor) run(ctx context.Context, only string) error {
	orgs, err := ledgerdb.OrganizationsOf(ctx, a.pool, a.figures.Name, only)
	if err != nil {
		return err
	}
	for _, org := range orgs {
		for after := ""; ; {
			keys, err := ledgerdb.DocumentsOf(ctx, a.pool, org, after, auditChunk)
			if err != nil {
				return err
			}
			if len(keys) == 0 {
				break
			}
			for rest := keys; len(rest) > 0; {
				if rest, err = a.chunk(ctx, rest); err != nil {
					return err
				}
			}
			after = keys[len(keys)-1].ID
		}
	}
	return nil
}

// chunk compares documents, and returns those that the source has put off.
func (a *auditor) chunk(ctx context.Context, keys []Key) (later []Key, err error) {
	var found []Found
	var postings []ledgerdb.DocumentPosting
	err = store.Begin(ctx, a.pool, func(tx pgx.Tx) error {
		var err error
		if found, err = a.source.LockAndRead(ctx, tx, keys); err != nil {
			return err
		}
		// Read while the documents are locked: no worker changes what is posted of them before this
		// transaction ends.
		if postings, err = ledgerdb.Postings(ctx, tx, keys); err != nil {
			return err
		}
		return errUndo
	})
	if !errors.Is(err, errUndo) {
		return nil, err
	}
	if len(found) != len(keys) {
		return nil, fmt.Errorf("it answered for %d of %d keys: it must answer for each, in order", len(found), len(keys))
	}
	for i, f := range found {
		if f.State == DocumentLater {
			later = append(later, keys[i])
			continue
		}
		if err := a.compare(keys[i], f, postings[i]); err != nil {
			return nil, err
		}
	}
	if len(later) == len(keys) {
		return nil, errors.New("it put off every document that it was asked for")
	}
	return later, nil
}

// compare reports what is wrong with one document. A document with an open job is left out: that
// job will post it.
func (a *auditor) compare(key Key, f Found, p ledgerdb.DocumentPosting) error {
	if f.State == DocumentLocked {
		a.figures.Locked++
		return nil
	}
	switch {
	case f.State == DocumentDeleted, f.State == DocumentUnknown:
	case f.State != DocumentHere:
		return fmt.Errorf("it did not answer for document %s of organization %s: it must set State for each key", key.ID,
			key.OrgID)
	case f.Document == nil && f.Err == nil:
		return fmt.Errorf("it says that document %s of organization %s is here, and gave no document", key.ID, key.OrgID)
	}
	if f.State == DocumentHere {
		a.figures.Documents++
	}
	if slices.Contains([]string{"pending", "leased"}, p.JobState) || f.State == DocumentHere && f.Document == nil {
		return nil
	}
	gone := f.State == DocumentDeleted || f.Document != nil && f.Document.DeletedAt != nil
	switch {
	case f.State == DocumentUnknown:
		a.wrong(p.LiveID != nil && !p.LiveRetracts, "impact_of_unknown_document", key, p,
			"the source knows no such document")
	case gone:
		a.wrong(p.LiveID != nil && !p.LiveRetracts, "retracted_document_posted", key, p, "the document is deleted")
	case f.Document.AccountingReadyAt == nil:
		a.wrong(p.LiveID != nil && !p.LiveRetracts, "retracted_document_posted", key, p, "the document is not ready")
	default:
		version := f.Document.AccountingReadyVersion
		a.wrong(p.LiveVersion != nil && *p.LiveVersion > version, "document_behind_its_posting", key, p,
			fmt.Sprintf("the document is at version %d", version))
		posted := p.LiveVersion != nil &&
			(*p.LiveVersion >= version || p.ConfirmedVersion != nil && *p.ConfirmedVersion >= version)
		elsewhere := p.LiveID == nil && p.ElsewhereVersion != nil && *p.ElsewhereVersion >= version
		failed := p.JobState == "failed" && p.JobVersion >= version
		a.wrong(posted && !failed && p.Bare && f.Err == nil && f.Document.Content.StatesAmount(), "amount_not_posted", key,
			p, "the document states an amount, and has no entry")
		a.wrong(!posted && !elsewhere && !failed, "document_not_posted", key, p,
			fmt.Sprintf("version %d is ready", version))
	}
	return nil
}

// wrong reports a finding, if it is one.
func (a *auditor) wrong(is bool, kind string, key Key, p ledgerdb.DocumentPosting, why string) {
	if !is {
		return
	}
	f := audit.Finding{OrgID: key.OrgID, DocumentID: key.ID, Detail: why + "; nothing is posted"}
	if p.LiveID != nil {
		f.ImpactID, f.Detail = *p.LiveID, fmt.Sprintf("%s; version %d is posted", why, *p.LiveVersion)
	}
	if p.JobState == "" {
		f.Detail += "; there is no job"
	} else {
		f.Detail += fmt.Sprintf("; its job for version %d is %s", p.JobVersion, p.JobState)
	}
	audit.AddFinding(a.report, kind, a.limit, f)
}
