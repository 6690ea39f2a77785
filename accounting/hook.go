package accounting

import (
	"context"

	"github.com/jackc/pgx/v5"

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

// Hook is told what was posted, in the transaction that posts it: what it writes commits with the impacts, exactly
// once, or not at all. It must be short, and must neither commit nor roll tx back.
//
// posted is never empty. A document whose new version replaces a posted one comes twice: the reversal, then the new impact.
// A version that only confirms what is posted does not come.
//
// An error undoes everything that was posted with it; the documents are then tried in smaller transactions, until the one to
// blame stands alone. Its job fails with PROCESSOR_ERROR and is retried, or by what a *models.JobError says. So a hook
// may be called several times for a document, but commits once.
type Hook func(ctx context.Context, tx pgx.Tx, posted []Posted) error

// Hooks are hooks by name. Which hooks an organization's postings are told to is on record in the database (queue.SetHooks,
// queue.SetDefaultHooks); each is told of the organizations that name it on record, and of no others.
type Hooks map[string]Hook
