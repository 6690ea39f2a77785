package work

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// noneMatches is said where all jobs that match were to be changed, and none did.
const noneMatches = "no job matches: nothing was changed"

// changeFlags say whether one background job or all that match are to be changed.
type changeFlags struct {
	jobsFlags
	all, dryRun bool
}

func (f *changeFlags) add(command *cobra.Command, states string) {
	flags := command.Flags()
	f.jobsFlags.add(flags, states+" (default failed)")
	flags.BoolVar(&f.all, "all", false, "every job that matches, without further flags every dead letter")
	flags.BoolVar(&f.dryRun, "dry-run", false, "count the jobs that match and change nothing")
}

// check checks that either one job is named, or all that match are meant.
func (f *changeFlags) check(args []string) error {
	switch many := f.all || f.dryRun; {
	case len(args) == 1 && (many || f.given()):
		return cli.Usagef("name either one job, or --all that match")
	case len(args) == 0 && !many:
		return cli.Usagef("name a job, or say --all; --dry-run counts those that match")
	}
	return nil
}

// change asks for one job, or for all that match.
func (f *changeFlags) change(ctx context.Context, a *cli.App, args []string,
	one func(ctx context.Context, db *cli.Database, id string) (queue.Response, error),
	many func(ctx context.Context, db *cli.Database, r listing.BulkJobs) (models.BulkOperation, error), done string,
) error {
	if err := f.check(args); err != nil {
		return err
	}
	filter, err := f.parse(models.JobFailed)
	if err != nil {
		return err
	}
	db, err := a.Open(ctx, 2)
	if err != nil {
		return err
	}
	defer db.Close()
	if len(args) == 1 {
		if s, err := queue.ReadJobStatus(ctx, db.Pool, args[0]); err == nil {
			actions.About(ctx, s.OrgID, "", nil)
		}
		r, err := one(ctx, db, args[0])
		if err != nil {
			return err
		}
		return a.Emit(answers.Change{JobID: r.JobID, Result: string(r.Result), Reason: r.Reason}, func(w io.Writer) error {
			if r.Reason != "" {
				_, err := fmt.Fprintf(w, "%s (job %s): %s\n", r.Result, r.JobID, r.Reason)
				return err
			}
			_, err := fmt.Fprintf(w, "%s (job %s)\n", r.Result, r.JobID)
			return err
		})
	}
	op, ended := many(ctx, db, listing.BulkJobs{Filter: filter, All: true, DryRun: f.dryRun})
	return f.emitBulk(a, &op, ended, done)
}

// emitBulk says what became of a request for many jobs.
func (f *changeFlags) emitBulk(a *cli.App, op *models.BulkOperation, ended error, done string) error {
	if ended != nil && op.Matched > 0 {
		a.Say("Ended after %d of %s. `daybook jobs resume` goes on: %v", op.Changed+op.LeftAlone,
			phrase.Plural(int64(op.Matched), "job", "jobs"), ended)
	}
	return a.EmitDone(ended, op.Matched == 0, answers.BulkOperationOf(op, f.dryRun), func(w io.Writer) error {
		if f.dryRun && op.Action == models.BulkEdit {
			_, err := fmt.Fprintf(w, "%s, %d would be edited; nothing was changed\n",
				phrase.Plural(int64(op.Matched), "job matches", "jobs match"), op.Changed)
			return err
		}
		if f.dryRun {
			_, err := fmt.Fprintf(w, "%s; nothing was changed\n",
				phrase.Plural(int64(op.Matched), "job matches", "jobs match"))
			return err
		}
		if op.LeftAlone > 0 {
			a.Say("%s left alone%s", phrase.Plural(int64(op.LeftAlone), "job was", "jobs were"), whyLeft(op))
		}
		if op.Matched == 0 {
			_, err := fmt.Fprintln(w, noneMatches)
			return err
		}
		_, err := fmt.Fprintf(w, "%s %s\n", phrase.Plural(int64(op.Changed), "job is", "jobs are"), done)
		return err
	})
}

// whyLeft says why a request for many jobs left some alone.
func whyLeft(op *models.BulkOperation) string {
	why := ": "
	add := func(n int, text string) {
		if n > 0 {
			why += fmt.Sprintf("%d %s; ", n, text)
		}
	}
	add(op.LeftOpen, "because another job of the same payload or schedule is open, and one may be")
	add(op.LeftQueue, "because their named queue was deleted: make it again by `daybook queues create`")
	others := "because another transaction changed or locked them meanwhile"
	if op.Action == models.BulkEdit {
		others = "because the patch does not apply or changes nothing, another job has the payload, or another " +
			"transaction changed or locked them meanwhile"
	}
	add(op.LeftAlone-op.LeftOpen-op.LeftQueue, others)
	return strings.TrimSuffix(why, "; ")
}

func jobsRetryCommand(a *cli.App) *cobra.Command {
	var f changeFlags
	var mode string
	var delay time.Duration
	command := &cobra.Command{
		Use:   "retry (ID | --all [--org ORG] [--type TYPE] [--code CODE] [--since 24h])",
		Short: "Try a job again, or all dead letters that match",
		Long: "Tries a job again: --mode now at once, later after a delay (--delay, default 5m), reset at once and with its attempts\n" +
			"counted from 0 and its steps forgotten. now and later keep both, and give it at least one more attempt. " +
			"Fix the cause of a failure first.",
		Example: "  daybook jobs retry 0197… --mode reset\n  daybook jobs retry --all --type webhook --code UPSTREAM_5XX " +
			"--since 24h --dry-run",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if mode != string(queue.RetryNow) && mode != string(queue.RetryLater) && mode != string(queue.RetryReset) {
				return cli.Usagef("--mode %q: want now, later or reset", mode)
			}
			if delay < 0 {
				return cli.Usagef("--delay must not be negative")
			}
			return f.change(c.Context(), a, args,
				func(ctx context.Context, db *cli.Database, id string) (queue.Response, error) {
					return queue.RetryJob(ctx, db.Pool, id, queue.RetryOptions{Mode: queue.RetryMode(mode), Delay: delay})
				}, func(ctx context.Context, db *cli.Database, r listing.BulkJobs) (models.BulkOperation, error) {
					return db.RetryJobs(ctx, db.Pool, r, mode, delay)
				}, "pending again")
		},
	}
	f.add(command, "failed, cancelled or pending")
	command.Flags().StringVar(&mode, "mode", "now", "now, later or reset")
	command.Flags().DurationVar(&delay, "delay", 0,
		"until it is due, such as 10m (default at once, with --mode later 5m)")
	return command
}

func jobsCancelCommand(a *cli.App) *cobra.Command {
	var f changeFlags
	command := &cobra.Command{
		Use:   "cancel (ID | --all [--org ORG] [--type TYPE] [--code CODE] [--since 24h])",
		Short: "Cancel a job, or all dead letters that match",
		Long:  "Cancels a job; one that runs is cancelled after its attempt, which is interrupted.",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.change(c.Context(), a, args,
				func(ctx context.Context, db *cli.Database, id string) (queue.Response, error) {
					return queue.CancelJob(ctx, db.Pool, id)
				}, func(ctx context.Context, db *cli.Database, r listing.BulkJobs) (models.BulkOperation, error) {
					return db.CancelJobs(ctx, db.Pool, r)
				}, "cancelled")
		},
	}
	f.add(command, "failed, pending or leased")
	return command
}

func jobsResumeCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "resume OPERATION",
		Short: "Continue a retry, edit or cancel of many jobs that was interrupted",
		Long: "Continues a bulk operation: the jobs that it has not changed yet are changed now. A server (daybook serve) continues\n" +
			"operations by itself that no other process works on.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			db, err := a.Open(c.Context(), 2)
			if err != nil {
				return err
			}
			defer db.Close()
			if _, err := db.BulkOperation(c.Context(), "", args[0]); err != nil {
				return err
			}
			if err := store.RunBulk(c.Context(), db.Pool, args[0]); err != nil {
				return err
			}
			op, err := db.BulkOperation(c.Context(), "", args[0])
			if err != nil {
				return err
			}
			return a.Emit(answers.BulkOperationOf(&op, false), func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s: %d of %s changed, %d left alone\n", op.Action, op.Changed,
					phrase.Plural(int64(op.Matched), "job", "jobs"), op.LeftAlone)
				return err
			})
		},
	}
}
