package ledger

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// Ledger posts documents. It is safe for concurrent use.
type Ledger struct {
	sources Sources
	rules   *rules
	hooks   Hooks
	// evaluated is told how long the rules of a document took; nil: it is not measured.
	evaluated func(time.Duration)
}

// New returns a ledger that reads documents from daybook.documents, under its name, and from
// further sources.
func New(sources Sources) *Ledger {
	all := Sources{store.SourceDaybook: nil} // ownDocuments, of each chunk
	maps.Copy(all, sources)
	return &Ledger{sources: all, rules: newRules()}
}

// WithTiming has the ledger tell how long the rules of each document take; nil: it does not. It
// returns the ledger.
func (l *Ledger) WithTiming(evaluated func(time.Duration)) *Ledger {
	l.evaluated = evaluated
	return l
}

// Abilities are what the ledger reads and tells.
func (l *Ledger) Abilities() store.Abilities {
	return store.Abilities{Sources: slices.Sorted(maps.Keys(l.sources)), Hooks: slices.Sorted(maps.Keys(l.hooks))}
}

// Prepare implements engine.Processor. Rules are evaluated in microseconds, so everything is done
// in Commit, under the documents' locks.
func (l *Ledger) Prepare(context.Context, []engine.Job) (engine.Commit, error) { return l.commit, nil }

// commit posts what is to be posted of a chunk.
func (l *Ledger) commit(ctx context.Context, tx pgx.Tx, jobs []engine.Job) ([]error, error) {
	c := &chunk{
		ledger: l, tx: tx, jobs: jobs, errs: make([]error, len(jobs)), keys: make([]Key, 0, len(jobs)),
		plans: make([]plan, 0, len(jobs)),
	}
	if err := c.read(ctx); err != nil {
		return nil, err
	}
	for i := range jobs {
		c.decide(i)
	}
	if err := c.insert(ctx); err != nil {
		return nil, err
	}
	return c.errs, nil
}

// chunk is the work of one transaction.
type chunk struct {
	ledger *Ledger
	tx     pgx.Tx
	jobs   []engine.Job
	// errs says how each job ended, as the engine wants it.
	errs []error

	keys  []Key
	found []Found
	last  []*ledgerdb.LastImpact
	// elsewhere is what other systems have posted; nil: nothing of any document.
	elsewhere []*ledgerdb.Elsewhere
	orgs      map[string]organization
	// usable names the organizations whose configuration no transaction is changing; "" stands for
	// the defaults of all.
	usable map[string]bool
	// own reads daybook.documents.
	own ownDocuments
	// needs holds the source and the hooks of each organization.
	needs map[string]store.Needs

	plans         []plan
	confirmations []models.Confirmation
}

// plan is what one job changes in the ledger: the live impact is reversed, a new one posted, or
// both.
type plan struct {
	index   int
	reverse *ledgerdb.LastImpact
	post    *posting.Impact
	// hash and epoch are the new impact's; postingDate is its date after periods were looked at.
	hash        []byte
	epoch       int
	postingDate models.Date
	// reversalDate is that of the reversal: the reversed impact's, or the first open day after it.
	reversalDate models.Date
	// retracts: post takes back what another system has posted, and the document is not posted.
	retracts bool
	// next is the number of the first new link in the document's chain.
	next int
}

// read locks and reads the documents, what their organizations post by, and their last impacts.
func (c *chunk) read(ctx context.Context) error {
	set := map[string]struct{}{}
	for _, j := range c.jobs {
		c.keys = append(c.keys, Key{OrgID: j.OrgID, ID: j.DocumentID})
		set[j.OrgID] = struct{}{}
	}
	orgs := slices.Sorted(maps.Keys(set))
	var err error
	if c.usable, err = ledgerdb.UseConfigurations(ctx, c.tx, append([]string{""}, orgs...)); err != nil {
		return err
	}
	if c.needs, err = store.NeedsOf(ctx, c.tx, orgs); err != nil {
		return err
	}
	if c.orgs, err = c.ledger.rules.load(ctx, c.tx, orgs); err != nil {
		return err
	}
	if err = c.ask(ctx); err != nil {
		return err
	}
	if err = c.readElsewhere(ctx); err != nil {
		return err
	}
	impactKeys := make([]ledgerdb.ImpactKey, len(c.jobs))
	for i, j := range c.jobs {
		impactKeys[i] = ledgerdb.ImpactKey{DocumentKey: c.keys[i], Version: j.Version}
		if v := c.orgs[j.OrgID].ruleSetVersion; v != nil {
			impactKeys[i].RuleSetVersion = *v
		}
	}
	c.last, err = ledgerdb.LastImpacts(ctx, c.tx, impactKeys)
	return err
}

// decide says what becomes of job i.
func (c *chunk) decide(i int) {
	job, f := c.jobs[i], c.found[i]
	switch {
	case !c.usable[""] || !c.usable[job.OrgID]:
		c.errs[i] = models.Errorf(models.CodeConfigurationLocked,
			"another transaction is changing the rules, accounts, periods or source of organization %s", job.OrgID)
		return
	case !c.covered(job.OrgID):
		// It was leased, or picked, before the change was committed; no worker that lacks them leases
		// it again.
		c.errs[i] = models.Errorf(models.CodeConfigurationLocked,
			"the source or the hooks of organization %s were changed: other workers have them", job.OrgID)
		return
	}
	switch err := c.answer(i); {
	case err != nil:
		c.errs[i] = err
	case f.State == DocumentLater:
		c.errs[i] = engine.ErrLater
	case f.State == DocumentLocked:
		c.errs[i] = models.Errorf(models.CodeDocumentLocked, "another transaction holds the document")
	case f.State == DocumentUnknown:
		c.errs[i] = models.Errorf(models.CodeDocumentUnknown,
			"the source %s knows no such document, and it was not marked deleted", c.needs[job.OrgID].Source)
	case f.Document == nil && f.State == DocumentDeleted:
		c.retract(i, models.Errorf(models.CodeDocumentDeleted, "the document was deleted"))
	case f.Document == nil:
		c.errs[i] = models.Errorf(models.CodeDocumentInvalid, "%v", f.Err)
	case f.Document.DeletedAt != nil:
		c.retract(i, models.Errorf(models.CodeDocumentDeleted, "the document was deleted at %s",
			f.Document.DeletedAt.UTC().Format("2006-01-02T15:04:05Z")))
	case f.State == DocumentDeleted:
		c.retract(i, models.Errorf(models.CodeDocumentDeleted, "the document was deleted"))
	case f.Document.AccountingReadyVersion != job.Version:
		c.errs[i] = &models.JobError{
			Code:    models.CodeVersionMismatch,
			Version: f.Document.AccountingReadyVersion,
			Message: models.Errorf("", "the job asks for version %d, the document is at %d", job.Version,
				f.Document.AccountingReadyVersion).Message,
		}
	case f.Document.AccountingReadyAt == nil:
		c.retract(i, models.Errorf(models.CodeDocumentNotReady,
			"the document is not marked ready: its AccountingReadyAt is not set"))
	case f.Err != nil:
		c.errs[i] = models.Errorf(models.CodeDocumentInvalid, "%v", f.Err)
	default:
		c.post(i, f.Document)
	}
}

// retract ends job i with cause, and takes back what is posted of its document.
func (c *chunk) retract(i int, cause error) {
	c.errs[i] = cause
	if e := c.postedElsewhere(i); e != nil {
		c.retractElsewhere(i, e)
		return
	}
	if last := c.last[i]; last.Live() {
		c.plan(plan{index: i, reverse: last, next: last.Seq + 1})
	}
}

// plan plans what one job changes, unless no day is open for the reversal in it.
func (c *chunk) plan(p plan) {
	if p.reverse != nil {
		day, err := c.orgs[c.jobs[p.index].OrgID].reversalDay(c.found[p.index].Document, p.reverse.PostingDate)
		if err != nil {
			c.errs[p.index] = err
			return
		}
		p.reversalDate = day
	}
	if p.post != nil && !p.retracts {
		day, err := c.afterMoved(p)
		if err != nil {
			c.errs[p.index] = err
			return
		}
		p.postingDate = day
	}
	c.plans = append(c.plans, p)
}

// afterMoved is the day of a posting that is not before a reversal that had to stand on a later day
// than what it reverses. What was reversed stays in its closed period until that day; posted there
// once more, when the period is open again, the document would be in it twice.
func (c *chunk) afterMoved(p plan) (models.Date, error) {
	day, last := p.postingDate, c.last[p.index]
	if last != nil && last.MovedTo != nil && day.Before(*last.MovedTo) {
		day = *last.MovedTo
	}
	if p.reverse != nil && p.reverse.PostingDate.Before(p.reversalDate) && day.Before(p.reversalDate) {
		day = p.reversalDate
	}
	if day == p.postingDate {
		return day, nil
	}
	return c.orgs[c.jobs[p.index].OrgID].firstOpenDay(day)
}

// evaluate says what a document's impact is, and how long that took.
func (l *Ledger) evaluate(org organization, d *models.Document) (*posting.Impact, error) {
	if l.evaluated == nil {
		return org.evaluate(d)
	}
	began := time.Now()
	defer func() { l.evaluated(time.Since(began)) }()
	return org.evaluate(d)
}

// post plans the impact of a ready document. The same version under the same rule set is posted
// once. A new version or rule set that leads to the same entries confirms the live impact, unless
// it states other taxes than are kept of a closed day: these are taken back, and stated anew. A new
// epoch posts in any case, and so does a new version where there is no rule set to confirm under.
func (c *chunk) post(i int, d *models.Document) {
	job, org, last, elsewhere := c.jobs[i], c.orgs[d.OrgID], c.last[i], c.postedElsewhere(i)
	if elsewhere != nil && c.left(i, elsewhere, true) {
		return
	}
	stands := last.Live() && last.Epoch >= job.Epoch
	if stands && last.Covers(d.AccountingReadyVersion, org.ruleSetVersion) {
		return
	}
	impact, err := c.impact(i, d, elsewhere)
	if err != nil {
		c.errs[i] = translate(err)
		return
	}
	hash := contentHash(impact)
	restates := stands && elsewhere == nil && last.TaxesReplaced && org.closedOn(last.PostingDate) != nil
	if stands && !restates && org.ruleSetVersion != nil && bytes.Equal(hash, last.ContentHash) {
		c.confirmations = append(c.confirmations, models.Confirmation{
			ImpactID: last.ID, DocumentVersion: d.AccountingReadyVersion, RuleSetVersion: *org.ruleSetVersion,
			JobID: job.ID, Attempt: job.Attempt, WorkflowRunID: job.WorkflowRunID,
		})
		return
	}
	p := plan{index: i, post: impact, hash: hash, epoch: job.Epoch, next: 1}
	if p.postingDate, err = org.dayOf(d, impact.PostingDate); err != nil {
		c.errs[i] = err
		return
	}
	if last != nil {
		p.next = last.Seq + 1
		if last.LastEpoch != nil {
			// Posted before under these versions, and reversed since: for instance an older rule set was
			// activated again.
			p.epoch = max(p.epoch, *last.LastEpoch+1)
		}
	}
	if last.Live() {
		p.reverse = last
	}
	c.plan(p)
}

// impact is what job i posts of a document: what the rules make of it, less what is posted
// elsewhere.
func (c *chunk) impact(i int, d *models.Document, elsewhere *ledgerdb.Elsewhere) (*posting.Impact, error) {
	org := c.orgs[d.OrgID]
	if elsewhere != nil {
		if err := c.waits(i, elsewhere); err != nil {
			return nil, err
		}
	}
	impact, err := c.ledger.evaluate(org, d)
	if err != nil || elsewhere == nil {
		return impact, err
	}
	return org.difference(impact, elsewhere)
}

// translate turns the rule engine's error into a job's.
func translate(err error) error {
	if e, ok := errors.AsType[*posting.Error](err); ok {
		return &models.JobError{Code: e.Code, Message: e.Error()}
	}
	return err
}

// insert writes the planned impacts.
func (c *chunk) insert(ctx context.Context) error {
	n := 0
	for _, p := range c.plans {
		n += p.links()
	}
	b := newBuilder(c, n)
	if n > 0 {
		var err error
		if b.ids, err = ledgerdb.ImpactIDs(ctx, c.tx, n); err != nil {
			return err
		}
	}
	for _, p := range c.plans {
		b.add(p)
	}
	if err := ledgerdb.InsertPosting(ctx, c.tx, b.posting); err != nil || n == 0 {
		return err
	}
	if err := c.tellSources(ctx, &b); err != nil {
		return err
	}
	return c.tellAfter(ctx, &b)
}

// links counts the impacts that a plan inserts.
func (p plan) links() int {
	n := 0
	if p.reverse != nil {
		n++
	}
	if p.post != nil {
		n++
	}
	return n
}
