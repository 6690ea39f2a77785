package work

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// ChangedLimits is what holds an organization's jobs back after a change, for programs.
type ChangedLimits struct {
	OrgID string `json:"org_id"`
	store.Limits
}

type limitChange func(ctx context.Context, tx pgx.Tx, org string) (store.Limits, error)

func organizationsPauseCommand(a *cli.App) *cobra.Command {
	var orgs cli.OrganizationFlags
	command := &cobra.Command{
		Use:   "pause --org ORG…|--all-orgs",
		Short: "Lease no more jobs of organizations, until they are resumed",
		Long: "Pauses organizations: from now on no worker leases a job of theirs, of any queue. What is leased already is finished. Documents can be\n" +
			"marked ready and enqueued as usual; their jobs stay pending, and keep their order and their attempts.\n\n" +
			"--all-orgs means the organizations that Daybook knows now, not later ones. To pause a whole queue, send its workflow the\n" +
			"signal pause.",
		Example: "  daybook organizations pause --org acme",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			changed, err := changeLimitsOf(c.Context(), a, &orgs, store.PauseOrganization)
			if err == nil && changed {
				a.Say("What is leased already is finished; `daybook organizations list` shows how much that is.")
			}
			return err
		},
	}
	orgs.Add(command)
	return command
}

func organizationsResumeCommand(a *cli.App) *cobra.Command {
	var orgs cli.OrganizationFlags
	command := &cobra.Command{
		Use:   "resume --org ORG…|--all-orgs",
		Short: "Lease jobs of paused organizations again",
		Long:  "Ends the pause of organizations. A waiting worker finds their due jobs at once. Their caps and rates stay.",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := changeLimitsOf(c.Context(), a, &orgs, store.ResumeOrganization)
			return err
		},
	}
	orgs.Add(command)
	return command
}

func organizationsCapCommand(a *cli.App) *cobra.Command {
	var orgs cli.OrganizationFlags
	var most int
	var none bool
	command := &cobra.Command{
		Use:   "cap (--org ORG…|--all-orgs) (--max-in-flight N|--none)",
		Short: "Bound how many jobs of an organization are leased at a time",
		Long: "Bounds how many jobs of an organization are leased at a time in each queue, over all workers together. It takes effect for every new\n" +
			"lease: what is leased already is finished, also what is above the cap, and what was leased while there was no cap does not\n" +
			"count. Each organization has a cap of its own.",
		Example: "  daybook organizations cap --org acme --max-in-flight 20\n  daybook organizations cap --org acme --none",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("max-in-flight") == none {
				return cli.Usagef("give either --max-in-flight or --none")
			}
			var wanted *int
			if !none {
				wanted = &most
			}
			_, err := changeLimitsOf(c.Context(), a, &orgs,
				func(ctx context.Context, tx pgx.Tx, org string) (store.Limits, error) {
					return store.CapOrganization(ctx, tx, org, wanted)
				})
			return err
		},
	}
	orgs.Add(command)
	command.Flags().IntVar(&most, "max-in-flight", 0, "how many of its jobs may be leased at a time, from 1")
	command.Flags().BoolVar(&none, "none", false, "remove the cap: any number")
	return command
}

func organizationsRateCommand(a *cli.App) *cobra.Command {
	var orgs cli.OrganizationFlags
	var rate int
	var per time.Duration
	var none bool
	command := &cobra.Command{
		Use:   "rate (--org ORG…|--all-orgs) (--rate N [--per TIME]|--none)",
		Short: "Bound how many background jobs of an organization begin in a time",
		Long: "Bounds how many attempts of an organization's background jobs begin in a time, over all workers together, beside its\n" +
			"cap. It takes effect for every new lease. At once may begin what the rate allows in 50 ms, at least one. Documents have\n" +
			"no rate. Each organization has a rate of its own.",
		Example: "  daybook organizations rate --org acme --rate 100 --per 1m\n  daybook organizations rate --org acme --none",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			given := c.Flags().Changed
			if given("rate") == none || none && given("per") {
				return cli.Usagef("give either --rate, and --per where it is not a second, or --none")
			}
			if !none && (rate < 1 || per <= 0) {
				return cli.Usagef("--rate must be 1 or more, and --per more than 0")
			}
			seconds := 0.0
			if !none {
				seconds = per.Seconds()
			}
			_, err := changeLimitsOf(c.Context(), a, &orgs,
				func(ctx context.Context, tx pgx.Tx, org string) (store.Limits, error) {
					return store.RateOrganization(ctx, tx, org, rate, seconds)
				})
			return err
		},
	}
	orgs.Add(command)
	command.Flags().IntVar(&rate, "rate", 0, "how many attempts begin in the time of --per, from 1")
	command.Flags().DurationVar(&per, "per", time.Second, "the time of --rate")
	command.Flags().BoolVar(&none, "none", false, "remove the rate: any number")
	return command
}

// changeLimitsOf changes the named organizations, each in a transaction of its own, shows what came
// of it, and reports whether anything changed.
func changeLimitsOf(ctx context.Context, a *cli.App, orgs *cli.OrganizationFlags, change limitChange) (bool, error) {
	if err := orgs.Check(); err != nil {
		return false, err
	}
	db, err := a.Open(ctx, 2)
	if err != nil {
		return false, err
	}
	defer db.Close()
	ids, err := orgs.Resolve(ctx, db)
	if err != nil {
		return false, err
	}
	changed := false
	results := make([]ChangedLimits, 0, len(ids))
	for _, id := range ids {
		r := ChangedLimits{OrgID: id}
		err := store.Begin(ctx, db.Pool, func(tx pgx.Tx) error {
			var err error
			if r.Limits, err = change(ctx, tx, id); err != nil {
				return err
			}
			return actions.Note(ctx, tx, id, "", map[string]any{"changed": r.Changed})
		})
		if err != nil {
			return changed, fmt.Errorf("organization %s: %w", id, err)
		}
		changed = changed || r.Changed
		results = append(results, r)
	}
	return changed, showLimits(a, results)
}

func showLimits(a *cli.App, results []ChangedLimits) error {
	for _, r := range results {
		if r.Added {
			a.Say("Organization %s had no settings of its own until now; `daybook organizations list` shows whether it has "+
				"jobs.", terminal.OneLine(r.OrgID))
		}
	}
	return a.Emit(map[string]any{"organizations": results}, func(w io.Writer) error {
		t := cli.NewTable("ORGANIZATION", "RESULT", "PAUSED SINCE", "CAP", "RATE")
		t.Right = []int{3}
		for _, r := range results {
			t.Add(r.OrgID, cli.ChangedText(r.Changed), cli.OptionalTime(r.PausedAt), capText(r.MaxInFlight),
				rateText(r.Rate, r.RateSeconds))
		}
		return a.Print(w, t)
	})
}

func capText(most *int) string {
	if most == nil {
		return ""
	}
	return strconv.Itoa(*most)
}

func rateText(rate *int, seconds *float64) string {
	if rate == nil || seconds == nil {
		return ""
	}
	return strconv.Itoa(*rate) + " in " + phrase.Duration(time.Duration(*seconds*float64(time.Second)))
}
