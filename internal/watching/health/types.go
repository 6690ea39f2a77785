package health

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/diagnosis"
)

// own names the owner of each finding's type, as workers put it on record.
func (p *probe) own(ctx context.Context, tx pgx.Tx) ([]Finding, error) {
	types, err := store.TypesOnRecord(ctx, tx)
	if err != nil {
		return nil, err
	}
	owners := map[[2]string]string{}
	for _, t := range types {
		owners[[2]string{t.Kind, t.Type}] = t.Owner
	}
	for i, f := range p.findings {
		p.findings[i].Owner = owners[[2]string{f.Kind, f.Type}]
	}
	return nil, nil
}

// unshared looks for types that workers took out of sharing transactions.
func (p *probe) unshared(ctx context.Context, tx pgx.Tx) (found []Finding, err error) {
	types, err := diagnosis.UnsharedTypes(ctx, tx)
	for _, t := range types {
		where := "worker " + clip(t.Worker, 80)
		if t.Workers > 1 {
			where = fmt.Sprintf("%d workers, %s among them", t.Workers, clip(t.Worker, 80))
		}
		found = append(found, Finding{
			Code: TransactionUnshared, Severity: Warning, Kind: "jobs", Type: t.Type,
			Says: fmt.Sprintf("Jobs of type %s have SharedTransaction in their policy and share no transactions on %s, "+
				"because a function that was given to InTx did what its neighbours would notice: %s. No job is charged; each "+
				"has a transaction of its own, which is slower.", t.Type, where, clip(t.Does, 100)),
			Todo: "Change the function so that it does not do that, or take SharedTransaction from the type's policy; then " +
				"start the worker again.",
		})
	}
	return found, err
}
