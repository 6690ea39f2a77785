package console

import (
	"context"
	"slices"

	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
)

// nameAccounts gives lines the names of their accounts.
func (c *console) nameAccounts(ctx context.Context, org string, lists ...[]entryLine) error {
	var all []*entryLine
	for _, lines := range lists {
		for i := range lines {
			all = append(all, &lines[i])
		}
	}
	return c.nameEach(ctx, org, all)
}

// nameComparisons gives the lines of comparisons the names of their accounts.
func (c *console) nameComparisons(ctx context.Context, org string, lists ...[]previewed) error {
	var all []*entryLine
	for _, list := range lists {
		for i := range list {
			for _, l := range list[i].Entries.Lines {
				all = append(all, l.Old, l.New)
			}
		}
	}
	return c.nameEach(ctx, org, slices.DeleteFunc(all, func(l *entryLine) bool { return l == nil }))
}

func (c *console) nameEach(ctx context.Context, org string, lines []*entryLine) error {
	if len(lines) == 0 {
		return nil
	}
	codes := make([]string, len(lines))
	for i, l := range lines {
		codes[i] = l.Account
	}
	slices.Sort(codes)
	names, err := ledgerdb.AccountNames(ctx, c.Pool, org, slices.Compact(codes))
	for _, l := range lines {
		l.Name = names[l.Account]
	}
	return err
}

// accountNames are the names of the accounts of a list, by their codes.
func accountNames[T any](ctx context.Context, c *console, org string, list []T, code func(*T) string) (map[string]string, error) {
	codes := make([]string, len(list))
	for i := range list {
		codes[i] = code(&list[i])
	}
	slices.Sort(codes)
	return ledgerdb.AccountNames(ctx, c.Pool, org, slices.Compact(codes))
}
