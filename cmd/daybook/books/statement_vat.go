package books

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/report"
	"github.com/daybook-dev/daybook/models"
)

func statementVATCommand(a *cli.App) *cobra.Command {
	var f spannedStatement
	command := &cobra.Command{
		Use:   "vat --org ORG [--period PERIOD | --year YEAR | --from DAY --to DAY]",
		Short: "Sum up taxes: as documents state them, as they are posted, and the difference",
		Long: "Sums up the taxes of a span of posting dates: as documents state them by direction, country, category, code and rate; as\n" +
			"they are posted to accounts with the role tax; and the difference, with the documents that cause it.",
		Example: "  daybook statement vat --org acme --period 2026-03",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.run(c, a, func(ctx context.Context, db *cli.Database, from, to models.Date) error {
				s, err := books.VATSummary(ctx, db.Pool, f.org, books.VATOptions{From: from, To: to})
				if err != nil {
					return err
				}
				answer := answers.VATSummaryOf(&s)
				if err := f.write(a, report.VATSummary(&s), answer); err != nil {
					return err
				}
				for _, d := range answer.Documents {
					a.Say("%s states %s %s of tax, and %s is posted.", d.DocumentID, d.Stated, d.Currency, d.Posted)
				}
				if s.More {
					a.Say("Others differ as well: --format json has the first 100; daybook.vat_differences lists all.")
				}
				return nil
			})
		},
	}
	f.add(command)
	return command
}
