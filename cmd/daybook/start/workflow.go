package start

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

func workflowCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{
		Use:   "workflow",
		Short: "Start, pause, resume, configure, cancel and show the workflows that run the queues",
		Long: "Each kind of queue (" + strings.Join(kindNames(), ", ") +
			") is run by a workflow in Temporal, which is started once. These commands do what the\n" +
			"Temporal CLI does, without it.",
	}
	command.AddCommand(workflowStartCommand(a), workflowPauseCommand(a), workflowResumeCommand(a),
		workflowConfigureCommand(a), workflowCancelCommand(a), workflowShowCommand(a))
	return command
}

func kindNames() []string {
	var names []string
	for _, w := range health.Documented() {
		names = append(names, w.Kind)
	}
	return names
}

// workflowsOf are the arguments and flags that say which workflows are meant.
type workflowsOf struct {
	kinds []string
	id    string
	// wait is how long a command waits until what it asked for is so; noWait: not at all.
	wait   time.Duration
	noWait bool
}

// add adds the flags; waits says that the command waits for something.
func (f *workflowsOf) add(command *cobra.Command, waits bool) {
	command.Args = cobra.ArbitraryArgs
	command.Flags().StringArrayVar(&f.kinds, "kind", nil,
		"the kind of queue: "+strings.Join(kindNames(), ", ")+"; may be repeated, or given as an argument")
	command.Flags().StringVar(&f.id, "id", "", "the workflow's id, with one kind (default the documented one, such as "+
		cli.AccountingLoop.ID+", and others that run)")
	if waits {
		command.Flags().DurationVar(&f.wait, "wait", time.Minute, "how long to wait until it is so")
		command.Flags().BoolVar(&f.noWait, "no-wait", false, "do not wait until it is so")
	}
}

// resolve returns the workflows that are meant: all kinds when none is named.
func (f *workflowsOf) resolve(args []string) (which []health.Workflow, named bool, err error) {
	kinds := slices.Concat(f.kinds, args)
	for _, w := range health.OfFleet(os.Getenv("DAYBOOK_FLEET")) {
		if len(kinds) == 0 || slices.Contains(kinds, w.Kind) {
			which = append(which, w)
		}
	}
	for _, k := range kinds {
		if !slices.Contains(kindNames(), k) {
			return nil, false, cli.Usagef("there is no kind %q: want %s", k, phrase.Or(kindNames()))
		}
	}
	if f.wait < 0 {
		return nil, false, cli.Usagef("--wait %s: want 0 or more", f.wait)
	}
	if f.id == "" {
		return which, len(kinds) > 0, nil
	}
	if len(which) != 1 {
		return nil, false, cli.Usagef("--id %s names one workflow: say of which one kind it is, with --kind: %s", f.id,
			phrase.Or(kindNames()))
	}
	which[0].ID, which[0].Exact = f.id, true
	return which, true, nil
}

// askedFor is how long Temporal may take to answer one question of a command.
const askedFor = 5 * time.Second

// running asks Temporal for the workflows, and returns those that run, all of each kind. Kinds that
// were named must run; of all kinds at least one.
func running(
	ctx context.Context, c client.Client, which []health.Workflow, named bool,
) ([]health.WorkflowState, error) {
	states, err := health.FindWorkflows(ctx, c, which, askedFor) // a worker that does not answer costs no time of --wait
	if err != nil {
		return nil, err
	}
	var on []health.WorkflowState
	var idle []string
	for _, s := range states {
		if s.State != health.Running {
			idle = append(idle, s.Kind)
		}
		for _, id := range s.Runs() {
			s.ID = id
			on = append(on, s)
		}
	}
	if len(idle) > 0 && (named || len(on) == 0) {
		return nil, cli.Tagged(errNoWorkflow,
			"the workflow of %s does not run: start it with `daybook workflow start --kind %s`", strings.Join(idle, ", "),
			idle[0])
	}
	return on, nil
}

// WorkflowChange is what a command did to a workflow, for programs.
type WorkflowChange struct {
	Kind       string `json:"kind"`
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id,omitempty"`
	// Result is what is so now: started, already_running, paused, running, configured, cancelled; or
	// sent, when the command did not wait for it, or no worker answered in time.
	Result string `json:"result"`
	// Since is when it took effect; TookMS how long that took.
	Since  *time.Time `json:"since,omitempty"`
	TookMS int64      `json:"took_ms,omitempty"`
	// Says is the same for people, and what to do.
	Says string `json:"says"`
}

func change(s health.WorkflowState, result, says string) WorkflowChange {
	return WorkflowChange{Kind: s.Kind, WorkflowID: s.ID, RunID: s.RunID, Result: result, Says: says}
}

// aboutWorkflows says in the log of actions which workflows a command is about, whichever way its
// kinds were named.
func aboutWorkflows(ctx context.Context, states []health.WorkflowState) {
	ids := make([]string, len(states))
	for i, s := range states {
		ids[i] = s.ID
	}
	actions.About(ctx, "", strings.Join(ids, " "), nil)
}

// emitChanges prints what was done, a line a workflow, and says it in the log of actions.
func emitChanges(ctx context.Context, a *cli.App, changes []WorkflowChange) error {
	for _, c := range changes {
		actions.About(ctx, "", "", map[string]any{c.WorkflowID: c.Result})
	}
	return a.Emit(map[string]any{"workflows": changes}, func(w io.Writer) error {
		of := map[string]int{}
		for _, c := range changes {
			of[c.Kind]++
		}
		for _, c := range changes {
			kind := c.Kind
			if of[kind] > 1 {
				kind += " (" + terminal.OneLine(c.WorkflowID) + ")"
			}
			if _, err := fmt.Fprintf(w, "%s: %s\n", kind, terminal.OneLine(c.Says)); err != nil {
				return err
			}
		}
		return nil
	})
}

// forEach calls f for each workflow that runs, at the same time, because each may wait.
func forEach(a *cli.App, c *cobra.Command, of *workflowsOf, args []string,
	f func(ctx context.Context, temporal client.Client, s health.WorkflowState) (WorkflowChange, error),
) error {
	which, named, err := of.resolve(args)
	if err != nil {
		return err
	}
	return a.WithTemporal(c.Context(), func(temporal client.Client) error {
		states, err := running(c.Context(), temporal, which, named)
		if err != nil {
			return err
		}
		aboutWorkflows(c.Context(), states)
		type done struct {
			change WorkflowChange
			err    error
		}
		results := make([]chan done, len(states))
		for i, s := range states {
			results[i] = make(chan done, 1)
			go func() {
				change, err := f(c.Context(), temporal, s)
				results[i] <- done{change, err}
			}()
		}
		var changes []WorkflowChange
		var failed error
		for _, r := range results {
			d := <-r
			failed = cmp.Or(failed, d.err)
			if d.err == nil {
				changes = append(changes, d.change)
			}
		}
		if len(changes) > 0 {
			if err := emitChanges(c.Context(), a, changes); err != nil {
				return err
			}
		}
		return failed
	})
}
