package books

import (
	"cmp"
	"io"
	"iter"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/moving/importer"
)

func importHLedgerCommand(a *cli.App) *cobra.Command {
	var options importFlags
	var of importer.JournalOptions
	command := &cobra.Command{
		Use:   "hledger PATH…|-",
		Short: "Import journal entries and opening balances in hledger's journal format",
		Long: "Imports each transaction of a journal as a document of its own that posts its entries without a rule. Say why in its\n" +
			"description, or by --reason. A path is a file, or a folder or an archive (.zip, .tar, .tar.gz, .tar.xz) with files that\n" +
			"end in .journal or .hledger; - reads standard input.",
		Example: "  daybook import hledger --org acme opening.journal --reason \"opening balances 2026\"",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if of.Org == "" {
				return cli.Usagef("give --org: the journal does not say whose books it belongs to")
			}
			of.By = cmp.Or(of.By, cli.SystemUser())
			read := func(r io.Reader) iter.Seq2[importer.LineDocument, error] { return importer.HLedger(r, of) }
			return importLines(c.Context(), a, options, "hledger", read, args, ".journal", ".hledger")
		},
	}
	options.add(a, command)
	flags := command.Flags()
	flags.StringVar(&of.Org, "org", "", "the organization whose journal this is")
	flags.StringVar(&of.Reason, "reason", "", "why transactions without a description are posted")
	flags.StringVar(&of.By, "by", "", "who wrote the entries (default the system's user)")
	return command
}
