package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/internal/store"
)

// The types of hooks; package accounting says what a hook may do.
type (
	Posted       = accounting.Posted
	AfterPosting = accounting.Hook
	Hooks        = accounting.Hooks
)

// WithHooks has the hooks told what is posted. It returns l.
func (l *Ledger) WithHooks(hooks Hooks) *Ledger {
	l.hooks = hooks
	return l
}

// tellAfter calls the ledger's hooks, in the order of their names, each with the postings of the
// organizations that name it. Their statements are an application's, so PostgreSQL plans them by
// its own settings.
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
		err := c.ledger.hooks[name](ctx, c.tx, told[name])
		if err == nil {
			err = store.Returned(c.tx)
		}
		if err != nil {
			return fmt.Errorf("hook %s: %w", name, err)
		}
	}
	return store.PlanByKey(ctx, c.tx)
}
