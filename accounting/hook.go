package accounting

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
)

// Posted is an impact that is posted in the running transaction.
type Posted struct {
	// Impact is the row that was inserted; its CreatedAt is not set, because the database sets it. An
	// impact whose Kind is models.ImpactReverse reverses an earlier impact of the document.
	Impact models.Impact
	// Document is the document as it was read and locked; nil when it no longer exists.
	Document *models.Document
}

// Hook is called with what was posted, in the transaction that posts it: what it writes commits
// with the impacts, exactly once, or not at all. It must be short, and must neither commit nor roll
// back tx.
//
// posted is never empty. For a document whose new version replaces a posted one it has two
// elements: the reversal, then the new impact. For a version that only confirms what is posted it
// has none.
//
// An error undoes everything that was posted in tx. The documents are then tried again in smaller
// transactions, until the one to blame stands alone. Its job is retried with PROCESSOR_ERROR, or
// treated by the code of a *models.JobError. So a hook may be called several times for a document,
// but commits once.
type Hook func(ctx context.Context, tx pgx.Tx, posted []Posted) error

// Hooks are hooks by name. The database has on record which hooks are called for an organization's
// postings (queue.SetHooks, queue.SetDefaultHooks). A hook is called for the organizations that
// name it on record, and for no others.
type Hooks map[string]Hook
