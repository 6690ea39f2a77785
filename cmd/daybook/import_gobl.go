package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/models"
)

// goblOwner says whose documents GOBL files are.
type goblOwner struct {
	org       string
	by        string
	idBy      string
	direction string
}

const (
	bySupplier = "supplier"
	byCountry  = "country"
	byDocument = "document"
	byFile     = "file"
)

func (o goblOwner) check() error {
	switch {
	case (o.org == "") == (o.by == ""):
		return usagef("give either --org or --org-by: GOBL files do not say which organization's books they belong to")
	case o.by != "" && o.by != bySupplier && o.by != byCountry:
		return usagef("--org-by %q: want supplier or country", o.by)
	case o.idBy != byDocument && o.idBy != byFile:
		return usagef("--id-by %q: want document or file", o.idBy)
	case o.direction != string(models.DirectionOut) && o.direction != string(models.DirectionIn):
		return usagef("--direction %q: want out (the organization issued the documents) or in (it received them)", o.direction)
	case o.by == bySupplier && o.direction == string(models.DirectionIn):
		return usagef("--org-by supplier is for documents that the organization issued: leave --direction in out, or give --org")
	}
	return nil
}

// assign gives a document to its organization.
func (o goblOwner) assign(in importer.Imported, source string) (importItem, error) {
	item := importItem{source: source, document: in.Document, file: source}
	d := &item.document
	if o.idBy == byFile {
		d.ID = filepath.ToSlash(source)
	}
	switch o.by {
	case bySupplier:
		d.OrgID, item.name = in.SupplierID, in.SupplierName
	case byCountry:
		d.OrgID = in.Regime
	default:
		d.OrgID = o.org
	}
	if d.OrgID == "" {
		return item, fmt.Errorf("%w: it names no %s; give --org", importer.ErrInvalid, o.by)
	}
	if o.direction == string(models.DirectionIn) {
		// The importer speaks for the supplier. What the supplier issued the customer received; money that came to the
		// supplier left the customer.
		if d.Direction == models.DirectionOut {
			d.Direction = models.DirectionIn
		} else {
			d.Direction = models.DirectionOut
		}
	}
	return item, importer.Validate(*d)
}

func importGOBLCommand(a *app) *cobra.Command {
	var owner goblOwner
	command := &cobra.Command{
		Use:   "gobl PATH…",
		Short: "Import GOBL invoices, credit notes and payments",
		Long: "Imports JSON files in the GOBL format (https://docs.gobl.org), bare or in envelopes; folders and archives\n" +
			"(.zip, .tar, .tar.gz, .tar.xz) are searched for files that end in .json. What causes no booking, such as an order, is skipped.",
		Example: "  daybook import gobl --org acme invoices/\n  daybook import gobl --org-by country examples/*/out/*.json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := owner.check(); err != nil {
				return err
			}
			sources, err := findSources(args, ".json")
			if err != nil {
				return err
			}
			db, err := a.open(c.Context(), importLanes+1)
			if err != nil {
				return err
			}
			defer db.close()
			bar := a.newProgress("importing", int64(sources.Files()))
			i := newDocumentImporter(db.Pool, func() { bar.add(1) })
			i.admit.remedy = "give each document an id of its own, or use --id-by file"
			i.create = a.create
			err = i.run(c.Context(), func(ctx context.Context, put func(importItem) error) error {
				return feedGOBL(ctx, sources, owner, i, put)
			})
			bar.end()
			return a.showImport(i.result, err)
		},
	}
	a.createFlag(command)
	flags := command.Flags()
	flags.StringVar(&owner.org, "org", "", "the organization whose documents these are")
	flags.StringVar(&owner.by, "org-by", "", "the organization by the file: supplier (its tax id) or country (its tax country)")
	flags.StringVar(&owner.idBy, "id-by", byDocument, "a document's id: document (its uuid, or number and supplier) or file (the file's path as given)")
	flags.StringVar(&owner.direction, "direction", string(models.DirectionOut), "out: the organization issued the documents; in: it received them")
	return command
}

// feedGOBL reads the files and hands over what they hold.
func feedGOBL(ctx context.Context, sources *importer.Sources, owner goblOwner, i *documentImporter, put func(importItem) error) error {
	for source, err := range sources.All(ctx) {
		var item importItem
		if err == nil {
			item, err = convertGOBL(source.Reader, source.Name, owner)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, importer.ErrNotBookable):
			i.skip(source.Name, err)
		case err != nil:
			i.fail(source.Name, err)
		default:
			if err := put(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// readGOBL reads a file, which messages call name.
func readGOBL(file, name string, owner goblOwner) (importItem, error) {
	opened, err := os.Open(file)
	if err != nil {
		return importItem{}, err
	}
	defer func() { _ = opened.Close() }()
	return convertGOBL(opened, name, owner)
}

// maxGOBLBytes bounds a file; a document is held in memory.
const maxGOBLBytes = 64 << 20

func convertGOBL(r io.Reader, name string, owner goblOwner) (importItem, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxGOBLBytes+1))
	if err != nil {
		return importItem{}, err
	}
	if len(data) > maxGOBLBytes {
		return importItem{}, fmt.Errorf("%w: the file has more than %d bytes; is it one document?", importer.ErrInvalid, maxGOBLBytes)
	}
	in, err := importer.GOBL(data)
	if err != nil {
		return importItem{}, err
	}
	return owner.assign(in, name)
}
