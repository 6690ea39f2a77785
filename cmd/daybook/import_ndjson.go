package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/daybook-dev/daybook/internal/moving/importer"
)

func importNDJSONCommand(a *app) *cobra.Command {
	command := &cobra.Command{
		Use:   "ndjson PATH…|-",
		Short: "Import documents in Daybook's own format, one JSON object a line",
		Long: "Imports documents in Daybook's own format, one JSON object a line (docs/import.md). A path is a file, or a folder or an\n" +
			"archive (.zip, .tar, .tar.gz, .tar.xz) with files that end in .ndjson or .jsonl; - reads standard input.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == "-" {
				return a.importNDJSON(c.Context(), nil)
			}
			sources, err := findSources(args, ".ndjson", ".jsonl")
			if err != nil {
				return err
			}
			return a.importNDJSON(c.Context(), sources)
		},
	}
	a.createFlag(command)
	command.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedName() == "org" {
			return usagef("%s: each document of this format names its own organization, in the member org_id: leave the flag out, and write the organization there", err)
		}
		return unknownFlag(c, err)
	})
	return command
}

// importNDJSON imports the sources; nil is standard input, whose size is unknown.
func (a *app) importNDJSON(ctx context.Context, sources *importer.Sources) error {
	db, err := a.open(ctx, importLanes+1)
	if err != nil {
		return err
	}
	defer db.close()
	var size int64
	if sources != nil {
		size = sources.Size()
	}
	bar := a.newProgress("importing", size)
	bar.percent = true
	i := newDocumentImporter(db.Pool, func() {
		if sources == nil {
			bar.add(1)
		}
	})
	i.create = a.create
	err = i.run(ctx, func(ctx context.Context, put func(importItem) error) error {
		if sources == nil {
			return feedNDJSON(a.stdin, "standard input", i, put)
		}
		sources.OnRead = func(n int) { bar.add(int64(n)) }
		for source, err := range sources.All(ctx) {
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				i.fail(source.Name, err)
				continue
			}
			if err := feedNDJSON(source.Reader, source.Name, i, put); err != nil {
				return err
			}
		}
		return nil
	})
	bar.end()
	return a.showImport(i.result, err)
}

// feedNDJSON hands over the documents of a file; lines that cannot be read are counted as failed.
func feedNDJSON(r io.Reader, name string, i *documentImporter, put func(importItem) error) error {
	for d, err := range importer.NDJSON(r) {
		if err != nil {
			i.fail(name, err)
			continue
		}
		source := fmt.Sprintf("%s: line %d: document %s", name, d.Line, d.Document.ID)
		if err := put(importItem{source: source, document: d.Document, file: name, line: d.Line}); err != nil {
			return err
		}
	}
	return nil
}
