package work

import (
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/queue"
)

func accountingRepostCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "repost ORG DOCUMENT",
		Short: "Ask for a document to be reversed and posted anew",
		Long: "Asks for a document to be reversed and posted again by the active rules, even if neither it nor the rules changed.\n" +
			"Each repost is a new epoch, which `daybook explain` shows.",
		Args: cobra.ExactArgs(2),
		RunE: requestForDocument(a, queue.RepostAccountingJob),
	}
}
