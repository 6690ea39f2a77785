package look

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

func leasesCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{
		Use:   "leases",
		Short: "Show what workers hold, and reclaim what has expired",
		Long: "Shows the leases of every queue, turn by turn. A holder renews its leases every three seconds; one that was not renewed for\n" +
			"ten has expired; a lease of a task lasts five minutes, and is renewed when half of them is over. A worker reclaims what has\n" +
			"expired by itself, and `daybook serve`, with the server of `daybook dev`, that of background jobs. Where none " +
			"runs, `daybook leases release` does.",
		Args: cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) error {
			groups, err := store.Leases(c.Context(), db.Pool)
			if err != nil {
				return err
			}
			return a.Emit(map[string]any{"leases": groups}, func(w io.Writer) error { return printLeases(a, w, groups) })
		}),
	}
	command.AddCommand(leasesReleaseCommand(a))
	return command
}

func printLeases(a *cli.App, w io.Writer, groups []store.LeaseGroup) error {
	if len(groups) == 0 {
		_, err := fmt.Fprintln(w, "nothing is leased")
		return err
	}
	t := cli.NewTable("QUEUE", "WORKER", "TURN", "DETACHED", "JOBS", "WORKING", "EXPIRED", "RENEWED")
	t.Right = []int{4, 5, 6}
	for _, g := range groups {
		detached := ""
		if g.Detached {
			detached = "yes"
		}
		t.Add(g.Kind, terminal.OneLine(g.Worker), terminal.OneLine(g.Turn), detached, strconv.FormatInt(g.Jobs, 10),
			strconv.FormatInt(g.Working, 10),
			strconv.FormatInt(g.Expired, 10), cli.FormatTime(g.Renewed))
	}
	return a.Print(w, t)
}

// ReleasedLeases says what became of the expired leases of one queue.
type ReleasedLeases struct {
	Kind string `json:"kind"`
	// Released counts all, Charged those whose jobs lost an attempt, Failed those that had no other
	// left.
	Released int `json:"released"`
	Charged  int `json:"charged"`
	Failed   int `json:"failed"`
}

func leasesReleaseCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "release",
		Short: "Reclaim the leases that have expired, of every queue",
		Long: "Makes the jobs and tasks due again whose lease has expired, of every queue. One that was being worked is charged with the attempt.\n" +
			"Leases that are renewed stay.",
		Args: cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) error {
			reclaimed, err := store.ReclaimExpired(c.Context(), db.Pool)
			if err != nil {
				return err
			}
			var all []ReleasedLeases
			for _, got := range reclaimed {
				all = append(all, ReleasedLeases{Kind: got.Kind, Released: got.Jobs, Charged: got.Lost, Failed: got.Failed})
			}
			return a.Emit(map[string]any{"queues": all}, func(w io.Writer) error {
				for _, one := range all {
					if _, err := fmt.Fprintf(w, "%s: %s released, %s charged with an attempt, %d failed\n", one.Kind,
						phrase.Plural(int64(one.Released), "lease", "leases"), cli.PluralOf(one.Kind, int64(one.Charged)),
						one.Failed); err != nil {
						return err
					}
				}
				return nil
			})
		}),
	}
}
