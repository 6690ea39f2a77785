package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/moving/export"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// exportFormats names export.Formats for people.
const exportFormats = "hledger, ledger, beancount or csv"

func exportCommand(a *app) *cobra.Command {
	var options export.Options
	var filter ledgerdb.ExportFilter
	var format, from, to, output string
	command := &cobra.Command{
		Use:   "export --format hledger|ledger|beancount|csv --org ORG|--all-orgs",
		Short: "Write the ledger as a journal for hledger, Ledger or Beancount, or as CSV",
		Long: "Writes what was posted in the order of posting dates: the same bytes for the same ledger, with exact amounts. With\n" +
			"--all-orgs each organization has accounts of its own in the one file. docs/export.md describes the formats.",
		Example: "  daybook export --format hledger --org shop --assertions -o shop.journal\n  hledger -f shop.journal check -s ordereddates payees balancednoautoconversion",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			options.Format = export.Format(format)
			switch {
			case format == "":
				return usagef("give --format: %s", exportFormats)
			case !slices.Contains(export.Formats(), options.Format):
				return usagef("--format %q: want %s", format, exportFormats)
			case (filter.OrgID == "") != options.Organizations:
				return usagef("give either --org or --all-orgs")
			}
			var err error
			if filter.From, err = parseDay("--from", from); err != nil {
				return err
			}
			if filter.To, err = parseDay("--to", to); err != nil {
				return err
			}
			if err := options.Check(filter); err != nil {
				return tagged(errUsage, "%v", err)
			}
			return a.export(c.Context(), filter, options, output)
		},
	}
	flags := command.Flags()
	flags.StringVar(&format, "format", "", exportFormats+"; required")
	flags.StringVar(&filter.OrgID, "org", "", "the organization")
	flags.BoolVar(&options.Organizations, "all-orgs", false, "all organizations in one file")
	flags.StringVar(&from, "from", "", "the first posting date, YYYY-MM-DD (default the ledger's first)")
	flags.StringVar(&to, "to", "", "the last posting date, YYYY-MM-DD (default the ledger's last)")
	flags.BoolVar(&options.Assertions, "assertions", false, "add the balances as the database sums them up, for the reading program to check")
	flags.StringVarP(&output, "output", "o", "", "the file to write (default standard output)")
	return command
}

func (a *app) export(ctx context.Context, filter ledgerdb.ExportFilter, options export.Options, output string) error {
	db, err := a.open(ctx, 1)
	if err != nil {
		return err
	}
	defer db.close()
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
		err = write(a.stdout)
	} else {
		err = writeFile(output, write)
	}
	if err != nil {
		return err
	}
	a.say("Exported %s and %s; %s had no entries.", phrase.Plural(counts.Impacts, "impact", "impacts"),
		phrase.Plural(counts.Entries, "entry", "entries"), phrase.Plural(counts.Empty, "impact", "impacts"))
	return nil
}

// unfinishedFor is for how long a file that is being written may not have changed. After that its run was killed.
const unfinishedFor = 24 * time.Hour

// writeFile writes a file beside the one that is wanted, readable by its owner, and puts it in that one's place when it is
// complete. What is there and is no file, such as a pipe or /dev/null, is written to. What runs have left that were killed is removed.
func writeFile(path string, write func(io.Writer) error) error {
	if there, err := os.Stat(path); err == nil && !there.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	beside := "." + filepath.Base(path) + ".*.unfinished"
	f, err := os.CreateTemp(filepath.Dir(path), beside)
	if err != nil {
		return err
	}
	others, _ := filepath.Glob(filepath.Join(filepath.Dir(path), beside)) // a name that is no pattern has none that are found
	for _, name := range others {
		if info, err := os.Lstat(name); err == nil && time.Since(info.ModTime()) > unfinishedFor {
			_ = os.Remove(name)
		}
	}
	if err := errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
