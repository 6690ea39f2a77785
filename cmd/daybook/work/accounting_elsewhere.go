package work

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/queue"
)

func accountingElsewhereCommand(a *cli.App) *cobra.Command {
	var post string
	command := &cobra.Command{
		Use:   "elsewhere ORG DOCUMENT [--post difference|full|nothing]",
		Short: "Show what another system has posted of a document, or decide what Daybook posts of it",
		Long: "Shows what another system has posted of a document. With --post a person decides, and the document's job is tried again:\n" +
			"difference posts the document less what is posted elsewhere; full posts all of it, because the other system has taken its\n" +
			"posting back; nothing leaves the version that is asked for to the other system.",
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if post != "" && !slices.Contains([]string{"difference", "full", "nothing"}, post) {
				return cli.Usagef("--post %q: want difference, full or nothing", post)
			}
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			if post != "" {
				response, err := ledgerdb.DecideElsewhere(c.Context(), db.Pool, args[0], args[1], post)
				if err != nil {
					return err
				}
				return showRequest(a, queue.Response{JobID: response.JobID, Result: queue.Result(response.Result)})
			}
			known, err := db.PostedElsewhere(c.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			shown, err := answers.PostedElsewhereOf(&known)
			if err != nil {
				return err
			}
			return a.Emit(shown, func(w io.Writer) error {
				return append(cli.Fields{{"organization", known.OrgID}, {"document", known.DocumentID}},
					cli.ElsewhereFields(&known)...).Print(w)
			})
		},
	}
	command.Flags().StringVar(&post, "post", "", "decide: difference, full or nothing")
	return command
}
