package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/daybook-dev/daybook/cmd/daybook/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/moving/archive"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/models"
)

// completionLimit bounds what the database is asked for while a person waits for the Tab key.
const completionLimit = time.Second

// flagValues are the values of flags that have the same few in every command, but for those of
// valuesOf.
var flagValues = map[string][]string{
	"direction": {string(models.DirectionOut), string(models.DirectionIn)},
	"format":    {"hledger", "ledger", "beancount", "csv"},
	"id-by":     {"document", "file"},
	"kind":      kinds(),
	"log-level": {"debug", "info", "warn", "error"},
	"mode":      {"now", "later", "reset"},
	"org-by":    {"supplier", "country"},
	"outcome":   words(actions.Outcomes()),
	"overlap":   {"skip", "again", "allow"},
	"priority":  {"high", "normal", "low"},
	"via":       words(actions.Vias()),
}

// valuesOf are the values of a flag of a command; nil: it takes others than a few.
func valuesOf(command, flag string) []string {
	switch {
	case flag == "format" && strings.HasPrefix(command, "daybook statement"):
		return books.StatementFormats()
	case flag == "kind" && strings.HasPrefix(command, "daybook archive"):
		return words(archive.Kinds())
	}
	return flagValues[flag]
}

func words[T ~string](list []T) []string {
	var out []string
	for _, one := range list {
		out = append(out, string(one))
	}
	return out
}

// kinds are the names of the queues.
func kinds() []string {
	var names []string
	for _, q := range store.Queues() {
		names = append(names, q.Name)
	}
	return names
}

// completeFlags has the shell complete the values of flags: those of flagValues, states, and
// organizations and types as the database has them.
func completeFlags(a *cli.App, command *cobra.Command) {
	for _, c := range command.Commands() {
		completeFlags(a, c)
	}
	command.LocalFlags().VisitAll(func(f *pflag.Flag) {
		complete := completionOf(a, command, f.Name)
		if complete != nil {
			_ = command.RegisterFlagCompletionFunc(f.Name, complete) // it fails for a flag that has one
		}
	})
	if strings.Contains(command.Use, "KIND") && command.ValidArgsFunction == nil {
		command.ValidArgsFunction = cobra.FixedCompletions(kinds(), cobra.ShellCompDirectiveNoFileComp)
	}
	if strings.Contains(command.Use, " ORG DOCUMENT") && command.ValidArgsFunction == nil {
		command.ValidArgsFunction = firstOf(fromDatabase(a, organizationsOf))
	}
}

// completionOf returns what completes a flag; nil: nothing but what the shell does by itself.
func completionOf(a *cli.App, command *cobra.Command, flag string) cobra.CompletionFunc {
	switch values := valuesOf(command.CommandPath(), flag); {
	case values != nil:
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	case flag == "state" && strings.HasPrefix(command.CommandPath(), "daybook tasks"):
		return cobra.FixedCompletions(words(models.TaskSearches()), cobra.ShellCompDirectiveNoFileComp)
	case flag == "state":
		return cobra.FixedCompletions(words(models.JobStates()), cobra.ShellCompDirectiveNoFileComp)
	case flag == "org":
		return fromDatabase(a, organizationsOf)
	case flag == "type":
		return fromDatabase(a, typesOf)
	case slices.Contains([]string{"dir", "out", "to"}, flag):
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
	}
	return nil
}

// firstOf completes the first argument alone.
func firstOf(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(c, args, begun)
	}
}

// fromDatabase completes by what the database has. Without a database, or where it does not answer
// in time, there is nothing to choose from.
func fromDatabase(a *cli.App,
	read func(ctx context.Context, q store.Querier, begun string) ([]string, error),
) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(c.Context(), completionLimit)
		defer cancel()
		if a.SetUp() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		pool, err := a.Pool(ctx, 1)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer cli.ClosePool(pool)
		names, err := read(ctx, pool, begun)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func organizationsOf(ctx context.Context, q store.Querier, begun string) ([]string, error) {
	list, err := store.KnownOrganizations(ctx, q, store.OrganizationsPage{Prefix: begun})
	var ids []string
	for i := range list {
		ids = append(ids, list[i].OrgID)
	}
	return ids, err
}

func typesOf(ctx context.Context, q store.Querier, begun string) ([]string, error) {
	list, err := store.TypesOnRecord(ctx, q)
	var names []string
	for i := range list {
		if strings.HasPrefix(list[i].Type, begun) && !slices.Contains(names, list[i].Type) {
			names = append(names, list[i].Type)
		}
	}
	return names, err
}
