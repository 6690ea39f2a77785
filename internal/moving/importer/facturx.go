package importer

import (
	"io"
	"slices"
	"strings"

	"github.com/ledongthuc/pdf"
)

// maxEmbeddedBytes bounds the XML in a PDF, which is compressed there.
const maxEmbeddedBytes = 64 << 20

// facturXFiles are the names that the standards give to the XML in a PDF: Factur-X and ZUGFeRD 2.1,
// ZUGFeRD 2.0, its reference profile XRECHNUNG, and ZUGFeRD 1.
var facturXFiles = []string{"factur-x.xml", "zugferd-invoice.xml", "xrechnung.xml"}

// FacturX converts the invoice in a PDF of Factur-X or ZUGFeRD 2, as CII does. A PDF that has none in
// it is an ErrInvalid.
func FacturX(file io.ReaderAt, size int64) (Imported, error) {
	xml, err := embeddedInvoice(file, size)
	if err != nil {
		return Imported{}, err
	}
	out, err := CII(io.LimitReader(xml, maxEmbeddedBytes))
	if err == nil {
		out.Document.Content.Source = "facturx"
	}
	return out, err
}

// embeddedInvoice finds the XML. The library panics at what it cannot read.
func embeddedInvoice(file io.ReaderAt, size int64) (xml io.Reader, err error) {
	defer func() {
		if recover() != nil {
			err = invalid("it is a PDF that cannot be read")
		}
	}()
	in, err := pdf.NewReader(file, size)
	if err != nil {
		return nil, invalid("it is not a PDF that can be read: %v", err)
	}
	root := in.Trailer().Key("Root")
	var names []string
	files := append(namedFiles(root.Key("Names").Key("EmbeddedFiles"), 0), elements(root.Key("AF"))...)
	for _, f := range files {
		name := firstText(f.Key("UF"), f.Key("F"))
		stream := f.Key("EF").Key("F")
		if stream.Kind() != pdf.Stream {
			stream = f.Key("EF").Key("UF")
		}
		if stream.Kind() == pdf.Stream && slices.Contains(facturXFiles, strings.ToLower(name)) {
			return stream.Reader(), nil
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, invalid("the PDF has no file in it, so no electronic invoice")
	}
	return nil, invalid("the PDF has no electronic invoice in it (%s), but %s", strings.Join(facturXFiles, ", "), strings.Join(names, ", "))
}

// namedFiles are the files of a name tree.
func namedFiles(tree pdf.Value, depth int) []pdf.Value {
	if depth > maxXMLDepth {
		return nil
	}
	var files []pdf.Value
	for i, v := range elements(tree.Key("Names")) {
		if i%2 == 1 {
			files = append(files, v)
		}
	}
	for _, kid := range elements(tree.Key("Kids")) {
		files = append(files, namedFiles(kid, depth+1)...)
	}
	return files
}

func elements(array pdf.Value) []pdf.Value {
	values := make([]pdf.Value, array.Len())
	for i := range values {
		values[i] = array.Index(i)
	}
	return values
}

func firstText(values ...pdf.Value) string {
	for _, v := range values {
		if text := v.Text(); text != "" {
			return text
		}
	}
	return ""
}
