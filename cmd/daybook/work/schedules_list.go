package work

import (
	"io"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/admin/schedules"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
)

func schedulesListCommand(a *cli.App) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:   "list",
		Short: "List schedules; a new one may take a moment to show",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.WithTemporal(c.Context(), func(temporal client.Client) error {
				all, err := schedules.List(c.Context(), temporal, org)
				if err != nil {
					return err
				}
				return a.Emit(map[string]any{"schedules": all}, func(w io.Writer) error { return printSchedules(a, w, all) })
			})
		},
	}
	command.Flags().StringVar(&org, "org", "", "only of this organization")
	return command
}

func printSchedules(a *cli.App, w io.Writer, all []schedules.Listed) error {
	t := cli.NewTable("ID", "ORGANIZATION", "TYPE", "QUEUE", "FLEET", "WHEN", "ZONE", "OVERLAP", "LAST", "DID", "NEXT")
	for _, s := range all {
		next := inZone(s, s.NextFiring, secondsLayout)
		if s.Paused {
			next = "paused"
		}
		t.Add(s.ID, s.OrgID, s.Type, s.Queue, s.Fleet, s.When, s.TimeZone, string(s.Overlap),
			inZone(s, s.LastFired, secondsLayout), string(s.LastResult), next)
	}
	return a.Print(w, t)
}

const secondsLayout = "2006-01-02 15:04:05"

// inZone writes a time in the schedule's time zone, and in UTC, marked by a Z, if this machine does
// not know the zone.
func inZone(s schedules.Listed, t *time.Time, layout string) string {
	if t == nil {
		return ""
	}
	zone, err := time.LoadLocation(s.TimeZone)
	if err != nil {
		return t.UTC().Format(layout + "Z")
	}
	return t.In(zone).Format(layout)
}
