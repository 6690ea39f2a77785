package work

import (
	"io"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/models"
)

// tasksOf are the flags that say which tasks a pause or a cap is for.
type tasksOf struct {
	types []string
	all   bool
}

func (f *tasksOf) add(command *cobra.Command) {
	command.Flags().StringArrayVar(&f.types, "type", nil, "of this type; may be repeated")
	command.Flags().BoolVar(&f.all, "all", false, "all tasks together")
}

// resolve returns the types that are meant.
func (f *tasksOf) resolve() ([]string, error) {
	if f.all == (len(f.types) > 0) {
		return nil, cli.Usagef("give either --type or --all")
	}
	for _, t := range f.types {
		if !models.ValidTaskType(t) {
			return nil, cli.Usagef("--type %q: want a small letter and then small letters, digits or _, 63 at most", t)
		}
	}
	if f.all {
		return []string{models.AllTasks}, nil
	}
	// In one order, so that two calls do not wait for each other.
	return slices.Compact(slices.Sorted(slices.Values(f.types))), nil
}

func tasksPauseCommand(a *cli.App) *cobra.Command {
	var of tasksOf
	command := &cobra.Command{
		Use:   "pause --type TYPE…|--all",
		Short: "Hand out no more tasks of a type, or none at all, until they are resumed",
		Long: "Pauses tasks: from now on no worker or other client is handed one of them. What is leased already is finished. Tasks are enqueued as\n" +
			"usual, and keep their order. Other types go on.",
		Example: "  daybook tasks pause --type email",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return limitTasks(a, c, &of, store.TaskChange{Paused: new(true)})
		},
	}
	of.add(command)
	return command
}

func tasksResumeCommand(a *cli.App) *cobra.Command {
	var of tasksOf
	command := &cobra.Command{
		Use:   "resume --type TYPE…|--all",
		Short: "Hand out paused tasks again",
		Long: "Ends a pause. --all ends the pause of all tasks together; a type that was paused by itself stays paused. " +
			"Caps stay.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return limitTasks(a, c, &of, store.TaskChange{Paused: new(false)})
		},
	}
	of.add(command)
	return command
}

func tasksCapCommand(a *cli.App) *cobra.Command {
	var of tasksOf
	var most int
	var none bool
	command := &cobra.Command{
		Use:   "cap (--type TYPE…|--all) (--max-in-flight N|--none)",
		Short: "Bound how many tasks are leased at a time, of a type or of all together",
		Long: "Bounds how many tasks are leased at a time, over all workers and other clients together. It takes effect for every new lease: what is leased\n" +
			"already is finished, also what is above the cap. Each type that is named has a cap of its own; --all bounds " +
			"all tasks together.",
		Example: "  daybook tasks cap --type email --max-in-flight 20\n  daybook tasks cap --all --none",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			given := c.Flags().Changed("max-in-flight")
			switch {
			case given == none:
				return cli.Usagef("give either --max-in-flight or --none")
			case given && (most < 1 || most > math.MaxInt32):
				return cli.Usagef("--max-in-flight %d: want 1 to %d, or pause the tasks", most, math.MaxInt32)
			}
			return limitTasks(a, c, &of, store.TaskChange{Cap: &most})
		},
	}
	of.add(command)
	command.Flags().IntVar(&most, "max-in-flight", 0, "how many may be leased at a time, from 1")
	command.Flags().BoolVar(&none, "none", false, "remove the cap: any number")
	return command
}

// limitTasks changes what holds tasks back, all types in one transaction, and shows what came of
// it.
func limitTasks(a *cli.App, c *cobra.Command, of *tasksOf, change store.TaskChange) error {
	types, err := of.resolve()
	if err != nil {
		return err
	}
	db, err := a.Open(c.Context(), 1)
	if err != nil {
		return err
	}
	defer db.Close()
	results := make([]store.ChangedTasks, len(types))
	err = store.Begin(c.Context(), db.Pool, func(tx pgx.Tx) error {
		for i, t := range types {
			if results[i], err = store.LimitTasks(c.Context(), tx, t, change); err != nil {
				return err
			}
			if err = actions.Note(c.Context(), tx, "", t, map[string]any{"changed": results[i].Changed}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return a.Emit(map[string]any{"limits": results}, func(w io.Writer) error {
		t := cli.NewTable("TASKS", "RESULT", "PAUSED SINCE", "CAP")
		t.Right = []int{3}
		for _, r := range results {
			t.Add(cli.TasksText(r.Type), cli.ChangedText(r.Changed), cli.OptionalTime(r.PausedAt), capText(r.MaxInFlight))
		}
		return a.Print(w, t)
	})
}

func tasksLimitsCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "limits",
		Short: "List the pauses and caps of tasks",
		Args:  cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) error {
			limits, err := store.TaskLimits(c.Context(), db.Pool)
			if err != nil {
				return err
			}
			if limits == nil {
				limits = []models.TaskLimit{}
			}
			return a.Emit(map[string]any{"limits": limits}, func(w io.Writer) error {
				t := cli.NewTable("TASKS", "PAUSED SINCE", "CAP")
				t.Right = []int{2}
				for _, l := range limits {
					t.Add(cli.TasksText(l.Type), cli.OptionalTime(l.PausedAt), capText(l.MaxInFlight))
				}
				return a.Print(w, t)
			})
		}),
	}
}
