package books

import (
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/report"
)

func statementVATCommand(a *cli.App) *cobra.Command {
	var f statementFile
	var span statementSpan
	var org string
	command := &cobra.Command{
		Use:   "vat --org ORG [--period PERIOD | --year YEAR | --from DAY --to DAY]",
		Short: "Sum up taxes: as documents state them, as they are posted, and the difference",
		Long: "Sums up the taxes of a span of posting dates: as documents state them by direction, country, category, code and rate; as\n" +
			"they are posted to accounts with the role tax; and the difference, with the documents that cause it.",
		Example: "  daybook statement vat --org acme --period 2026-03",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			from, to, err := span.parse()
			if err != nil {
				return err
			}
			if err := f.check(); err != nil {
				return err
			}
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			s, err := books.VATSummary(c.Context(), db.Pool, org, from, to)
			if err != nil {
				return err
			}
			if err := f.write(a, report.VATSummary(&s), answers.VATSummaryOf(&s)); err != nil {
				return err
			}
			for _, d := range answers.VATSummaryOf(&s).Documents {
				a.Say("%s states %s %s of tax, and %s is posted.", d.DocumentID, d.Stated.Decimal, d.Currency, d.Posted.Decimal)
			}
			if s.More {
				a.Say("Others differ as well: --format json has the first 100; daybook.vat_differences lists all.")
			}
			return nil
		},
	}
	orgFlag(command, &org)
	span.add(command.Flags())
	f.add(command.Flags())
	return command
}
