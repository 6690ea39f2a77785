package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

func leasesCommand(a *app) *cobra.Command {
	command := &cobra.Command{
		Use:   "leases",
		Short: "Show what workers hold, and reclaim what has expired",
		Long: "Shows the leases of every queue, turn by turn. A holder renews its leases every three seconds; one that was not renewed for\n" +
			"ten has expired; a lease of a task lasts five minutes, and is renewed when half of them is over. A worker reclaims what has\n" +
			"expired by itself, and `daybook serve`, with the server of `daybook dev`, that of background jobs. Where none runs, `daybook leases release` does.",
		Args: cobra.NoArgs,
		RunE: a.onDatabase(func(c *cobra.Command, db *database, _ []string) error {
			groups, err := store.Leases(c.Context(), db.Pool)
			if err != nil {
				return err
			}
			return a.emit(map[string]any{"leases": groups}, func(w io.Writer) error { return a.printLeases(w, groups) })
		}),
	}
	command.AddCommand(leasesReleaseCommand(a))
	return command
}

func (a *app) printLeases(w io.Writer, groups []store.LeaseGroup) error {
	if len(groups) == 0 {
		_, err := fmt.Fprintln(w, "nothing is leased")
		return err
	}
	t := newTable("QUEUE", "WORKER", "TURN", "DETACHED", "JOBS", "WORKING", "EXPIRED", "RENEWED")
	t.right = []int{4, 5, 6}
	for _, g := range groups {
		detached := ""
		if g.Detached {
			detached = "yes"
		}
		t.add(g.Kind, terminal.OneLine(g.Worker), terminal.OneLine(g.Turn), detached, strconv.FormatInt(g.Jobs, 10), strconv.FormatInt(g.Working, 10),
			strconv.FormatInt(g.Expired, 10), formatTime(g.Renewed))
	}
	return a.print(w, t)
}

// releasedLeases says what became of the expired leases of one queue.
type releasedLeases struct {
	Kind string `json:"kind"`
	// Released counts all, Charged those whose jobs lost an attempt, Failed those that had no other left.
	Released int `json:"released"`
	Charged  int `json:"charged"`
	Failed   int `json:"failed"`
}

func leasesReleaseCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "release",
		Short: "Reclaim the leases that have expired, of every queue",
		Long: "Makes the jobs and tasks due again whose lease has expired, of every queue. One that was being worked is charged with the attempt.\n" +
			"Leases that are renewed stay.",
		Args: cobra.NoArgs,
		RunE: a.onDatabase(func(c *cobra.Command, db *database, _ []string) error {
			reclaimed, err := store.ReclaimExpired(c.Context(), db.Pool)
			if err != nil {
				return err
			}
			var all []releasedLeases
			for _, got := range reclaimed {
				all = append(all, releasedLeases{Kind: got.Kind, Released: got.Jobs, Charged: got.Lost, Failed: got.Failed})
			}
			return a.emit(map[string]any{"queues": all}, func(w io.Writer) error {
				for _, one := range all {
					if _, err := fmt.Fprintf(w, "%s: %s released, %s charged with an attempt, %d failed\n", one.Kind,
						phrase.Plural(int64(one.Released), "lease", "leases"), pluralOf(one.Kind, int64(one.Charged)), one.Failed); err != nil {
						return err
					}
				}
				return nil
			})
		}),
	}
}
