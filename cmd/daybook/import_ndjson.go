package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/importer"
)

func importNDJSONCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "ndjson FILE|-",
		Short: "Import documents in Daybook's own format, one JSON object a line",
		Long:  "Imports documents in Daybook's own format, one JSON object a line (docs/import.md); - reads standard input.",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			input, name, size, err := a.openInput(args[0])
			if err != nil {
				return err
			}
			defer func() { _ = input.Close() }()
			db, err := a.open(c.Context(), importLanes+1)
			if err != nil {
				return err
			}
			defer db.close()
			bar := a.newProgress("importing", size)
			bar.percent = true
			watched := &watchedReader{inner: input, bar: bar}
			if size == 0 {
				watched.bar = nil
			}
			i := newDocumentImporter(db.Pool, func() {
				if size == 0 {
					bar.add(1)
				}
			})
			err = i.run(c.Context(), func(_ context.Context, put func(importItem) error) error {
				return feedNDJSON(watched, name, i, put)
			})
			bar.end()
			if err != nil {
				return err
			}
			return a.showImport(i.result)
		},
	}
}

// openInput opens a file, or standard input for "-", whose size is unknown.
func (a *app) openInput(path string) (input io.ReadCloser, name string, size int64, err error) {
	if path == "-" {
		return io.NopCloser(a.stdin), "standard input", 0, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, "", 0, err
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	return f, path, size, nil
}

// feedNDJSON hands over the documents of a file; lines that cannot be read are counted as failed.
func feedNDJSON(r io.Reader, name string, i *documentImporter, put func(importItem) error) error {
	for document, err := range importer.NDJSON(r) {
		if err != nil {
			i.fail(name, err)
			continue
		}
		if err := put(importItem{source: name + ": document " + document.ID, document: document}); err != nil {
			return err
		}
	}
	return nil
}

// watchedReader moves a bar by what is read; without a bar it only reads.
type watchedReader struct {
	inner io.Reader
	bar   *progress
}

// Read implements io.Reader.
func (w *watchedReader) Read(p []byte) (int, error) {
	n, err := w.inner.Read(p)
	if w.bar != nil {
		w.bar.add(int64(n))
	}
	return n, err
}
