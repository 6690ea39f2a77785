package books

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

func importCSVCommand(a *cli.App) *cobra.Command {
	var mappingFile, org string
	var show bool
	var options importFlags
	command := &cobra.Command{
		Use:   "csv --mapping FILE PATH…",
		Short: "Import documents from CSV files by a mapping",
		Long: "Imports the rows of CSV files, which a mapping file (https://github.com/daybook-dev/daybook/blob/main/docs/import.md) turns into documents. A path is a file, a folder or an\n" +
			"archive (.zip, .tar, .tar.gz, .tar.xz) with files that end in .csv; archives are read without unpacking them to disk.\n" +
			"A document with a row that is wrong is refused as a whole, and the others go on.",
		Example: "  daybook import csv --org shop --mapping mapping.yaml exports/\n  daybook import csv --org shop " +
			"--mapping mapping.yaml 2025.tar.xz\n  daybook import csv --org shop --mapping shopify-orders orders_export.csv\n" +
			"  daybook import csv --mapping stripe-balance --show-mapping > mapping.yaml",
		Args: func(c *cobra.Command, args []string) error {
			if show {
				return cobra.NoArgs(c, args)
			}
			return cobra.MinimumNArgs(1)(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if mappingFile == "" {
				return cli.Usagef("give --mapping FILE: the columns' meaning is described there (https://github.com/daybook-dev/daybook/blob/main/docs/import.md)")
			}
			source, shipped := importer.ShippedMapping(mappingFile)
			if !shipped {
				var err error
				source, err = a.ReadInput(mappingFile)
				if errors.Is(err, fs.ErrNotExist) {
					return cli.Usagef("--mapping %s: there is no such file, and no such mapping comes with Daybook, which has %s",
						mappingFile, phrase.Or(importer.ShippedMappings()))
				}
				if err != nil {
					return err
				}
			}
			if show {
				_, err := a.Stdout.Write(source)
				return err
			}
			mapping, err := importer.ParseMapping(source)
			if err != nil {
				return cli.Tagged(cli.ErrUsage, "%s: %v", mappingFile, err)
			}
			sources, err := findSources(args, ".csv")
			if err != nil {
				return err
			}
			return importCSV(c.Context(), a, options, mapping, org, args, sources)
		},
	}
	options.add(a, command)
	flags := command.Flags()
	flags.StringVar(&mappingFile, "mapping", "", "the file that says what the columns mean, or one that comes with Daybook: "+
		strings.Join(importer.ShippedMappings(), ", ")+"; required")
	flags.BoolVar(&show, "show-mapping", false, "print the mapping, to change it, and import nothing")
	flags.StringVar(&org, "org", "", "the organization whose documents these are; the mapping's if absent")
	return command
}

// importCSV reads the files twice: once to learn which rows belong together, before the database is
// touched, and once to import the documents.
func importCSV(ctx context.Context, a *cli.App, options importFlags, mapping *importer.Mapping, org string,
	files []string, sources *importer.Sources,
) error {
	reading := a.NewProgress("reading", sources.Size())
	reading.Percent = true
	sources.OnRead = func(n int) { reading.Add(int64(n)) }
	documents, err := importer.OpenCSV(ctx, mapping, org, sources.All)
	reading.End()
	if err != nil {
		return err
	}
	sources.OnRead = nil
	db, err := a.Open(ctx, ImportWriters+1)
	if err != nil {
		return err
	}
	defer db.Close()
	bar := a.NewProgress("importing", int64(documents.Count()))
	i := NewImporter(db.Pool, func() { bar.Add(1) })
	options.apply(a, i, "csv", files...)
	i.Result.SkippedRows = documents.Skipped()
	err = i.Run(ctx, func(ctx context.Context, put func(ImportItem) error) error {
		return feedCSV(ctx, documents, i, put)
	})
	bar.End()
	return showImport(a, i.Result, err)
}

// feedCSV hands over the documents; those that are refused are counted as failed.
func feedCSV(ctx context.Context, documents *importer.CSV, i *Importer, put func(ImportItem) error) error {
	for d, err := range documents.Documents(ctx) {
		switch {
		case errors.Is(err, importer.ErrNotBookable):
			i.skip(d.Source, err)
		case errors.Is(err, importer.ErrInvalid):
			i.fail(d.Source, err)
		case err != nil:
			return fmt.Errorf("%s: %w", d.Source, err)
		default:
			if err := put(ImportItem{
				Source: d.Source + ": document " + d.Document.ID, Document: d.Document,
				File: d.Source,
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// findSources finds the files that end in one of the suffixes.
func findSources(paths []string, suffixes ...string) (*importer.Sources, error) {
	sources, err := importer.FindSources(paths, suffixes...)
	if errors.Is(err, importer.ErrNoFiles) {
		return nil, cli.Usagef("%v", err)
	}
	return sources, err
}
