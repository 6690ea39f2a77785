package workers

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/migrations"
)

// Audit is `daybook audit` for a program that has sources: what is posted is compared with the documents of daybook.documents,
// and of these sources as well. It changes nothing and stores nothing.
//
// What is in daybook.documents and in the ledger is read in one snapshot, which waits for no other transaction. Documents of a source are read
// by its LockAndRead, 200 at a time, in transactions that are rolled back; those that another transaction holds are counted as
// Locked and left out. The audit asks for documents that have a job or an impact: one that was never enqueued is known to its
// application alone. A source that answers wrongly is an error.
func Audit(ctx context.Context, pool *pgxpool.Pool, sources accounting.Sources, o accounting.AuditOptions) (accounting.AuditReport, error) {
	if err := (AccountingOptions{Sources: sources}).checkNames(); err != nil {
		return accounting.AuditReport{}, err
	}
	if pool == nil {
		return accounting.AuditReport{}, errors.New("workers: the pool is nil: pass one that is connected to Daybook's database")
	}
	r, err := ledger.Audit(ctx, pool, sources, store.AuditOptions{OrgID: o.OrgID, Limit: o.Limit, Guards: store.GuardsOf(migrations.Schema())})
	if err != nil {
		return r, fmt.Errorf("workers: %w", err)
	}
	return r, nil
}
