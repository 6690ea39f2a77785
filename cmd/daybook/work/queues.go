package work

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/namedqueue"
	"github.com/daybook-dev/daybook/internal/text/cursor"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

func queuesCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{
		Use:   "queues",
		Short: "Make, list, pause and delete named queues of background jobs",
		Long: "A named queue has a limit, a pause and a rate of its own, besides those of its jobs' types, and belongs to a fleet of workers. A job is enqueued in it\n" +
			"by its name, which must exist.",
	}
	command.AddCommand(queuesListCommand(a), queuesCreateCommand(a), queuesSetCommand(a), queuesReleaseCommand(a),
		queuesPauseCommand(a, true), queuesPauseCommand(a, false), queuesDeleteCommand(a))
	return command
}

// queueFlags are the settings of a named queue.
type queueFlags struct {
	store.NamedQueue
	per time.Duration
}

func (f *queueFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.Fleet, "fleet", "", "the fleet whose workers work it (default the fleet without a name)")
	flags.IntVar(&f.MaxParallel, "max-parallel", 0,
		"how many of its jobs are worked at a time, over all workers; 0: any number")
	flags.IntVar(&f.PerProcess, "per-process", 0,
		"how many of its jobs each worker process works at a time; 0: any number")
	flags.IntVar(&f.Rate, "rate", 0, "how many attempts begin in the time of --per, over all workers; 0: any number")
	flags.DurationVar(&f.per, "per", time.Second, "the time of --rate")
	flags.IntVar(&f.RateBurst, "burst", 0, "how many of the rate may begin at once (default what it allows in 50 ms)")
	flags.StringVar(&f.Owner, "owner", "", "the team or contact responsible")
}

// given reports whether the command line gives any setting.
func (f *queueFlags) given(command *cobra.Command) bool {
	return slices.ContainsFunc([]string{"fleet", "max-parallel", "per-process", "rate", "per", "burst", "owner"},
		command.Flags().Changed)
}

// over returns the settings of a queue with those that the command line gives.
func (f *queueFlags) over(command *cobra.Command, u store.NamedQueue) store.NamedQueue {
	given := command.Flags().Changed
	if given("fleet") {
		u.Fleet = f.Fleet
	}
	if given("max-parallel") {
		u.MaxParallel = f.MaxParallel
	}
	if given("per-process") {
		u.PerProcess = f.PerProcess
	}
	if given("rate") {
		u.Rate = f.Rate
	}
	if given("per") || u.RateSeconds == 0 {
		u.RateSeconds = f.per.Seconds()
	}
	if given("burst") {
		u.RateBurst = f.RateBurst
	}
	if given("owner") {
		u.Owner = f.Owner
	}
	if u.Rate == 0 {
		u.RateSeconds, u.RateBurst = 0, 0
	}
	return u
}

func queuesListCommand(a *cli.App) *cobra.Command {
	var page cli.PageFlags
	var fleet string
	command := &cobra.Command{
		Use:   "list [NAME]",
		Short: "List the named queues with their settings and how many jobs they have",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var p store.QueuesPage
			if err := page.Read(&p.After); err != nil {
				return err
			}
			p.Limit = page.Limit + 1
			if c.Flags().Changed("fleet") {
				p.Fleet = &fleet
			}
			if len(args) == 1 {
				p.Name = args[0]
			}
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			queues, err := store.NamedQueues(c.Context(), db.Pool, p)
			if err != nil {
				return err
			}
			queues, next := cursor.Page(page.Limit, queues, func(u store.NamedQueue) any { return u.Name })
			return a.Emit(answers.QueueList{Queues: answers.List(queues, answers.QueueOf), NextCursor: next},
				func(w io.Writer) error {
					defer a.More(next)
					return printNamedQueues(a, w, queues)
				})
		},
	}
	command.Flags().StringVar(&fleet, "fleet", "", "only the queues of this fleet; empty: of the fleet without a name")
	page.Add(command, "queues", store.DefaultLimit)
	return command
}

func printNamedQueues(a *cli.App, w io.Writer, queues []store.NamedQueue) error {
	t := cli.NewTable("QUEUE", "FLEET", "WORKERS", "AT A TIME", "A PROCESS", "RATE", "PENDING", "DUE", "LEASED", "FAILED",
		"PAUSED", "OWNER", "SET BY")
	for i := range queues {
		u := &queues[i]
		most, process, rate := "", "", ""
		if u.MaxParallel > 0 {
			most = strconv.Itoa(u.MaxParallel)
		}
		if u.PerProcess > 0 {
			process = strconv.Itoa(u.PerProcess)
		}
		if u.Rate > 0 {
			rate = fmt.Sprintf("%d in %s", u.Rate, phrase.Duration(time.Duration(u.RateSeconds*float64(time.Second))))
		}
		t.Add(u.Name, u.Fleet, strconv.Itoa(u.Workers), most, process, rate, strconv.Itoa(u.Pending), strconv.Itoa(u.Due),
			strconv.Itoa(u.Leased), strconv.Itoa(u.Failed),
			cli.OptionalTime(u.PausedAt), u.Owner, u.SetBy)
	}
	return a.Print(w, t)
}

func queuesCreateCommand(a *cli.App) *cobra.Command {
	var f queueFlags
	command := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a named queue",
		Example: "  daybook queues create bank --max-parallel 10 --rate 100 --per 1m\n  daybook queues create orders " +
			"--fleet shop",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return changeQueue(a, c, func(ctx context.Context, db *cli.Database) (store.NamedQueue, bool, error) {
				now, err := namedqueue.Create(ctx, db.Pool, f.over(c, store.NamedQueue{Name: args[0]}))
				return now, true, err
			})
		},
	}
	f.add(command)
	return command
}

func queuesSetCommand(a *cli.App) *cobra.Command {
	var f queueFlags
	command := &cobra.Command{
		Use:   "set NAME",
		Short: "Change the settings of a named queue: those that are given",
		Long: "Changes settings of a named queue. They hold for every lease from now on; what is leased is finished. Open jobs go to the fleet that is named, and a\n" +
			"pause stays. --max-parallel 0 and --rate 0 end a limit. The settings count until `daybook queues release`, " +
			"also when a program asks for others at its start.",
		Example: "  daybook queues set bank --rate 50 --per 1m",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if !f.given(c) {
				if err := knowsQueue(c.Context(), a, args[0]); err != nil {
					return err
				}
				return cli.Usagef("nothing to set: give --fleet, --max-parallel, --per-process, --rate, --per, --burst or "+
					"--owner; `daybook queues list %s` shows what is set", args[0])
			}
			return changeQueue(a, c, func(ctx context.Context, db *cli.Database) (store.NamedQueue, bool, error) {
				return namedqueue.Set(ctx, db.Pool, args[0], func(u store.NamedQueue) store.NamedQueue { return f.over(c, u) })
			})
		},
	}
	f.add(command)
	return command
}

func queuesReleaseCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "release NAME",
		Short: "Give the settings of a named queue back to its programs",
		Long: "Ends what `daybook queues create` or `set`, the HTTP API or the console has set: the settings that programs have asked for last count again. Where none\n" +
			"has asked for any, they stay as they are until one does.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return changeQueue(a, c, func(ctx context.Context, db *cli.Database) (store.NamedQueue, bool, error) {
				return namedqueue.Release(ctx, db.Pool, args[0])
			})
		},
	}
}

// knowsQueue refuses a queue that is not there.
func knowsQueue(ctx context.Context, a *cli.App, name string) error {
	db, err := a.Open(ctx, 1)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = store.QueueOf(ctx, db.Pool, name)
	return err
}

// changeQueue makes a change of a queue, says when nothing was changed, and shows the queue as it
// is then.
func changeQueue(a *cli.App, c *cobra.Command,
	change func(ctx context.Context, db *cli.Database) (store.NamedQueue, bool, error),
) error {
	db, err := a.Open(c.Context(), 1)
	if err != nil {
		return err
	}
	defer db.Close()
	now, changed, err := change(c.Context(), db)
	if err != nil {
		return err
	}
	if !changed {
		a.Say("Nothing was changed: the queue %s is so already.", now.Name)
	}
	return a.Emit(answers.QueueOf(&now),
		func(w io.Writer) error { return printNamedQueues(a, w, []store.NamedQueue{now}) })
}

func queuesPauseCommand(a *cli.App, paused bool) *cobra.Command {
	command := &cobra.Command{
		Use:   "pause NAME",
		Short: "Lease nothing more of a named queue, until it is resumed",
		Long: "Pauses a named queue: no lease after this takes one of its jobs. What is leased already is finished, and " +
			"jobs can be enqueued in it as before.",
		Args: cobra.ExactArgs(1),
	}
	if !paused {
		command.Use, command.Short = "resume NAME", "Lease jobs of a paused queue again"
		command.Long = "Ends the pause of a named queue. Its workers find its due jobs at once."
	}
	command.RunE = func(c *cobra.Command, args []string) error {
		return changeQueue(a, c, func(ctx context.Context, db *cli.Database) (store.NamedQueue, bool, error) {
			return namedqueue.Pause(ctx, db.Pool, args[0], paused)
		})
	}
	return command
}

func queuesDeleteCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a named queue that has no open jobs",
		Args:  cobra.ExactArgs(1),
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, args []string) error {
			if err := namedqueue.Delete(c.Context(), db.Pool, args[0]); err != nil {
				return err
			}
			return a.Emit(map[string]any{"name": args[0], "deleted": true}, func(w io.Writer) error {
				_, err := fmt.Fprintln(w, args[0]+" is deleted.")
				return err
			})
		}),
	}
}
