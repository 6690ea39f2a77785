package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	// maxPDFBytes bounds a PDF, which is held in memory, and pdfTail where its end is looked for.
	maxPDFBytes = 256 << 20
	pdfTail     = 2048
	// maxPDFSections is how often a PDF may have been changed, maxPDFObjects how many objects it has,
	// and maxPDFWork how many bytes of them are read.
	maxPDFSections = 1000
	maxPDFObjects  = 1 << 18
	maxPDFWork     = 4 << 20
)

var (
	errPDF      = errors.New("it is damaged, or of a kind that is not read")
	errPDFLarge = fmt.Errorf("it is too large: what is compressed in the PDF has more than %d MiB", maxEmbeddedBytes>>20)
)

// pdfFile reads objects of a PDF by its cross-references (ISO 32000-1, 7.5). A stranger's file is
// bounded in time and memory: nothing is made as large as the file says that it is, references are
// followed so far, and so much is decompressed.
type pdfFile struct {
	text []byte
	// places are those of the objects.
	places map[int]pdfPlace
	root   any
	// inflated is what was decompressed; packed are the texts of object streams.
	inflated int
	packed   map[int]*pdfPacked
	// unpacking is how many object streams are being read, each for another one; worked is how many
	// bytes of objects were read.
	unpacking, worked int
}

// pdfPlace is where an object is: at a place of the file, or in the object stream in.
type pdfPlace struct{ at, in int }

// pdfPacked is an object stream: a text, and the places of its objects.
type pdfPacked struct {
	text   []byte
	places map[int]int
}

// openPDF reads where the objects are.
func openPDF(file io.ReaderAt, size int64) (*pdfFile, error) {
	if size > maxPDFBytes {
		return nil, invalid("it has %d bytes; a PDF may have %d", size, maxPDFBytes)
	}
	text := make([]byte, size)
	if n, err := file.ReadAt(text, 0); err != nil && (!errors.Is(err, io.EOF) || int64(n) < size) {
		return nil, err
	}
	start := bytes.Index(text[:min(len(text), pdfTail)], []byte("%PDF-"))
	end := bytes.LastIndex(text, []byte("startxref"))
	if start < 0 || end < 0 {
		return nil, errors.New("it does not begin and end as a PDF does")
	}
	// Places are counted from the header.
	f := &pdfFile{text: text[start:], places: map[int]pdfPlace{}, packed: map[int]*pdfPacked{}}
	l := pdfLexer{text: text, at: end + len("startxref")}
	at, ok := pdfInt(l.object(0))
	if !ok {
		return nil, errPDF
	}
	seen := map[int]bool{}
	for sections := []int{at}; len(sections) > 0; {
		at, sections = sections[0], sections[1:]
		if seen[at] {
			continue
		}
		if seen[at] = true; len(seen) > maxPDFSections {
			return nil, errPDF
		}
		trailer, err := f.section(at)
		if err != nil {
			return nil, err
		}
		if len(f.places) > maxPDFObjects {
			return nil, errPDF
		}
		if trailer["Encrypt"] != nil {
			return nil, errors.New("it is encrypted; save it without a password")
		}
		if f.root == nil {
			f.root = trailer["Root"]
		}
		for _, key := range []pdfName{"XRefStm", "Prev"} {
			if before, ok := pdfInt(trailer[key]); ok {
				sections = append(sections, before)
			}
		}
	}
	return f, nil
}

// pdfInt is a whole number that may be a place in a file.
func pdfInt(value any) (int, bool) {
	n, ok := value.(float64)
	return int(n), ok && n >= 0 && n <= maxPDFBytes && n == float64(int(n))
}

// section reads a part of the cross-references, a table or a stream. The newest part is read first,
// and what it says of an object counts.
func (f *pdfFile) section(at int) (pdfDict, error) {
	if at >= len(f.text) {
		return nil, errPDF
	}
	l := pdfLexer{text: f.text, at: at}
	if l.object(0) == pdfWord("xref") {
		return f.table(&l)
	}
	stream, ok := f.at(at, nil).(pdfStream)
	if !ok || stream.head["Type"] != pdfName("XRef") {
		return nil, errPDF
	}
	return stream.head, f.crossStream(stream)
}

func (f *pdfFile) table(l *pdfLexer) (pdfDict, error) {
	for {
		first := l.object(0)
		if first == pdfWord("trailer") {
			trailer, ok := l.object(0).(pdfDict)
			if !ok || l.bad {
				return nil, errPDF
			}
			return trailer, nil
		}
		start, ok := pdfInt(first)
		count, counted := pdfInt(l.object(0))
		if !ok || !counted {
			return nil, errPDF
		}
		for n := range count {
			at, ok := pdfInt(l.object(0))
			l.object(0) // the generation
			kind := l.object(0)
			if !ok || l.bad || kind != pdfWord("n") && kind != pdfWord("f") {
				return nil, errPDF
			}
			place := pdfPlace{at: at}
			if kind == pdfWord("f") {
				place.at = 0
			}
			f.place(start+n, place)
		}
	}
}

// place keeps where an object is; 0: it is free.
func (f *pdfFile) place(number int, p pdfPlace) {
	if _, known := f.places[number]; !known && len(f.places) <= maxPDFObjects {
		f.places[number] = p
	}
}

// crossStream reads cross-references from a stream: three numbers each, of so many bytes.
func (f *pdfFile) crossStream(s pdfStream) error {
	data, err := f.bytes(s)
	if err != nil {
		return err
	}
	widths, _ := s.head["W"].(pdfArray)
	index, ok := s.head["Index"].(pdfArray)
	if !ok {
		index = pdfArray{float64(0), s.head["Size"]}
	}
	var width [3]int
	if len(widths) < len(width) {
		return errPDF
	}
	for i := range width {
		var ok bool
		if width[i], ok = pdfInt(widths[i]); !ok || width[i] > 8 {
			return errPDF
		}
	}
	row := width[0] + width[1] + width[2]
	for ; len(index) >= 2; index = index[2:] {
		start, ok := pdfInt(index[0])
		count, counted := pdfInt(index[1])
		if !ok || !counted || row == 0 {
			return errPDF
		}
		for n := 0; n < count && len(data) >= row; n++ {
			var fields [3]int
			if width[0] == 0 {
				fields[0] = 1
			}
			for i, w := range width {
				for _, c := range data[:w] {
					fields[i] = fields[i]<<8 | int(c)
				}
				data = data[w:]
			}
			switch fields[0] {
			case 0:
				f.place(start+n, pdfPlace{})
			case 1:
				f.place(start+n, pdfPlace{at: fields[1]})
			case 2:
				f.place(start+n, pdfPlace{in: fields[1]})
			}
		}
	}
	return nil
}

// get follows references to a value.
func (f *pdfFile) get(value any) any { return f.follow(value, 0) }

func (f *pdfFile) follow(value any, depth int) any {
	ref, ok := value.(pdfRef)
	if !ok {
		return value
	}
	place := f.places[int(ref)]
	switch {
	case depth > maxPDFDepth:
		return nil
	case place.in > 0:
		return f.follow(f.unpacked(place.in, int(ref)), depth+1)
	case place.at > 0:
		return f.follow(f.at(place.at, &ref), depth+1)
	}
	return nil
}

// at reads the object at a place of the file: "17 0 obj … endobj"; number is which it must be, nil:
// any.
func (f *pdfFile) at(at int, number *pdfRef) any {
	if at < 0 || at >= len(f.text) || f.worked > maxPDFWork {
		return nil
	}
	l := pdfLexer{text: f.text, at: at}
	defer func() { f.worked += l.at - at }()
	n, ok := pdfInt(l.object(0))
	_, generation := pdfInt(l.object(0))
	if !ok || !generation || l.object(0) != pdfWord("obj") || number != nil && n != int(*number) {
		return nil
	}
	object := l.object(0)
	if l.bad {
		return nil
	}
	head, ok := object.(pdfDict)
	if !ok {
		return object
	}
	if l.object(0) != pdfWord("stream") {
		return head
	}
	switch { // one line's end
	case l.has("\r\n"):
		l.at += 2
	case l.has("\n"), l.has("\r"):
		l.at++
	}
	return pdfStream{head, l.at}
}

// unpacked is an object of an object stream, which has no stream in it.
func (f *pdfFile) unpacked(in, number int) any {
	packed, ok := f.packed[in]
	if !ok {
		packed = f.unpack(in)
		f.packed[in] = packed
	}
	at, ok := packed.places[number]
	if !ok || at < 0 || at >= len(packed.text) || f.worked > maxPDFWork {
		return nil
	}
	l := pdfLexer{text: packed.text, at: at}
	defer func() { f.worked += l.at - at }()
	object := l.object(0)
	if l.bad {
		return nil
	}
	return object
}

// unpack reads an object stream, which stands in the file itself.
func (f *pdfFile) unpack(in int) *pdfPacked {
	packed := &pdfPacked{places: map[int]int{}}
	ref := pdfRef(in)
	s, ok := f.at(f.places[in].at, &ref).(pdfStream)
	if !ok || f.places[in].at == 0 || f.unpacking > maxPDFDepth {
		return packed
	}
	f.packed[in] = packed // its own numbers are not in it
	f.unpacking++
	defer func() { f.unpacking-- }()
	count, _ := pdfInt(f.get(s.head["N"]))
	first, _ := pdfInt(f.get(s.head["First"]))
	text, err := f.bytes(s)
	if err != nil {
		return packed
	}
	packed.text = text
	l := pdfLexer{text: text}
	for n := 0; n < min(count, maxPDFObjects) && !l.bad; n++ {
		number, ok := pdfInt(l.object(0))
		at, placed := pdfInt(l.object(0))
		if !ok || !placed {
			break
		}
		if _, known := packed.places[number]; !known {
			packed.places[number] = first + at
		}
	}
	return packed
}
