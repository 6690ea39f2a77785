package workers

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/migrations"
)

// Audit is `daybook audit` for a program that has sources of its own: it compares what is posted
// with daybook.documents and with the documents of these sources. It changes nothing.
//
// It reads daybook.documents and the ledger in one snapshot, and waits for no other transaction. It
// reads the documents of a source by LockAndRead, 200 at a time, in transactions that are rolled
// back. Documents that another transaction holds are counted as Locked and left out. The audit asks
// a source for the documents that have a job or an impact, because it cannot know a document that
// was never enqueued. A source that returns an error or an answer that is none of accounting's
// states makes Audit fail.
func Audit(ctx context.Context, pool *pgxpool.Pool, sources accounting.Sources,
	o accounting.AuditOptions,
) (accounting.AuditReport, error) {
	if err := (AccountingOptions{Sources: sources}).checkNames(); err != nil {
		return accounting.AuditReport{}, err
	}
	if pool == nil {
		return accounting.AuditReport{},
			errors.New("workers: the pool is nil: pass one that is connected to Daybook's database")
	}
	newest, err := migrations.Newest()
	if err != nil {
		return accounting.AuditReport{}, fmt.Errorf("workers: %w", err)
	}
	r, err := ledger.Audit(ctx, pool, sources, audit.Options{
		OrgID: o.OrgID, Limit: o.Limit, Guards: audit.GuardsOf(migrations.Schema()), Newest: newest,
	})
	if err != nil {
		return r, fmt.Errorf("workers: %w", err)
	}
	return r, nil
}
