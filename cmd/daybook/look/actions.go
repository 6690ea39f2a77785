package look

import (
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/text/cursor"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

func actionsCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{Use: "actions", Short: "Show what operators did"}
	command.AddCommand(actionsListCommand(a))
	return command
}

func actionsListCommand(a *cli.App) *cobra.Command {
	var f actions.Filter
	var page cli.PageFlags
	var via, outcome, since, until string
	command := &cobra.Command{
		Use:   "list",
		Short: "List what operators did through the console, the API and this command line, the newest first",
		Long: "Lists the log of actions, the newest first: who did what, when, by which way, and what came of it. Actions that were refused\n" +
			"or failed are in it with the error's code. The log has no payloads and no secrets.",
		Example: "  daybook actions list --since 24h\n  daybook actions list --action jobs.retry --org acme",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			now := time.Now()
			var err error
			if f.Since, err = cli.ParseMoment("--since", since, now); err != nil {
				return err
			}
			if f.Until, err = cli.ParseMoment("--until", until, now); err != nil {
				return err
			}
			if f.Via, err = oneOf("--via", actions.Via(via), actions.Vias()); err != nil {
				return err
			}
			if f.Outcome, err = oneOf("--outcome", actions.Outcome(outcome), actions.Outcomes()); err != nil {
				return err
			}
			if err := page.Read(&f.Before); err != nil {
				return err
			}
			f.Limit = page.Limit + 1
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			list, err := actions.List(c.Context(), db.Pool, f)
			if err != nil {
				return err
			}
			list, next := cursor.Page(page.Limit, list, func(one actions.Action) any { return one.ID })
			return a.Emit(answers.ActionListOf(list, next), func(w io.Writer) error {
				defer a.More(next)
				return printActions(a, w, list)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.OrgID, "org", "", "only about this organization")
	flags.StringVar(&f.Action, "action", "", "only this action, such as jobs.retry")
	flags.StringVar(&f.Actor, "actor", "", "only by the token of this name, or by this user of the command line")
	flags.StringVar(&f.Subject, "subject", "", "only about this job, document, type …")
	flags.StringVar(&via, "via", "", "only by this way: console, api or cli")
	flags.StringVar(&outcome, "outcome", "", "only with this outcome: done, refused or failed")
	flags.StringVar(&since, "since", "", "only since: a duration back from now such as 24h, or a time as RFC 3339")
	flags.StringVar(&until, "until", "", "only before: a duration back from now, or a time")
	page.Add(command, "actions", store.DefaultLimit)
	return command
}

// oneOf checks that a flag has one of some values, or none.
func oneOf[T ~string](flag string, value T, all []T) (T, error) {
	if value == "" || slices.Contains(all, value) {
		return value, nil
	}
	return value, cli.Usagef("%s %q: want %s", flag, value, phrase.Or(all))
}

func printActions(a *cli.App, w io.Writer, list []actions.Action) error {
	t := cli.NewTable("AT", "ACTION", "SUBJECT", "ORGANIZATION", "BY", "VIA", "OUTCOME", "DETAILS")
	for i := range list {
		one := &list[i]
		org := ""
		if one.OrgID != nil {
			org = *one.OrgID
		}
		outcome := string(one.Outcome)
		if one.Code != "" {
			outcome += " (" + one.Code + ")"
		}
		t.Add(cli.FormatTime(one.At), one.Action, one.Subject, org, one.Actor, string(one.Via), outcome,
			string(one.Details))
	}
	return a.Print(w, t)
}
