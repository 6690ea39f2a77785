package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/models"
)

func statusCommand(a *app) *cobra.Command {
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
			db, err := a.open(c.Context(), 3)
			if err != nil {
				return err
			}
			defer db.close()
			o := health.Options{Pool: db.Pool, OrgID: org, Timeout: time.Second, Workflows: health.OfFleet(a.environment.Fleet)}
			named := false
			if !noTemporal {
				named = a.askTemporal(&o)
				if o.Temporal != nil {
					defer o.Temporal.Close()
				}
			}
			if every > 0 {
				return a.watchStatus(c.Context(), every, func(w io.Writer) error { return a.showStatus(c.Context(), w, o, named) })
			}
			return a.showStatus(c.Context(), a.stdout, o, named)
		},
	}
	command.Flags().StringVar(&org, "org", "", "only of this organization")
	command.Flags().BoolVar(&noTemporal, "no-temporal", false, "do not ask Temporal whether workflows run and workers poll")
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

// shownStatus is queuesStatus for programs.
type shownStatus struct {
	queuesStatus
	Queues []answers.QueueStats `json:"queues"`
}

// errNotCounted says why only the first line is there.
var errNotCounted = failure.New(failure.DatabaseUnavailable, "the jobs cannot be counted while another transaction has locked a table")

// readStatus asks whether work gets done and counts, in one snapshot of the database: the first line and
// the counts do not contradict one another. Where a locked table keeps the checks from being made, it
// would keep the counts waiting for as long as it is locked.
func readStatus(ctx context.Context, o health.Options, named bool) (s queuesStatus, err error) {
	r, err := health.CheckAndRead(ctx, unlessUnnamed(ctx, o, named), func(ctx context.Context, tx pgx.Tx, r health.Report) (err error) {
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

// showStatus reads the status and prints it. What could not be counted does not hide whether work gets done.
func (a *app) showStatus(ctx context.Context, w io.Writer, o health.Options, named bool) error {
	s, err := readStatus(ctx, o, named)
	if err != nil {
		if ctx.Err() == nil && !a.json {
			_, _ = fmt.Fprintln(w, a.bold(w, terminal.OneLine(s.Summary)))
		}
		return err
	}
	shown := shownStatus{s, answers.List(s.Queues, answers.QueueStatsOf)}
	return a.emitTo(w, shown, func(w io.Writer) error { return a.printStatus(w, s) })
}

// printStatus writes the status for people.
func (a *app) printStatus(w io.Writer, s queuesStatus) error {
	if _, err := fmt.Fprintf(w, "%s\n\n", a.bold(w, terminal.OneLine(s.Summary))); err != nil {
		return err
	}
	if err := a.printQueues(w, s.Queues, s.Paused); err != nil {
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
		if _, err := fmt.Fprintf(w, "completed without an entry: %s: %s\n", phrase.Plural(s.Bare[why], "document", "documents"), why.Words()); err != nil {
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
	return a.printFailed(w, s.Queues)
}
