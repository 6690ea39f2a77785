package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

// CreateFlag lets a command write for an organization that Daybook has nothing of. For all others,
// and without the flag, such an id is taken for a mistake: what they write would be found by no
// one, and what they answer would look like the answer about an organization of which nothing is
// due.
func (a *App) CreateFlag(c *cobra.Command) {
	c.Flags().BoolVar(&a.Create, "create", false,
		"make an organization known that has neither configuration, document nor job yet")
}

// KnowsOrganization refuses the organization that the command is about if Daybook never had
// anything of it. What keeps the database from saying so keeps the command from its work, too,
// which says why.
func (a *App) KnowsOrganization(ctx context.Context, pool *pgxpool.Pool) error {
	if a.Organization == "" || a.Create {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, health.DefaultTimeout)
	defer cancel()
	if never, err := store.NeverHeardOf(ctx, pool, a.Organization); err != nil || !never {
		return nil
	}
	return UnknownOrganization(ctx, pool, a.mayCreate, a.Organization)
}

// UnknownOrganization is the error about ids of which Daybook has nothing. It says which one may be
// meant.
func UnknownOrganization(ctx context.Context, pool *pgxpool.Pool, mayCreate bool, ids ...string) error {
	message := fmt.Sprintf("Daybook knows no organization %s: check the id (`daybook organizations list`)",
		terminal.OneLine(strings.Join(ids, ", ")))
	if mayCreate {
		message += ", or add --create to make it known"
	} else {
		message += "; an organization is known from its first rules, account, document or job on"
	}
	if near := nearest(ids[0], similarOrganizations(ctx, pool, ids[0])); len(near) > 0 {
		message += didYouMean([]string{terminal.OneLine(near[0])})
	}
	return Tagged(store.ErrOrganizationNotFound, "%s", message)
}

// similarOrganizations returns the organizations of about the id's length. It is a help, so an
// error has none.
func similarOrganizations(ctx context.Context, pool *pgxpool.Pool, id string) []string {
	const stmt = `
SELECT id
  FROM daybook.organizations
 WHERE length(id) BETWEEN length($1) * 2 / 3 - 1 AND length($1) * 4 / 3 + 1
 ORDER BY id
 LIMIT 100000`
	ids, err := store.Collect(ctx, pool, pgx.RowTo[string], stmt, id)
	if err != nil {
		return nil
	}
	return ids
}
