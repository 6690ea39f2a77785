package books

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/moving/importer"
)

func importNDJSONCommand(a *cli.App) *cobra.Command {
	var options importFlags
	command := &cobra.Command{
		Use:   "ndjson PATH…|-",
		Short: "Import documents in Daybook's own format, one JSON object a line",
		Long: "Imports documents in Daybook's own format, one JSON object a line (docs/import.md). A path is a file, or a folder or an\n" +
			"archive (.zip, .tar, .tar.gz, .tar.xz) with files that end in .ndjson or .jsonl; - reads standard input.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return importLines(c.Context(), a, options, "ndjson", importer.NDJSON, args, ".ndjson", ".jsonl")
		},
	}
	options.add(a, command)
	command.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedName() == "org" {
			return cli.Usagef("%s: each document of this format names its own organization, in the member org_id: leave "+
				"the flag out, and write the organization there", err)
		}
		return cli.UnknownFlag(c, err)
	})
	return command
}

// lineReader reads the documents of a file that has many.
type lineReader func(io.Reader) iter.Seq2[importer.LineDocument, error]

// importLines imports the files of a format that the arguments name; - is standard input, whose size
// is unknown.
func importLines(
	ctx context.Context, a *cli.App, options importFlags, format string, read lineReader, args []string, suffixes ...string,
) error {
	var sources *importer.Sources
	if len(args) != 1 || args[0] != "-" {
		var err error
		if sources, err = findSources(args, suffixes...); err != nil {
			return err
		}
	}
	db, err := a.Open(ctx, ImportWriters+1)
	if err != nil {
		return err
	}
	defer db.Close()
	var size int64
	if sources != nil {
		size = sources.Size()
	}
	bar := a.NewProgress("importing", size)
	bar.Percent = true
	i := NewImporter(db.Pool, func() {
		if sources == nil {
			bar.Add(1)
		}
	})
	options.apply(a, i, format, args...)
	err = i.Run(ctx, func(ctx context.Context, put func(ImportItem) error) error {
		if sources == nil {
			return feedLines(read(a.Stdin), "standard input", i, put)
		}
		sources.OnRead = func(n int) { bar.Add(int64(n)) }
		for source, err := range sources.All(ctx) {
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				i.fail(source.Name, err)
				continue
			}
			if err := feedLines(read(source.Reader), source.Name, i, put); err != nil {
				return err
			}
		}
		return nil
	})
	bar.End()
	return showImport(a, i.Result, err)
}

// feedLines hands over the documents of a file; what cannot be read is counted as failed.
func feedLines(
	documents iter.Seq2[importer.LineDocument, error], name string, i *Importer, put func(ImportItem) error,
) error {
	for d, err := range documents {
		if err != nil {
			i.fail(name, err)
			continue
		}
		source := fmt.Sprintf("%s: line %d: document %s", name, d.Line, d.Document.ID)
		if err := put(ImportItem{Source: source, Document: d.Document, File: name, line: d.Line}); err != nil {
			return err
		}
	}
	return nil
}
