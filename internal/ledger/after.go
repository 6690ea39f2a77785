package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// Posted is an impact that is posted in the running transaction.
type Posted struct {
	// Impact is what was inserted; CreatedAt is the database's and not set. A Kind of models.ImpactReverse takes an earlier
	// impact of the document back.
	Impact models.Impact
	// Document is the document as it was read and locked; nil when there is none any more.
	Document *models.Document
}

// AfterPosting is told what was posted, in the transaction that posts it: what it writes commits with the impacts, exactly
// once, or not at all. It must be short, and must neither commit nor roll tx back.
//
// posted is never empty. A document whose new version replaces a posted one comes twice: the reversal, then the new impact.
// A version that only confirms what is posted does not come.
//
// An error undoes everything that was posted with it; the documents are then tried in smaller transactions, until the one to
// blame stands alone. Its job fails with PROCESSOR_ERROR and is retried, or by what a *models.JobError says. So AfterPosting
// may be called several times for a document, but commits once.
type AfterPosting func(ctx context.Context, tx pgx.Tx, posted []Posted) error

// Hooks are AfterPosting functions by name. Each is told of the organizations that name it on record, and of no others.
type Hooks map[string]AfterPosting

// WithHooks has the hooks told what is posted. It returns l.
func (l *Ledger) WithHooks(hooks Hooks) *Ledger {
	l.hooks = hooks
	return l
}

// tellAfter calls the ledger's hooks, in the order of their names, each with the postings of the organizations that name it.
// Their statements are an application's and planned as usual.
func (c *chunk) tellAfter(ctx context.Context, b *builder) error {
	told := map[string][]Posted{}
	for i, impact := range b.posting.Impacts {
		for _, hook := range c.needs[impact.OrgID].Hooks {
			told[hook] = append(told[hook], Posted{Impact: impact, Document: b.documents[i]})
		}
	}
	if len(told) == 0 {
		return nil
	}
	if err := store.PlanFreely(ctx, c.tx); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(told)) {
		if err := c.ledger.hooks[name](ctx, c.tx, told[name]); err != nil {
			return fmt.Errorf("hook %s: %w", name, err)
		}
	}
	return store.PlanByKey(ctx, c.tx)
}
