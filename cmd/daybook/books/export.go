package books

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/moving/export"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// exportFormats names export.Formats for people.
const exportFormats = "hledger, ledger, beancount or csv"

func exportCommand(a *cli.App) *cobra.Command {
	var options export.Options
	var filter ledgerdb.ExportFilter
	var format, from, to, output string
	command := &cobra.Command{
		Use:   "export --format hledger|ledger|beancount|csv --org ORG|--all-orgs",
		Short: "Write the ledger as a journal for hledger, Ledger or Beancount, or as CSV",
		Long: "Writes what was posted in the order of posting dates: the same bytes for the same ledger, with exact amounts. With\n" +
			"--all-orgs each organization has accounts of its own in the one file. https://github.com/daybook-dev/daybook/blob/main/docs/export.md describes the formats.",
		Example: "  daybook export --format hledger --org shop --assertions -o shop.journal\n  hledger -f shop.journal " +
			"check -s ordereddates payees balancednoautoconversion",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			options.Format = export.Format(format)
			switch {
			case format == "":
				return cli.Usagef("give --format: %s", exportFormats)
			case !slices.Contains(export.Formats(), options.Format):
				return cli.Usagef("--format %q: want %s", format, exportFormats)
			case (filter.OrgID == "") != options.Organizations:
				return cli.Usagef("give either --org or --all-orgs")
			}
			var err error
			if filter.From, err = parseDay("--from", from); err != nil {
				return err
			}
			if filter.To, err = parseDay("--to", to); err != nil {
				return err
			}
			if err := options.Check(filter); err != nil {
				return cli.Tagged(cli.ErrUsage, "%v", err)
			}
			return exportLedger(c.Context(), a, filter, options, output)
		},
	}
	flags := command.Flags()
	flags.StringVar(&format, "format", "", exportFormats+"; required")
	flags.StringVar(&filter.OrgID, "org", "", "the organization")
	flags.BoolVar(&options.Organizations, "all-orgs", false, "all organizations in one file")
	flags.StringVar(&from, "from", "", "the first posting date, YYYY-MM-DD (default the ledger's first)")
	flags.StringVar(&to, "to", "", "the last posting date, YYYY-MM-DD (default the ledger's last)")
	flags.BoolVar(&options.Assertions, "assertions", false,
		"add the balances as the database sums them up, for the reading program to check")
	flags.StringVarP(&output, "output", "o", "", "the file to write (default standard output)")
	return command
}

func exportLedger(ctx context.Context, a *cli.App, filter ledgerdb.ExportFilter, options export.Options,
	output string,
) error {
	db, err := a.Open(ctx, 1)
	if err != nil {
		return err
	}
	defer db.Close()
	if filter.OrgID != "" {
		if _, err := db.Organization(ctx, filter.OrgID); err != nil {
			return err
		}
	}
	var counts export.Counts
	write := func(w io.Writer) error {
		return ledgerdb.ReadExport(ctx, db.Pool, filter, func(r *ledgerdb.ExportReader) error {
			var err error
			counts, err = export.Write(ctx, r, w, options)
			return err
		})
	}
	if output == "" || output == "-" {
		err = write(a.Stdout)
	} else {
		err = cli.WriteFile(output, write)
	}
	if err != nil {
		return err
	}
	a.Say("Exported %s and %s; %s had no entries.", phrase.Plural(counts.Impacts, "impact", "impacts"),
		phrase.Plural(counts.Entries, "entry", "entries"), phrase.Plural(counts.Empty, "impact", "impacts"))
	return nil
}
