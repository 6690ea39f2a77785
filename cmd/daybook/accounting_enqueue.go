package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/queue"
)

func accountingEnqueueCommand(a *app) *cobra.Command {
	var job queue.AccountingJob
	var readyAt, priority string
	command := &cobra.Command{
		Use:   "enqueue ORG DOCUMENT --version N",
		Short: "Ask for a document version to be posted",
		Long: "Asks for a document version to be posted and prints the result: enqueued, coalesced (the job that waits or runs\n" +
			"does it as well), requeued (the job had ended) or unchanged (this version or a newer one was asked for already).",
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			job.OrgID, job.DocumentID, a.organization = args[0], args[1], args[0]
			var err error
			if job.Priority, err = parsePriority(priority); err != nil {
				return err
			}
			if readyAt != "" {
				if job.ReadyAt, err = time.Parse(time.RFC3339, readyAt); err != nil {
					return usagef("--ready-at %q: want a time such as 2026-01-31T09:00:00Z", readyAt)
				}
			}
			db, err := a.open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.close()
			response, err := queue.EnqueueAccountingJob(c.Context(), db.Pool, job)
			if err != nil {
				return err
			}
			return a.showRequest(response)
		},
	}
	flags := command.Flags()
	flags.Int64Var(&job.Version, "version", 0, "the document's version, its accounting_ready_version")
	flags.StringVar(&readyAt, "ready-at", "", "when it is due, as RFC 3339 (default now)")
	flags.StringVar(&priority, "priority", "normal", "high, normal or low")
	a.createFlag(command)
	_ = command.MarkFlagRequired("version")
	return command
}

// showRequest shows what a request about a job did.
func (a *app) showRequest(r queue.Response) error {
	return a.emit(answers.Change{JobID: r.JobID, Result: string(r.Result), Reason: r.Reason}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s (job %s)\n", r.Result, r.JobID)
		return err
	})
}
