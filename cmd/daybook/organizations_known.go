package main

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/health"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/terminal"
)

// namesNew are the commands whose --org may name an organization of which Daybook has nothing yet. For all others it is a mistake: what they answer of it would
// look like the answer about an organization of which nothing is due.
var namesNew = map[string]bool{"adopt async-operations": true, "import csv": true, "import gobl": true, "jobs enqueue": true, "schedules create": true, "tokens create": true}

// knowsOrganization refuses the organization that the command is about if Daybook never had anything of it. What keeps the database from saying so keeps the
// command from its work, too, which says why.
func (a *app) knowsOrganization(ctx context.Context, pool *pgxpool.Pool) error {
	if a.organization == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, health.DefaultTimeout)
	defer cancel()
	if never, err := store.NeverHeardOf(ctx, pool, a.organization); err != nil || !never {
		return nil
	}
	id := terminal.OneLine(a.organization)
	if namesNew[a.path] {
		if !a.json { // what goes to standard error is for programs then
			a.say("Note: Daybook had nothing of organization %s until now (`daybook organizations list`).", id)
		}
		return nil
	}
	return tagged(store.ErrOrganizationNotFound, "Daybook knows no organization %s: check the id (`daybook organizations list`); an organization is known from its first rules, "+
		"account, document or job on", id)
}
