package work

import (
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/text/cursor"
)

func organizationsCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{
		Use:   "organizations",
		Short: "List organizations, pause and resume them, set their caps and rates, and name the source of their documents and their hooks",
	}
	command.AddCommand(
		organizationsListCommand(a), organizationsPauseCommand(a), organizationsResumeCommand(a),
		organizationsCapCommand(a), organizationsRateCommand(a),
		organizationsSourceCommand(a), organizationsHooksCommand(a),
	)
	return command
}

func organizationsListCommand(a *cli.App) *cobra.Command {
	var page cli.PageFlags
	command := &cobra.Command{
		Use:   "list",
		Short: "List the organizations, with what holds their jobs back and how many are open",
		Long: "Lists the organizations that Daybook knows or has a pending, leased or failed job of, with the version of the rule set\n" +
			"that posts, since when they are paused, how many of their jobs may be leased at a time, how many may\n" +
			"begin in a time, and how many jobs are pending,\n" +
			"leased and failed in each queue.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var last string
			if err := page.Read(&last); err != nil {
				return err
			}
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			list, err := store.ListOrganizations(c.Context(), db.Pool, last, page.Limit+1)
			if err != nil {
				return err
			}
			shown := OrganizationsPage{}
			shown.Organizations, shown.Next = cursor.Page(page.Limit, list,
				func(o store.OrganizationSummary) any { return o.OrgID })
			return a.Emit(shown, func(w io.Writer) error {
				header := []string{"ORGANIZATION", "RULE SET", "PAUSED SINCE", "CAP", "RATE"}
				for _, q := range store.OrganizationQueues() {
					header = append(header, strings.ToUpper(q.Name))
				}
				t := cli.NewTable(append(header, "SOURCE", "HOOKS", "NAME")...)
				t.Right = []int{1, 3}
				for _, o := range shown.Organizations {
					rules := ""
					if o.ActiveRuleSet != nil {
						rules = strconv.FormatInt(*o.ActiveRuleSet, 10)
					}
					row := []string{o.OrgID, rules, cli.OptionalTime(o.PausedAt), capText(o.MaxInFlight), rateText(o.Rate, o.RateSeconds)}
					for _, jobs := range o.Queues {
						row = append(row, openText(jobs))
					}
					t.Add(append(row, foreignSource(o.Source), strings.Join(o.Hooks, ", "), o.Name)...)
				}
				defer a.More(shown.Next)
				return a.Print(w, t)
			})
		},
	}
	page.Add(command, "organizations", store.DefaultLimit)
	return command
}

// OrganizationsPage is a page of organizations, for programs.
type OrganizationsPage struct {
	Organizations []store.OrganizationSummary `json:"organizations"`
	Next          string                      `json:"next_cursor,omitempty"`
}

// openText says how many jobs an organization has in a queue, those states left out in which it has
// none.
func openText(jobs store.OpenJobs) string {
	var parts []string
	for _, state := range []struct {
		n    int64
		name string
	}{{jobs.Pending, "pending"}, {jobs.Leased, "leased"}, {jobs.Failed, "failed"}} {
		if state.n > 0 {
			parts = append(parts, strconv.FormatInt(state.n, 10)+" "+state.name)
		}
	}
	return strings.Join(parts, ", ")
}

// foreignSource is the name of a source that daybook's own worker does not read.
func foreignSource(name string) string {
	if name == store.SourceDaybook {
		return ""
	}
	return name
}
