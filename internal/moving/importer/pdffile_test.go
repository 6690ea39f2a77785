package importer_test

import (
	"bytes"
	"compress/zlib"
	"encoding/ascii85"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/moving/importer"
)

// deflated compresses as PDFs do.
func deflated(tb testing.TB, data []byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, err := w.Write(data)
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	return b.Bytes()
}

// reference is a row of a cross-reference stream: kind, place or stream, generation or index.
type reference [3]int

// streamed is a PDF whose cross-references are a stream, with what stands above it.
func streamed(tb testing.TB, above string, keys string, references ...reference) []byte {
	tb.Helper()
	rows := make([]byte, 0, 8*len(references))
	before := make([]byte, 7)
	for _, r := range references {
		row := []byte{byte(r[0]), byte(r[1] >> 24), byte(r[1] >> 16), byte(r[1] >> 8), byte(r[1]), byte(r[2] >> 8), byte(r[2])}
		rows = append(rows, 2) // up
		for i, c := range row {
			rows = append(rows, c-before[i])
		}
		before = row
	}
	packed := deflated(tb, rows)
	return fmt.Appendf(nil, "%s9 0 obj\n<</Type/XRef/W[1 4 2]/Root 1 0 R/Filter[/FlateDecode]/DecodeParms[<</Predictor 12/Columns 7>>]%s/Length %d>>\n"+
		"stream\r\n%s\nendstream\nendobj\nstartxref\n%d\n%%%%EOF\n", above, keys, len(packed), packed, len(above))
}

// packedPDF is a PDF whose objects stand in a compressed stream, with an invoice as its filters have it.
func packedPDF(tb testing.TB, filter string, invoice []byte) []byte {
	tb.Helper()
	objects := []string{
		"<</Type/Catalog/Names<</EmbeddedFiles<</Kids[5 0 R 5 0 R]>>>>>>", "<</Kids[5 0 R]/Names[(x)6 0 R]>>",
		"<</UF<FEFF0066006100630074007500720\n02D0078002E0078006D006C>/F(f\\141ctur-x.xml)/EF<</F 7 0 R>>>>", fmt.Sprint(len(invoice)),
	}
	var index, texts string
	for i, text := range objects {
		index += fmt.Sprintf("%d %d ", []int{1, 5, 6, 8}[i], len(texts))
		texts += text + " "
	}
	stream := deflated(tb, []byte(index+texts))
	above := fmt.Sprintf("%%PDF-2.0\n%% a comment\n4 0 obj <</Type/ObjStm/N 4/First %d/Filter/FlateDecode/Length %d>> stream\n%s\nendstream endobj\n",
		len(index), len(stream), stream)
	invoiceAt := len(above)
	above += fmt.Sprintf("7 0 obj\n<</Length 8 0 R%s>>\nstream\n%s\nendstream endobj\n", filter, invoice)
	return streamed(tb, above, "/Size 9", reference{}, reference{2, 4, 0}, reference{}, reference{}, reference{1, strings.Index(above, "4 0 obj"), 0},
		reference{2, 4, 1}, reference{2, 4, 2}, reference{1, invoiceAt, 0}, reference{2, 4, 3})
}

// TestPDFOfObjectStreams: what newer PDFs are made of is read as the plain form is.
func TestPDFOfObjectStreams(t *testing.T) {
	t.Parallel()
	xml := []byte(testFile(t, "invoice.cii.xml"))
	var letters bytes.Buffer
	encoder := ascii85.NewEncoder(&letters)
	_, err := encoder.Write(deflated(t, xml))
	require.NoError(t, err)
	require.NoError(t, encoder.Close())
	plain := testFile(t, "invoice.pdf")
	want, err := importer.FacturX(strings.NewReader(plain), int64(len(plain)))
	require.NoError(t, err)
	for filter, invoice := range map[string][]byte{
		"": xml, "/Filter/FlateDecode": deflated(t, xml), "/Filter[/ASCII85Decode/FlateDecode]": append(letters.Bytes(), "~>"...),
		"/Filter/ASCIIHexDecode": []byte(hex.EncodeToString(xml) + ">"),
	} {
		file := packedPDF(t, filter, invoice)
		got, err := importer.FacturX(bytes.NewReader(file), int64(len(file)))
		require.NoError(t, err, filter)
		assert.Equal(t, want, got, filter)
	}
}

// plainPDF is a PDF of these objects, the first of which is the root.
func plainPDF(objects ...string) []byte {
	text, rows := "%PDF-1.7\n", "0000000000 65535 f \n"
	for i, o := range objects {
		rows += fmt.Sprintf("%010d 00000 n \n", len(text))
		text += fmt.Sprintf("%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	return fmt.Appendf(nil, "%sxref\n0 %d\n%strailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", text, len(objects)+1,
		rows, len(objects)+1, len(text))
}

// TestPDFWithinBounds: how deep a file goes, and what it inflates to, is bounded. Each file here is one
// that other programs read; one of circles, or of absurd sizes, meets the same bounds.
func TestPDFWithinBounds(t *testing.T) {
	t.Parallel()
	xml := testFile(t, "invoice.cii.xml")
	// lead makes the root, and each object that leads from it to the file.
	withInvoice := func(lead func(number int) string, deep int) []byte {
		var objects []string
		for number := range deep {
			objects = append(objects, lead(number+1))
		}
		n := len(objects)
		return plainPDF(append(objects, fmt.Sprintf("<</Names[(x)%d 0 R]>>", n+2), fmt.Sprintf("<</F(factur-x.xml)/EF<</F %d 0 R>>>>", n+3),
			fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", len(xml), xml))...)
	}
	for name, lead := range map[string]func(number int) string{
		"references to references": func(number int) string {
			if number == 1 {
				return "<</Type/Catalog/Names<</EmbeddedFiles 2 0 R>>>>"
			}
			return fmt.Sprintf("%d 0 R", number+1)
		},
		"a tree of many levels": func(number int) string {
			if number == 1 {
				return "<</Type/Catalog/Names<</EmbeddedFiles 2 0 R>>>>"
			}
			return fmt.Sprintf("<</Kids[%d 0 R]>>", number+1)
		},
	} {
		for deep, read := range map[int]bool{20: true, 110: false} {
			file := withInvoice(lead, deep)
			_, err := importer.FacturX(bytes.NewReader(file), int64(len(file)))
			if read {
				require.NoError(t, err, name)
			} else {
				require.ErrorIs(t, err, importer.ErrInvalid, name)
			}
		}
	}
	// What would be a good invoice is not read when it is too large.
	padded := strings.Replace(xml, "?>", "?>"+strings.Repeat(" ", 17<<20), 1)
	file := packedPDF(t, "/Filter/FlateDecode", deflated(t, []byte(padded)))
	require.Less(t, len(file), 64<<10)
	_, err := importer.FacturX(bytes.NewReader(file), int64(len(file)))
	require.ErrorIs(t, err, importer.ErrInvalid)
	require.ErrorContains(t, err, "it is too large")
	assert.Less(t, len(err.Error()), 2000)
}

// FuzzPDF: no text makes the reader panic.
func FuzzPDF(f *testing.F) {
	f.Add([]byte(testFile(f, "invoice.pdf")))
	f.Add(packedPDF(f, "/Filter/FlateDecode", deflated(f, []byte(testFile(f, "invoice.cii.xml")))))
	f.Fuzz(func(t *testing.T, file []byte) {
		if _, err := importer.FacturX(bytes.NewReader(file), int64(len(file))); err != nil {
			require.NotEmpty(t, err.Error())
		}
	})
}
