package ledger

import (
	"context"

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

// WithAfterPosting has f told what is posted; nil: nobody is told. It returns l.
func (l *Ledger) WithAfterPosting(f AfterPosting) *Ledger {
	l.after = f
	return l
}

// tellAfter calls the ledger's AfterPosting. Its statements are an application's and planned as usual.
func (c *chunk) tellAfter(ctx context.Context, b *builder) error {
	if c.ledger.after == nil {
		return nil
	}
	posted := make([]Posted, len(b.posting.Impacts))
	for i, impact := range b.posting.Impacts {
		posted[i] = Posted{Impact: impact, Document: b.documents[i]}
	}
	if err := store.PlanFreely(ctx, c.tx); err != nil {
		return err
	}
	if err := c.ledger.after(ctx, c.tx, posted); err != nil {
		return err
	}
	return store.PlanByKey(ctx, c.tx)
}
