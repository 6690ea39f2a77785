package importer

import (
	"bytes"
	"compress/zlib"
	"encoding/ascii85"
	"encoding/hex"
	"io"
	"strings"
)

// bytes are those of a stream, decompressed.
func (f *pdfFile) bytes(s pdfStream) ([]byte, error) {
	length, ok := pdfInt(f.get(s.head["Length"]))
	if !ok || s.at > len(f.text) || length > len(f.text)-s.at {
		return nil, errPDF
	}
	data := f.text[s.at : s.at+length]
	filters, ok := f.get(s.head["Filter"]).(pdfArray)
	if !ok && f.get(s.head["Filter"]) != nil {
		filters = pdfArray{s.head["Filter"]}
	}
	parms, ok := f.get(s.head["DecodeParms"]).(pdfArray)
	if !ok {
		parms = pdfArray{s.head["DecodeParms"]}
	}
	if len(filters) > maxPDFDepth {
		return nil, errPDF
	}
	for i, filter := range filters {
		var parm pdfDict
		if i < len(parms) {
			parm, _ = f.get(parms[i]).(pdfDict)
		}
		var err error
		if data, err = f.decoded(data, f.get(filter), parm); err != nil {
			return nil, err
		}
	}
	return data, nil
}

func (f *pdfFile) decoded(data []byte, filter any, parm pdfDict) ([]byte, error) {
	var from io.Reader
	switch filter {
	case pdfName("FlateDecode"), pdfName("Fl"):
		// A stream without data has no header either.
		if len(data) == 0 {
			return nil, nil
		}
		inflate, err := zlib.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, errPDF
		}
		from = inflate
	case pdfName("ASCIIHexDecode"), pdfName("AHx"):
		text, _, _ := strings.Cut(withoutSpaces(string(data)), ">")
		from = hex.NewDecoder(strings.NewReader(text + strings.Repeat("0", len(text)%2)))
	case pdfName("ASCII85Decode"), pdfName("A85"):
		text, _, _ := bytes.Cut(data, []byte("~>"))
		from = ascii85.NewDecoder(bytes.NewReader(bytes.TrimPrefix(bytes.TrimSpace(text), []byte("<~"))))
	default:
		return nil, errPDF
	}
	left := maxEmbeddedBytes - f.inflated
	out, err := io.ReadAll(io.LimitReader(from, int64(left)+1))
	f.inflated += len(out)
	switch {
	case len(out) > left:
		return nil, errPDFLarge
	case err != nil:
		return nil, errPDF
	}
	return f.unpredicted(out, parm)
}

// unpredicted takes back what makes rows compress better: PNG's predictors.
func (f *pdfFile) unpredicted(data []byte, parm pdfDict) ([]byte, error) {
	number := func(key pdfName, absent int) int {
		n, ok := pdfInt(f.get(parm[key]))
		if !ok {
			return absent
		}
		return n
	}
	predictor := number("Predictor", 1)
	switch {
	case predictor <= 1:
		return data, nil
	case predictor < 10:
		return nil, errPDF
	}
	pixel := max(number("Colors", 1)*number("BitsPerComponent", 8)/8, 1)
	width := (number("Columns", 1)*number("Colors", 1)*number("BitsPerComponent", 8) + 7) / 8
	if width <= 0 || width > len(data) || pixel > width {
		return nil, errPDF
	}
	out := make([]byte, 0, len(data))
	before := make([]byte, width)
	for ; len(data) > width; data = data[width+1:] {
		kind, row := data[0], data[1:width+1]
		for i := range row {
			left, up, corner := 0, int(before[i]), 0
			if i >= pixel {
				left, corner = int(row[i-pixel]), int(before[i-pixel])
			}
			switch kind {
			case 0:
			case 1:
				row[i] += byte(left)
			case 2:
				row[i] += byte(up)
			case 3:
				row[i] += byte((left + up) / 2)
			case 4:
				row[i] += byte(paeth(left, up, corner))
			default:
				return nil, errPDF
			}
		}
		out = append(out, row...)
		before = row
	}
	return out, nil
}

// paeth is PNG's predictor of that name: the neighbour that is nearest to left + up - corner.
func paeth(left, up, corner int) int {
	distance := func(to int) int { return max(left+up-corner-to, to-left-up+corner) }
	switch {
	case distance(left) <= distance(up) && distance(left) <= distance(corner):
		return left
	case distance(up) <= distance(corner):
		return up
	}
	return corner
}
