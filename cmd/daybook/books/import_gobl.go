package books

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/models"
)

// GOBLOwner says whose documents GOBL files are.
type GOBLOwner struct {
	Org       string
	By        string
	IdBy      string
	Direction string
}

const (
	bySupplier = "supplier"
	ByCountry  = "country"
	byDocument = "document"
	ByFile     = "file"
)

func (o GOBLOwner) check() error {
	switch {
	case (o.Org == "") == (o.By == ""):
		return cli.Usagef("give either --org or --org-by: GOBL files do not say which organization's books they belong to")
	case o.By != "" && o.By != bySupplier && o.By != ByCountry:
		return cli.Usagef("--org-by %q: want supplier or country", o.By)
	case o.IdBy != byDocument && o.IdBy != ByFile:
		return cli.Usagef("--id-by %q: want document or file", o.IdBy)
	case o.Direction != string(models.DirectionOut) && o.Direction != string(models.DirectionIn):
		return cli.Usagef("--direction %q: want out (the organization issued the documents) or in (it received them)",
			o.Direction)
	case o.By == bySupplier && o.Direction == string(models.DirectionIn):
		return cli.Usagef("--org-by supplier is for documents that the organization issued: leave --direction in out, or " +
			"give --org")
	}
	return nil
}

// assign gives a document to its organization.
func (o GOBLOwner) assign(in importer.Imported, source string) (ImportItem, error) {
	item := ImportItem{Source: source, Document: in.Document, File: source}
	d := &item.Document
	if o.IdBy == ByFile {
		d.ID = filepath.ToSlash(source)
	}
	switch o.By {
	case bySupplier:
		d.OrgID, item.name = in.SupplierID, in.SupplierName
	case ByCountry:
		d.OrgID = in.Regime
	default:
		d.OrgID = o.Org
	}
	if d.OrgID == "" {
		return item, fmt.Errorf("%w: it names no %s; give --org", importer.ErrInvalid, o.By)
	}
	if o.Direction == string(models.DirectionIn) {
		// The importer speaks for the supplier. What the supplier issued the customer received; money
		// that came to the supplier left the customer.
		if d.Direction == models.DirectionOut {
			d.Direction = models.DirectionIn
		} else {
			d.Direction = models.DirectionOut
		}
	}
	return item, importer.Validate(*d)
}

func importGOBLCommand(a *cli.App) *cobra.Command {
	var owner GOBLOwner
	command := &cobra.Command{
		Use:   "gobl PATH…",
		Short: "Import GOBL invoices, credit notes and payments",
		Long: "Imports JSON files in the GOBL format (https://docs.gobl.org), bare or in envelopes; folders and archives\n" +
			"(.zip, .tar, .tar.gz, .tar.xz) are searched for files that end in .json. What causes no booking, such as an " +
			"order, is skipped.",
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
			db, err := a.Open(c.Context(), ImportWriters+1)
			if err != nil {
				return err
			}
			defer db.Close()
			bar := a.NewProgress("importing", int64(sources.Files()))
			i := NewImporter(db.Pool, func() { bar.Add(1) })
			i.admit.remedy = "give each document an id of its own, or use --id-by file"
			i.Create = a.Create
			err = i.Run(c.Context(), func(ctx context.Context, put func(ImportItem) error) error {
				return feedGOBL(ctx, sources, owner, i, put)
			})
			bar.End()
			return showImport(a, i.Result, err)
		},
	}
	a.CreateFlag(command)
	flags := command.Flags()
	flags.StringVar(&owner.Org, "org", "", "the organization whose documents these are")
	flags.StringVar(&owner.By, "org-by", "",
		"the organization by the file: supplier (its tax id) or country (its tax country)")
	flags.StringVar(&owner.IdBy, "id-by", byDocument,
		"a document's id: document (its uuid, or number and supplier) or file (the file's path as given)")
	flags.StringVar(&owner.Direction, "direction", string(models.DirectionOut),
		"out: the organization issued the documents; in: it received them")
	return command
}

// feedGOBL reads the files and hands over what they hold.
func feedGOBL(ctx context.Context, sources *importer.Sources, owner GOBLOwner, i *Importer,
	put func(ImportItem) error,
) error {
	for source, err := range sources.All(ctx) {
		var item ImportItem
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

// ReadGOBL reads a file, which messages call name.
func ReadGOBL(file, name string, owner GOBLOwner) (ImportItem, error) {
	opened, err := os.Open(file)
	if err != nil {
		return ImportItem{}, err
	}
	defer func() { _ = opened.Close() }()
	return convertGOBL(opened, name, owner)
}

// maxGOBLBytes bounds a file; a document is held in memory.
const maxGOBLBytes = 64 << 20

func convertGOBL(r io.Reader, name string, owner GOBLOwner) (ImportItem, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxGOBLBytes+1))
	if err != nil {
		return ImportItem{}, err
	}
	if len(data) > maxGOBLBytes {
		return ImportItem{}, fmt.Errorf("%w: the file has more than %d bytes; is it one document?", importer.ErrInvalid,
			maxGOBLBytes)
	}
	in, err := importer.GOBL(data)
	if err != nil {
		return ImportItem{}, err
	}
	return owner.assign(in, name)
}
