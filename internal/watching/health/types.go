package health

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
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
