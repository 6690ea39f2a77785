package books

import (
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/moving/importer"
)

// lineReader reads the documents of a file that has many.
type lineReader func(io.Reader) iter.Seq2[importer.LineDocument, error]

// importLines imports the files of a format that the arguments name; - is standard input.
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
	return importSources(ctx, a, options, format, args, sources,
		func(_ context.Context, r io.Reader, name string, i *Importer, put func(ImportItem) error) error {
			return feedLines(read(r), name, i, put)
		})
}

// sourceFeed hands over the documents of one file; what cannot be read is counted as failed.
type sourceFeed func(ctx context.Context, r io.Reader, name string, i *Importer, put func(ImportItem) error) error

// importSources imports files that have many documents each; nil is standard input, whose size is
// unknown.
func importSources(
	ctx context.Context, a *cli.App, options importFlags, format string, args []string, sources *importer.Sources, feed sourceFeed,
) error {
	db, err := a.Open(ctx, ImportWriters+1)
	if err != nil {
		return err
	}
	defer db.Close()
	if options.check != nil {
		if err := options.check(ctx, db.Pool); err != nil {
			return err
		}
	}
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
			return feed(ctx, a.Stdin, "standard input", i, put)
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
			if err := feed(ctx, source.Reader, source.Name, i, put); err != nil {
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
		if err := put(ImportItem{Source: source, Document: d.Document, File: name, line: d.Line, standsFor: d.StandsFor}); err != nil {
			return err
		}
	}
	return nil
}
