package ledger

import (
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// builder turns plans into rows.
type builder struct {
	chunk   *chunk
	ids     []int64
	posting ledgerdb.Posting
	// documents holds the document of each impact.
	documents []*models.Document
	keys      []Key
	live      []bool
}

// newBuilder returns a builder of the rows of a chunk's plans, which insert so many impacts.
func newBuilder(c *chunk, impacts int) builder {
	entries := 0
	for _, p := range c.plans {
		if p.post != nil {
			entries += len(p.post.Entries)
		}
	}
	return builder{
		chunk: c, posting: ledgerdb.Posting{
			Impacts: make([]models.Impact, 0, impacts), Entries: make([]models.Entry, 0, entries),
			Confirmations: c.confirmations,
		},
		documents: make([]*models.Document, 0, impacts), keys: make([]Key, 0, len(c.plans)),
		live: make([]bool, 0, len(c.plans)),
	}
}

// add appends the rows of one plan.
func (b *builder) add(p plan) {
	job := b.chunk.jobs[p.index]
	next := p.next
	if p.reverse != nil {
		b.reverse(p, job, next)
		next++
	}
	if p.post != nil {
		b.post(p, job, next)
	}
	for len(b.documents) < len(b.posting.Impacts) {
		b.documents = append(b.documents, b.chunk.found[p.index].Document)
	}
	b.keys = append(b.keys, b.chunk.keys[p.index])
	b.live = append(b.live, p.post != nil && !p.retracts)
}

func (b *builder) impact(job engine.Job, seq int, kind models.ImpactKind) *models.Impact {
	id := b.ids[0]
	b.ids = b.ids[1:]
	b.posting.Impacts = append(b.posting.Impacts, models.Impact{
		ID: id, OrgID: job.OrgID, DocumentID: job.DocumentID, DocumentVersion: job.Version, Seq: seq, Kind: kind,
		JobID: job.ID, Attempt: job.Attempt, WorkflowRunID: job.WorkflowRunID,
	})
	return &b.posting.Impacts[len(b.posting.Impacts)-1]
}

// reverse mirrors a live impact.
func (b *builder) reverse(p plan, job engine.Job, seq int) {
	m, live := b.impact(job, seq, models.ImpactReverse), p.reverse
	m.RuleSetVersion, m.RuleID = live.RuleSetVersion, live.RuleID
	m.DocumentDate, m.PostingDate = live.DocumentDate.Nearest(), p.reversalDate
	m.Epoch, m.ContentHash = live.Epoch, live.ContentHash
	m.EntryCount = live.EntryCount
	if live.EntryCount > 0 {
		b.posting.Reversals = append(b.posting.Reversals, ledgerdb.Reversal{ID: m.ID, Of: live.ID})
	}
}

// post appends what the rules made of the document.
func (b *builder) post(p plan, job engine.Job, seq int) {
	m := b.impact(job, seq, models.ImpactPost)
	m.RuleSetVersion, m.RuleID = b.chunk.orgs[job.OrgID].ruleSetVersion, p.post.RuleID
	if p.retracts {
		m.RuleSetVersion = nil
	}
	m.DocumentDate, m.PostingDate = p.post.DocumentDate, p.postingDate
	m.Epoch, m.ContentHash = p.epoch, p.hash
	m.EntryCount, m.NoEntries = len(p.post.Entries), p.post.NoEntries
	for i, e := range p.post.Entries {
		entry := models.Entry{
			ImpactID: m.ID, LineNo: i + 1, OrgID: job.OrgID, Account: e.Account, Side: e.Side, Amount: e.Amount,
			Currency: e.Currency, RuleLineID: e.RuleLineID, Dimensions: e.Dimensions,
		}
		if e.DocumentLine > 0 {
			line := e.DocumentLine
			entry.DocumentLine = &line
		}
		b.posting.Entries = append(b.posting.Entries, entry)
	}
}
