package books

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/models"
)

func yearEndCommand(a *cli.App) *cobra.Command {
	var org string
	var year int
	var options books.CloseYearOptions
	command := &cobra.Command{
		Use:   "year-end --org ORG --year YEAR --to ACCOUNT | --undo",
		Short: "Move a year's income and expense to an account of equity, or take that back",
		Long: "Writes the journal that moves what was earned and spent in a calendar year to an account of equity, on the year's last\n" +
			"day: the document year-end:YEAR. A worker posts it. The income statement leaves it out. A second call writes what has\n" +
			"changed since. --undo deletes the document, and a worker reverses what is posted of it. The last day must be open.",
		Example: "  daybook year-end --org acme --year 2025 --to 2900\n  daybook year-end --org acme --year 2025 --undo",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if (options.To == "") != options.Undo {
				return cli.Usagef("give either --to or --undo")
			}
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			done, err := books.CloseYear(c.Context(), db.Pool, org, year, options)
			if err != nil {
				return err
			}
			return a.Emit(answers.YearEndOf(&done), func(w io.Writer) error { return printYearEnd(w, &done) })
		},
	}
	orgFlag(command, &org)
	flags := command.Flags()
	flags.IntVar(&year, "year", 0, "the year, such as 2025")
	_ = command.MarkFlagRequired("year")
	flags.StringVar(&options.To, "to", "", "the account of equity")
	flags.BoolVar(&options.Undo, "undo", false, "take the close back")
	return command
}

// printYearEnd says what a year-end close came to.
func printYearEnd(w io.Writer, done *models.YearEnd) error {
	says := map[models.YearEndResult]string{
		models.YearEndWritten: "written; a worker posts it", models.YearEndUnchanged: "unchanged",
		models.YearEndDeleted: "deleted; a worker reverses what is posted of it", models.YearEndNothing: "nothing to do",
	}[done.Result]
	if _, err := fmt.Fprintf(w, "%s: %s\n", done.DocumentID, says); err != nil {
		return err
	}
	for _, m := range answers.YearEndOf(done).Moved {
		if _, err := fmt.Fprintf(w, "  result %s %s\n", m.Amount, m.Currency); err != nil {
			return err
		}
	}
	return nil
}
