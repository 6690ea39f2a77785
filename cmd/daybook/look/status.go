package look

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/models"
)

func statusCommand(a *cli.App) *cobra.Command {
	var org, watch string
	var noTemporal bool
	command := &cobra.Command{
		Use:   "status",
		Short: "Say whether work gets done, count the jobs of every queue by state, and show what waits",
		Long: "The first line says whether work gets done, and if not, why, and what to do; `daybook doctor` says more. Then the jobs of every queue are counted by state.\n" +
			"Temporal is asked when it answers within a second. When the environment does not name it (TEMPORAL_ADDRESS) and it does not answer, the line says that it was\n" +
			"not asked.",
		Example: "  daybook status\n  daybook status --watch 5",
		Args: func(_ *cobra.Command, args []string) error {
			if most := len(watch); len(args) > min(most, 1) {
				return fmt.Errorf("unknown command %q for \"daybook status\"", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			every, err := watchInterval(watch, args)
			if err != nil {
				return err
			}
			db, err := a.Open(c.Context(), 3)
			if err != nil {
				return err
			}
			defer db.Close()
			o := health.Options{
				Pool: db.Pool, OrgID: org, Timeout: time.Second,
				Workflows: health.OfFleet(a.Environment.Fleet),
			}
			named := false
			if !noTemporal {
				named = askTemporal(a, &o)
				if o.Temporal != nil {
					defer o.Temporal.Close()
				}
			}
			if every > 0 {
				return watchStatus(c.Context(), a, every,
					func(w io.Writer) error { return showStatus(c.Context(), a, w, o, named) })
			}
			return showStatus(c.Context(), a, a.Stdout, o, named)
		},
	}
	command.Flags().StringVar(&org, "org", "", "only of this organization")
	command.Flags().BoolVar(&noTemporal, "no-temporal", false,
		"do not ask Temporal whether workflows run and workers poll")
	command.Flags().StringVar(&watch, "watch", "", "show it anew every so many seconds (default 2), until Ctrl-C")
	command.Flags().Lookup("watch").NoOptDefVal = watchDefault
	return command
}

// queuesStatus is what `daybook status` shows.
type queuesStatus struct {
	// Working and Summary say whether work gets done; Findings say what is wrong, the worst first.
	Working  bool                       `json:"working"`
	Summary  string                     `json:"summary"`
	Findings []health.Finding           `json:"findings"`
	Queues   []store.QueueStatus        `json:"-"`
	Paused   []store.PausedOrganization `json:"paused_organizations"`
	Tasks    []models.TaskLimit         `json:"paused_tasks"`
	Waiting  []store.Left               `json:"waiting_for"`
	// Bare counts the documents that are posted without an entry, by why.
	Bare map[models.NoEntries]int64 `json:"without_entries"`
}

// ShownStatus is queuesStatus for programs.
type ShownStatus struct {
	queuesStatus
	Queues []answers.QueueStats `json:"queues"`
}

// errNotCounted says why only the first line is there.
var errNotCounted = failure.New(failure.DatabaseUnavailable,
	"the jobs cannot be counted while another transaction has locked a table")

// readStatus asks whether work gets done and counts, in one snapshot of the database: the first
// line and the counts do not contradict one another. Where a locked table keeps the checks from
// being made, it would keep the counts waiting for as long as it is locked.
func readStatus(ctx context.Context, o health.Options, named bool) (s queuesStatus, err error) {
	r, err := health.CheckAndRead(ctx, unlessUnnamed(ctx, o, named),
		func(ctx context.Context, tx pgx.Tx, r health.Report) (err error) {
			if slices.ContainsFunc(r.Findings, func(f health.Finding) bool { return f.Code == health.TableLocked }) &&
				slices.ContainsFunc(r.Checked, func(c health.Checked) bool { return c.Error != "" }) {
				return errNotCounted
			}
			if s.Queues, err = store.Status(ctx, store.Joined(tx), o.OrgID); err != nil {
				return err
			}
			if s.Paused, err = store.PausedOrganizations(ctx, tx, o.OrgID); err != nil {
				return err
			}
			if s.Waiting, err = store.WaitingFor(ctx, tx, o.OrgID); err != nil {
				return err
			}
			if s.Bare, err = store.WithoutEntries(ctx, tx, o.OrgID); err != nil {
				return err
			}
			limits, err := store.TaskLimits(ctx, tx)
			s.Tasks = pausedTasks(limits)
			return err
		})
	s.Working, s.Summary, s.Findings = r.Working, r.Summary, r.Findings
	return s, errors.Join(err, ctx.Err())
}

// showStatus reads the status and prints it. What could not be counted does not hide whether work
// gets done.
func showStatus(ctx context.Context, a *cli.App, w io.Writer, o health.Options, named bool) error {
	s, err := readStatus(ctx, o, named)
	if err != nil {
		if ctx.Err() == nil && !a.JSON {
			_, _ = fmt.Fprintln(w, a.Bold(w, terminal.OneLine(s.Summary)))
		}
		return err
	}
	shown := ShownStatus{s, answers.List(s.Queues, answers.QueueStatsOf)}
	return a.EmitTo(w, shown, func(w io.Writer) error { return printStatus(a, w, s) })
}

// printStatus writes the status for people.
func printStatus(a *cli.App, w io.Writer, s queuesStatus) error {
	if _, err := fmt.Fprintf(w, "%s\n\n", a.Bold(w, terminal.OneLine(s.Summary))); err != nil {
		return err
	}
	if err := printQueues(a, w, s.Queues, s.Paused); err != nil {
		return err
	}
	if len(s.Tasks) > 0 {
		if _, err := fmt.Fprintf(w, "\npaused tasks: %s\n", pausedTasksText(s.Tasks)); err != nil {
			return err
		}
	}
	for i, why := range slices.Sorted(maps.Keys(s.Bare)) {
		if i == 0 {
			_, _ = fmt.Fprintln(w)
		}
		if _, err := fmt.Fprintf(w, "completed without an entry: %s: %s\n",
			phrase.Plural(s.Bare[why], "document", "documents"), why.Words()); err != nil {
			return err
		}
	}
	for i, l := range s.Waiting {
		if i == 0 {
			_, _ = fmt.Fprintln(w)
		}
		if _, err := fmt.Fprintln(w, waitingText(l)); err != nil {
			return err
		}
	}
	return printFailed(a, w, s.Queues)
}

// waitingText says what jobs wait for, by name.
func waitingText(l store.Left) string {
	names := []string{"source " + l.Source}
	if l.Source == store.SourceDaybook {
		names = nil
	}
	if len(l.Hooks) > 0 {
		names = append(names, "hooks "+strings.Join(l.Hooks, ", "))
	}
	verb := "wait"
	if l.Jobs == 1 {
		verb = "waits"
	}
	return fmt.Sprintf("%s of %s %s for a worker with %s", phrase.Plural(l.Jobs, "due job", "due jobs"),
		phrase.Plural(l.Organizations, "organization", "organizations"), verb,
		strings.Join(names, " and "))
}

// pausedTasks are those of the limits that are pauses.
func pausedTasks(limits []models.TaskLimit) []models.TaskLimit {
	paused := []models.TaskLimit{}
	for _, l := range limits {
		if l.PausedAt != nil {
			paused = append(paused, l)
		}
	}
	return paused
}

func pausedTasksText(paused []models.TaskLimit) string {
	names := make([]string, len(paused))
	for i, l := range paused {
		names[i] = cli.TasksText(l.Type) + " since " + cli.OptionalTime(l.PausedAt)
	}
	return strings.Join(names, ", ")
}
