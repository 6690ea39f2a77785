package main

import (
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/queue"
)

func accountingRepostCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "repost ORG DOCUMENT",
		Short: "Ask for a document to be reversed and posted anew",
		Long: "Asks for a document to be reversed and posted again by the active rules, even if neither it nor the rules changed.\n" +
			"Each repost is a new epoch, which `daybook explain` shows.",
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			db, err := a.open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.close()
			response, err := queue.RepostAccountingJob(c.Context(), db.Pool, queue.Document{OrgID: args[0], ID: args[1]})
			if err != nil {
				return err
			}
			return a.showRequest(args[0], args[1], response)
		},
	}
}
