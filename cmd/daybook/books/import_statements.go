package books

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/moving/importer"
)

// statementFormat is one in which banks give statements.
type statementFormat struct {
	use, short, long string
	suffixes         []string
	read             func(io.Reader) iter.Seq2[importer.Movement, error]
}

// The formats in which banks give statements.
var (
	camt = statementFormat{
		use: "camt", short: "Import bank statements in camt.053 (ISO 20022)", suffixes: []string{".xml"}, read: importer.Camt,
		long: "Imports the booked entries of bank statements in camt.053, any version, as payments and refunds.",
	}
	mt940 = statementFormat{
		use: "mt940", short: "Import bank statements in MT940 (SWIFT)", suffixes: []string{".sta", ".mt940", ".940", ".txt"},
		read: importer.MT940,
		long: "Imports the entries of bank statements in MT940 as payments and refunds.",
	}
)

func importStatementsCommand(a *cli.App, format statementFormat) *cobra.Command {
	var org string
	var options importFlags
	command := &cobra.Command{
		Use:   format.use + " --org ORG PATH…",
		Short: format.short,
		Long: format.long + " A statement whose balances\ncontradict its entries fails, with the difference. An entry has the same id " +
			"in every statement, so statements may\noverlap and be imported again.",
		Example: "  daybook import " + format.use + " --org acme statements/\n  daybook import " + format.use +
			" --org acme --dry-run january" + format.suffixes[0],
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if org == "" {
				return cli.Usagef("give --org: a statement does not say which organization's books it belongs to")
			}
			sources, err := findSources(args, format.suffixes...)
			if err != nil {
				return err
			}
			return importSources(c.Context(), a, options, format.use, args, sources,
				func(ctx context.Context, r io.Reader, name string, i *Importer, put func(ImportItem) error) error {
					return feedStatements(ctx, format.read(r), name, org, i, put)
				})
		},
	}
	options.add(a, command)
	command.Flags().StringVar(&org, "org", "", "the organization whose account it is; required")
	return command
}

// feedStatements hands over the movements of a file's statements.
func feedStatements(ctx context.Context, movements iter.Seq2[importer.Movement, error], name, org string, i *Importer,
	put func(ImportItem) error,
) error {
	for m, err := range movements {
		place := name
		if m.Place != "" {
			place += ": " + m.Place
		}
		if err == nil {
			m.Document.OrgID = org
			err = importer.Validate(m.Document)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, importer.ErrNotBookable):
			i.skip(place, err)
		case err != nil:
			i.fail(place, err)
		default:
			if err := put(ImportItem{Source: place, Document: m.Document, File: place}); err != nil {
				return err
			}
		}
	}
	return nil
}
