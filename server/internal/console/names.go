package console

import (
	"context"
	"slices"

	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
)

// nameAccounts gives lines the names of their accounts.
func (c *console) nameAccounts(ctx context.Context, org string, lists ...[]entryLine) error {
	var codes []string
	for _, lines := range lists {
		for i := range lines {
			codes = append(codes, lines[i].Account)
		}
	}
	if len(codes) == 0 {
		return nil
	}
	slices.Sort(codes)
	names, err := ledgerdb.AccountNames(ctx, c.Pool, org, slices.Compact(codes))
	if err != nil {
		return err
	}
	for _, lines := range lists {
		for i := range lines {
			lines[i].Name = names[lines[i].Account]
		}
	}
	return nil
}
