package books

import (
	"bytes"
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

// FileFormat is one of those formats in which a file is one document.
type FileFormat struct {
	use, short, long, example string
	suffix                    string
	// convert returns what a file holds. It may read behind the first document's end.
	convert func(io.Reader) (importer.Imported, error)
}

// The formats in which a file is one document.
var (
	GOBL = FileFormat{
		use: "gobl", short: "Import GOBL invoices, credit notes and payments", suffix: ".json",
		long: "Imports JSON files in the GOBL format (https://docs.gobl.org), bare or in envelopes. What causes no booking, such " +
			"as an\norder, is skipped.",
		example: "  daybook import gobl --org acme invoices/\n  daybook import gobl --org-by country examples/*/out/*.json",
		convert: inMemory(importer.GOBL),
	}
	ubl = FileFormat{
		use: "ubl", short: "Import invoices and credit notes in UBL 2.1 (EN 16931, Peppol BIS 3, XRechnung, ZATCA)", suffix: ".xml",
		long:    "Imports XML files of UBL 2.1. A document whose totals do not follow from its parts fails, with the difference.",
		example: "  daybook import ubl --org acme outgoing/\n  daybook import ubl --org acme --direction in bills.zip",
		convert: importer.UBL,
	}
	cii = FileFormat{
		use: "cii", short: "Import invoices and credit notes in UN/CEFACT CII (EN 16931, XRechnung)", suffix: ".xml",
		long:    "Imports XML files of UN/CEFACT's Cross Industry Invoice, as import ubl does.",
		example: "  daybook import cii --org acme outgoing/",
		convert: importer.CII,
	}
	facturX = FileFormat{
		use: "facturx", short: "Import the invoices in PDFs of Factur-X and ZUGFeRD 2", suffix: ".pdf",
		long: "Imports the electronic invoice that a PDF of Factur-X or ZUGFeRD 2 has in it, as import cii does. What the PDF shows\n" +
			"is not looked at.",
		example: "  daybook import facturx --org acme --direction in bills/",
		convert: inMemory(func(data []byte) (importer.Imported, error) {
			return importer.FacturX(bytes.NewReader(data), int64(len(data)))
		}),
	}
)

// inMemory makes a reader of files of a reader of bytes.
func inMemory(convert func([]byte) (importer.Imported, error)) func(io.Reader) (importer.Imported, error) {
	return func(r io.Reader) (importer.Imported, error) {
		data, err := io.ReadAll(r)
		if err != nil {
			return importer.Imported{}, err
		}
		return convert(data)
	}
}

// FileOwner says whose documents files are.
type FileOwner struct {
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

func (o FileOwner) check() error {
	switch {
	case (o.Org == "") == (o.By == ""):
		return cli.Usagef("give either --org or --org-by: the files do not say which organization's books they belong to")
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
func (o FileOwner) assign(in importer.Imported, source string) (ImportItem, error) {
	item := ImportItem{Source: source, File: source}
	org := o.Org
	switch o.By {
	case bySupplier:
		org, item.name = in.SupplierID, in.SupplierName
	case ByCountry:
		org = in.Regime
	}
	if item.Document = in.For(org, models.Direction(o.Direction)); org == "" {
		return item, fmt.Errorf("%w: it names no %s; give --org", importer.ErrInvalid, o.By)
	}
	if o.IdBy == ByFile {
		item.Document.ID = filepath.ToSlash(source)
	}
	return item, importer.Validate(item.Document)
}

func importFilesCommand(a *cli.App, format FileFormat) *cobra.Command {
	var owner FileOwner
	var options importFlags
	command := &cobra.Command{
		Use:     format.use + " PATH…",
		Short:   format.short,
		Long:    format.long + "\nFolders and archives (.zip, .tar, .tar.gz, .tar.xz) are searched for files that end in " + format.suffix + ".",
		Example: format.example,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := owner.check(); err != nil {
				return err
			}
			sources, err := findSources(args, format.suffix)
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
			options.apply(a, i, format.use, args...)
			err = i.Run(c.Context(), func(ctx context.Context, put func(ImportItem) error) error {
				return format.feed(ctx, sources, owner, i, put)
			})
			bar.End()
			return showImport(a, i.Result, err)
		},
	}
	options.add(a, command)
	flags := command.Flags()
	flags.StringVar(&owner.Org, "org", "", "the organization whose documents these are")
	flags.StringVar(&owner.By, "org-by", "",
		"the organization by the file: supplier (its tax id) or country (its tax country)")
	flags.StringVar(&owner.IdBy, "id-by", byDocument,
		"a document's id: document (what it states: a uuid, or number and supplier) or file (the file's path as given)")
	flags.StringVar(&owner.Direction, "direction", string(models.DirectionOut),
		"out: the organization issued the documents; in: it received them")
	return command
}

// feed reads the files and hands over what they hold.
func (f FileFormat) feed(ctx context.Context, sources *importer.Sources, owner FileOwner, i *Importer,
	put func(ImportItem) error,
) error {
	for source, err := range sources.All(ctx) {
		var item ImportItem
		if err == nil {
			item, err = f.read(source.Reader, source.Name, owner)
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

// ReadFile reads a file, which messages call name.
func (f FileFormat) ReadFile(file, name string, owner FileOwner) (ImportItem, error) {
	opened, err := os.Open(file)
	if err != nil {
		return ImportItem{}, err
	}
	defer func() { _ = opened.Close() }()
	return f.read(opened, name, owner)
}

func (f FileFormat) read(r io.Reader, name string, owner FileOwner) (ImportItem, error) {
	in, err := f.convert(&boundedReader{inner: r, left: maxFileBytes})
	if err != nil {
		return ImportItem{}, err
	}
	return owner.assign(in, name)
}

// maxFileBytes bounds a file; a document is held in memory.
const maxFileBytes = 64 << 20

// boundedReader refuses what is longer than a document.
type boundedReader struct {
	inner io.Reader
	left  int64
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.inner.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("%w: the file has more than %d bytes; is it one document?", importer.ErrInvalid, maxFileBytes)
	}
	return n, err
}
