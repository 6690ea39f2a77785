package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/minor"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

func accountingElsewhereCommand(a *app) *cobra.Command {
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
				return usagef("--post %q: want difference, full or nothing", post)
			}
			db, err := a.open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.close()
			if post != "" {
				response, err := ledgerdb.DecideElsewhere(c.Context(), db.Pool, args[0], args[1], post)
				if err != nil {
					return err
				}
				return a.showRequest(queue.Response{JobID: response.JobID, Result: queue.Result(response.Result)})
			}
			known, err := db.PostedElsewhere(c.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			shown, err := answers.PostedElsewhereOf(&known)
			if err != nil {
				return err
			}
			return a.emit(shown, func(w io.Writer) error {
				return append(fields{{"organization", known.OrgID}, {"document", known.DocumentID}}, elsewhereFields(&known)...).print(w)
			})
		},
	}
	command.Flags().StringVar(&post, "post", "", "decide: difference, full or nothing")
	return command
}

// elsewhereFields say what another system has posted of a document.
func elsewhereFields(e *models.PostedElsewhere) fields {
	next := map[models.NextPosting]string{
		models.NextDifference: "a newer version posts the difference", models.NextWait: "a newer version waits for a person",
		models.NextFull: "it was taken back there: Daybook posts the document in full",
	}[e.Next]
	lines := fields{
		{"elsewhere", fmt.Sprintf("version %d is posted by %s, on %s", e.DocumentVersion, e.System, e.PostedOn)},
		{"", next},
	}
	if e.LeftVersion != nil {
		lines = append(lines, [2]string{"", fmt.Sprintf("up to version %d a person decided that Daybook posts nothing", *e.LeftVersion)})
	}
	var entries []models.EntryElsewhere
	if e.Entries == nil || json.Unmarshal(e.Entries, &entries) != nil {
		return append(lines, [2]string{"", "its entries there are not known"})
	}
	for _, one := range entries {
		lines = append(lines, [2]string{"", fmt.Sprintf("%s %s %s %s", one.Side, one.Account, minor.Decimal64(one.Amount, one.Currency), one.Currency)})
	}
	return lines
}
