package ledger

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/posting"
)

// Ledger posts documents. It is safe for concurrent use.
type Ledger struct {
	source DocumentSource
	rules  *rules
}

// New returns a ledger that reads documents from source; nil is daybook.documents.
func New(source DocumentSource) *Ledger {
	if source == nil {
		source = ownDocuments{}
	}
	return &Ledger{source: source, rules: newRules()}
}

// Prepare implements engine.Processor. Rules are evaluated in microseconds, so everything is done in Commit, under the
// documents' locks.
func (l *Ledger) Prepare(context.Context, []engine.Job) (engine.Commit, error) { return l.commit, nil }

// commit posts what is to be posted of a chunk.
func (l *Ledger) commit(ctx context.Context, tx pgx.Tx, jobs []engine.Job) ([]error, error) {
	c := &chunk{ledger: l, tx: tx, jobs: jobs, errs: make([]error, len(jobs)), evaluatedUnder: map[string]int64{}}
	if err := c.read(ctx); err != nil {
		return nil, err
	}
	for i := range jobs {
		c.decide(i)
	}
	if err := c.recheckFailures(ctx); err != nil {
		return nil, err
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
	last  []*store.LastImpact
	orgs  map[string]organization
	// evaluatedUnder is the configuration version that each organization's failures were found under.
	evaluatedUnder map[string]int64

	plans []plan
}

// plan is what one job changes in the ledger: the live impact is reversed, a new one posted, or both.
type plan struct {
	index   int
	reverse *store.LastImpact
	post    *posting.Impact
	// next is the number of the first new link in the document's chain.
	next int
}

// read locks and reads the documents, their last impacts, and what their organizations post by.
func (c *chunk) read(ctx context.Context) error {
	orgs := map[string]struct{}{}
	for _, j := range c.jobs {
		c.keys = append(c.keys, Key{OrgID: j.OrgID, ID: j.DocumentID})
		orgs[j.OrgID] = struct{}{}
	}
	var err error
	if c.found, err = c.ledger.source.LockAndRead(ctx, c.tx, c.keys); err != nil {
		return err
	}
	if c.last, err = store.LastImpacts(ctx, c.tx, c.keys); err != nil {
		return err
	}
	c.orgs, err = c.ledger.rules.load(ctx, c.tx, slices.Sorted(maps.Keys(orgs)))
	return err
}

// decide says what becomes of job i.
func (c *chunk) decide(i int) {
	job, f, last := c.jobs[i], c.found[i], c.last[i]
	switch {
	case f.Locked:
		c.errs[i] = models.Errorf(models.CodeDocumentLocked, "another transaction holds the document")
	case !f.Exists:
		c.retract(i, models.Errorf(models.CodeDocumentDeleted, "there is no such document"))
	case f.Document.DeletedAt != nil:
		c.retract(i, models.Errorf(models.CodeDocumentDeleted, "the document was deleted at %s", f.Document.DeletedAt.UTC().Format("2006-01-02T15:04:05Z")))
	case f.Document.AccountingReadyVersion != job.Version:
		c.errs[i] = &models.JobError{
			Code:    models.CodeVersionMismatch,
			Version: f.Document.AccountingReadyVersion,
			Message: models.Errorf("", "the job asks for version %d, the document is at %d", job.Version, f.Document.AccountingReadyVersion).Message,
		}
	case f.Document.AccountingReadyAt == nil:
		c.retract(i, models.Errorf(models.CodeDocumentNotReady, "the document is not marked ready"))
	case f.Err != nil:
		c.errs[i] = models.Errorf(models.CodeDocumentInvalid, "%v", f.Err)
	default:
		c.post(i, f.Document, last)
	}
}

// retract ends job i with cause, and takes back what is posted of its document.
func (c *chunk) retract(i int, cause error) {
	c.errs[i] = cause
	if last := c.last[i]; last.Live() {
		c.plans = append(c.plans, plan{index: i, reverse: last, next: last.Seq + 1})
	}
}

// post plans the impact of a ready document, unless the same version was posted by the same rule set already.
func (c *chunk) post(i int, d *models.Document, last *store.LastImpact) {
	org := c.orgs[d.OrgID]
	if last.Live() && last.DocumentVersion == d.AccountingReadyVersion && equal(last.RuleSetVersion, org.ruleSetVersion) {
		return
	}
	impact, err := org.evaluate(d)
	if err != nil {
		c.errs[i] = translate(err)
		c.evaluatedUnder[d.OrgID] = org.configVersion
		return
	}
	p := plan{index: i, post: impact, next: 1}
	if last != nil {
		p.next = last.Seq + 1
	}
	if last.Live() {
		p.reverse = last
	}
	c.plans = append(c.plans, p)
}

// translate turns the rule engine's error into a job's.
func translate(err error) error {
	if e, ok := errors.AsType[*posting.Error](err); ok {
		return &models.JobError{Code: e.Code, Message: e.Error()}
	}
	return err
}

func equal(a, b *int64) bool { return a != nil && b != nil && *a == *b }

// recheckFailures makes sure that a job which fails for its organization's configuration fails under the present one: the
// configuration is held from here on, and a job that was judged under an older one is looked at again.
func (c *chunk) recheckFailures(ctx context.Context) error {
	if len(c.evaluatedUnder) == 0 {
		return nil
	}
	now, err := store.HoldConfigs(ctx, c.tx, slices.Sorted(maps.Keys(c.evaluatedUnder)))
	if err != nil {
		return err
	}
	for i, err := range c.errs {
		var cause *models.JobError
		if !errors.As(err, &cause) || models.Treat(cause.Code) != models.TreatPermanent {
			continue
		}
		under, judged := c.evaluatedUnder[c.jobs[i].OrgID]
		if judged && now[c.jobs[i].OrgID] != under {
			c.errs[i] = models.Errorf(models.CodeConfigChanged, "the organization's rules or accounts changed while the document was evaluated; before: %s", cause)
		}
	}
	return nil
}

// insert writes the planned impacts.
func (c *chunk) insert(ctx context.Context) error {
	if len(c.plans) == 0 {
		return nil
	}
	n := 0
	for _, p := range c.plans {
		n += p.links()
	}
	ids, err := store.ImpactIDs(ctx, c.tx, n)
	if err != nil {
		return err
	}
	b := builder{chunk: c, ids: ids}
	for _, p := range c.plans {
		b.add(p)
	}
	if err := store.InsertPosting(ctx, c.tx, b.posting); err != nil {
		return err
	}
	return c.ledger.source.SetPosted(ctx, c.tx, b.keys, b.live)
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
