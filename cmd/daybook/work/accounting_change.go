package work

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// retryBatch is how many jobs share a transaction when many are retried.
const retryBatch = 500

func accountingRetryCommand(a *cli.App) *cobra.Command {
	var filter store.AccountingRetryFilter
	var state, code string
	var all bool
	var delay time.Duration
	command := &cobra.Command{
		Use:   "retry (ORG DOCUMENT | --state failed [--org ORG] [--code CODE] --all)",
		Short: "Make a job due again, or all that match",
		Long: "Makes a job due again, in any state: a failed job starts again with its attempts reset, a running one is tried again\n" +
			"after its attempt. Fix the cause of a failure first.",
		Example: "  daybook accounting retry acme invoice-17\n  daybook accounting retry --state failed --code " +
			"DATABASE_ERROR --all",
		Args: cobra.MatchAll(cobra.MaximumNArgs(2), cli.NotOneArg),
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if filter.State, err = checkRetry(args, state, all, delay, c.Flags().Changed("org") ||
				c.Flags().Changed("code")); err != nil {
				return err
			}
			filter.Code = models.ErrorCode(code)
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			if len(args) == 2 {
				response, err := queue.MarkAccountingJobPending(c.Context(), db.Pool,
					queue.PendingAccountingJob{OrgID: args[0], DocumentID: args[1], Delay: delay})
				if err != nil {
					return err
				}
				return showRequest(a, response)
			}
			n, ended := RetryAccountingJobs(c.Context(), db.Pool, filter, delay)
			return a.EmitDone(ended, n == 0, map[string]int{"pending": n}, func(w io.Writer) error {
				if n == 0 {
					_, err := fmt.Fprintln(w, noneMatches)
					return err
				}
				_, err := fmt.Fprintf(w, "%s pending again\n", phrase.Plural(int64(n), "job is", "jobs are"))
				return err
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&state, "state", "", "with --all: jobs in this state: failed, cancelled or pending")
	flags.StringVar(&filter.OrgID, "org", "", "with --all: only of this organization")
	flags.StringVar(&code, "code", "", "with --all: only with this error code")
	flags.BoolVar(&all, "all", false, "every job that matches")
	flags.DurationVar(&delay, "delay", 0, "until the job is due, such as 10m (default at once)")
	return command
}

// checkRetry checks that either one job or all of a state are meant, and returns the state.
func checkRetry(args []string, state string, all bool, delay time.Duration, narrowed bool) (models.JobState, error) {
	switch {
	case delay < 0:
		return "", cli.Usagef("--delay must not be negative")
	case len(args) == 2 && (all || state != "" || narrowed):
		return "", cli.Usagef("name either one job, or --all with --state")
	case len(args) == 2:
		return "", nil
	case !all || state == "":
		return "", cli.Usagef("name ORG and DOCUMENT, or give --state and --all")
	}
	s, err := cli.ParseState(state)
	if err != nil {
		return "", err
	}
	switch s {
	case models.JobFailed, models.JobCancelled, models.JobPending:
		return s, nil
	default:
		return "", cli.Usagef("--state %s: jobs that are leased or completed are retried one by one", state)
	}
}

// RetryAccountingJobs makes matching jobs pending, batch by batch, so that no transaction holds
// many rows for long.
func RetryAccountingJobs(ctx context.Context, pool *pgxpool.Pool, f store.AccountingRetryFilter,
	delay time.Duration,
) (int, error) {
	var err error
	if f.Before, err = store.Now(ctx, pool); err != nil {
		return 0, err
	}
	ids, err := store.AccountingJobsToRetry(ctx, pool, f)
	if err != nil {
		return 0, err
	}
	total := 0
	for batch := range slices.Chunk(ids, retryBatch) {
		n, err := store.MarkAccountingJobsPending(ctx, pool, batch, f, delay)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

func accountingCancelCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel ORG DOCUMENT",
		Short: "Ask that a document not be posted",
		Long: "Cancels a document's job; one that runs is cancelled after its attempt, which commits nothing. What is posted already\n" +
			"stays: mark the document not ready or deleted to reverse it.",
		Args: cobra.ExactArgs(2),
		RunE: requestForDocument(a, queue.CancelAccountingJob),
	}
}

// requestForDocument runs a command that asks something of the job of a document, which is named by
// its two arguments.
func requestForDocument(a *cli.App,
	ask func(context.Context, queue.Querier, queue.Document) (queue.Response, error)) func(*cobra.Command,
	[]string) error {
	return func(c *cobra.Command, args []string) error {
		db, err := a.Open(c.Context(), 1)
		if err != nil {
			return err
		}
		defer db.Close()
		response, err := ask(c.Context(), db.Pool, queue.Document{OrgID: args[0], ID: args[1]})
		if err != nil {
			return err
		}
		return showRequest(a, response)
	}
}
