package importer

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"
)

// maxEmbeddedBytes bounds what is compressed in a PDF, the XML above all: some kilobytes may stand for
// a thousand times as much.
const maxEmbeddedBytes = 16 << 20

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
	out, err := CII(bytes.NewReader(xml))
	if err == nil {
		out.Document.Content.Source = "facturx"
	}
	return out, err
}

// embeddedInvoice finds the XML.
func embeddedInvoice(file io.ReaderAt, size int64) ([]byte, error) {
	in, err := openPDF(file, size)
	switch {
	case errors.Is(err, ErrInvalid):
		return nil, err
	case err != nil:
		return nil, invalid("it is not a PDF that can be read: %v", err)
	}
	root, ok := in.get(in.root).(pdfDict)
	if !ok {
		return nil, invalid("it is not a PDF that can be read: %v", errPDF)
	}
	w := pdfFiles{pdfFile: in, seen: map[pdfRef]bool{}}
	if names, ok := in.get(root["Names"]).(pdfDict); ok {
		w.tree(names["EmbeddedFiles"], 0)
	}
	associated, _ := in.get(root["AF"]).(pdfArray)
	var names []string
	for _, f := range append(w.files, associated...) {
		spec, _ := in.get(f).(pdfDict)
		name := cmp.Or(in.textOf(spec["UF"]), in.textOf(spec["F"]))
		embedded, _ := in.get(spec["EF"]).(pdfDict)
		stream, ok := in.get(embedded["F"]).(pdfStream)
		if !ok {
			stream, ok = in.get(embedded["UF"]).(pdfStream)
		}
		if ok && slices.Contains(facturXFiles, strings.ToLower(name)) {
			xml, err := in.bytes(stream)
			if err != nil {
				return nil, invalid("it is a PDF whose file %s cannot be read: %v", name, err)
			}
			return xml, nil
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, invalid("the PDF has no file in it, so no electronic invoice")
	}
	return nil, invalid("the PDF has no electronic invoice in it (%s), but %.1000s", strings.Join(facturXFiles, ", "), strings.Join(names, ", "))
}

// pdfFiles collects what stands in a name tree. No node of it is read twice.
type pdfFiles struct {
	*pdfFile
	files []any
	seen  map[pdfRef]bool
}

func (w *pdfFiles) tree(node any, depth int) {
	if ref, ok := node.(pdfRef); ok {
		if w.seen[ref] {
			return
		}
		w.seen[ref] = true
	}
	dict, ok := w.get(node).(pdfDict)
	if !ok || depth > maxPDFDepth {
		return
	}
	names, _ := w.get(dict["Names"]).(pdfArray)
	for i, v := range names {
		if i%2 == 1 {
			w.files = append(w.files, v)
		}
	}
	kids, _ := w.get(dict["Kids"]).(pdfArray)
	for _, kid := range kids {
		w.tree(kid, depth+1)
	}
}

// textOf is a text, empty if the value is none.
func (f *pdfFile) textOf(value any) string {
	text, _ := f.get(value).(string)
	return pdfText(text)
}
