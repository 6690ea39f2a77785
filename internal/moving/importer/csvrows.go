package importer

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/daybook-dev/daybook/internal/text/bom"
)

// MaxRowBytes is the length of the longest row that CSV reads; a longer one is a quote that never
// ends.
const MaxRowBytes = 1 << 20

// csvRow is one row of a file: the cells that the mapping reads, without the space around them. The
// cells are only good until the next row is read.
type csvRow struct {
	line  int
	cells []string
	// err says why the row cannot be used, though its document is known.
	err error
}

// SkippedRows are the rows of a file that csv.skip left out.
type SkippedRows struct {
	// Source is the file's name.
	Source string `json:"source"`
	Rows   int    `json:"rows"`
	// FirstLine is the line of the first of them.
	FirstLine int `json:"first_line"`
}

func (s *SkippedRows) add(line int) {
	if s.Rows == 0 {
		s.FirstLine = line
	}
	s.Rows++
}

// csvRows reads the rows of one file.
type csvRows struct {
	mapping   *Mapping
	reader    *csv.Reader
	budget    *budgetReader
	width     int
	positions []int // in the file's rows, for each of the mapping's columns
	cells     []string
	above     int // lines of the file that the reader was not given
	line      int // of the row that was read last
	skipped   SkippedRows
}

// newCSVRows reads the header, if there is one, and finds the columns.
func newCSVRows(m *Mapping, r io.Reader) (*csvRows, error) {
	// A row's budget is there before the first byte is read: the byte order mark is looked for then.
	budget := &budgetReader{inner: r, left: MaxRowBytes}
	decoded, err := decodeCSV(m, budget)
	if err != nil {
		return nil, err
	}
	rows := &csvRows{mapping: m, budget: budget, cells: make([]string, len(m.columns))}
	if err := rows.skipAbove(decoded); err != nil {
		return nil, err
	}
	rows.reader = csv.NewReader(decoded)
	rows.reader.Comma = m.separator
	rows.reader.ReuseRecord = true
	rows.reader.FieldsPerRecord = -1 // the number of cells is checked here
	names := m.all
	if m.header {
		header, err := rows.read()
		switch {
		case errors.Is(err, io.EOF):
			return nil, invalid("the file is empty; it needs a header, even when there are no documents")
		case err != nil:
			return nil, err
		}
		names = slices.Clone(header)
	}
	return rows, rows.find(names)
}

// find finds the mapping's columns among the names of the file's.
func (r *csvRows) find(names []string) error {
	r.width = len(names)
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	for _, column := range r.mapping.columns {
		position := slices.Index(names, column)
		switch {
		case position < 0 && slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "\r") }):
			return invalid("its lines end in carriage returns alone, as \"CSV (Macintosh)\" of Excel has them; save it as " +
				"CSV UTF-8")
		case position < 0:
			return invalid("the file has no column %q; its header is %s", column, quotedList(names))
		case slices.Contains(names[position+1:], column):
			return invalid("the file has the column %q twice; rename one", column)
		}
		r.positions = append(r.positions, position)
	}
	return nil
}

// decodeCSV returns the file in UTF-8, without a byte order mark. A mark that contradicts the
// mapping is an error: the file would be read as other letters, and its first column would have
// another name.
func decodeCSV(m *Mapping, r io.Reader) (*bufio.Reader, error) {
	buffered := bufio.NewReader(r)
	first, _ := buffered.Peek(bom.Peeked)
	found := bom.Detect(first)
	switch {
	case found == bom.UTF16 && m.encoding != encodingUTF16:
		return nil, invalid("the file is written in UTF-16; set csv.encoding to utf-16, or save the file as UTF-8")
	case found == bom.UTF8 && m.encoding != encodingUTF8:
		return nil, invalid("the file begins with the byte order mark of UTF-8, and csv.encoding is %s; remove csv.encoding",
			m.encoding)
	}
	switch m.encoding {
	case encodingUTF16:
		decoder := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder()
		return bufio.NewReader(decoder.Reader(buffered)), nil
	case encodingLatin1:
		return bufio.NewReader(charmap.ISO8859_1.NewDecoder().Reader(buffered)), nil
	case encodingWindows1252:
		return bufio.NewReader(charmap.Windows1252.NewDecoder().Reader(buffered)), nil
	default: // UTF-8
	}
	if found == bom.UTF8 {
		_, _ = buffered.Discard(len("\ufeff"))
	}
	return buffered, nil
}

// skipAbove leaves out the lines above the header: those that the mapping counts, and the one by
// which a file tells Excel its separator.
func (r *csvRows) skipAbove(file *bufio.Reader) error {
	hint, _ := file.Peek(len("sep=;\r\n"))
	if rest, ok := bytes.CutPrefix(hint, []byte("sep=")); ok {
		if len(rest) > 1 && (rest[1] == '\n' || rest[1] == '\r') && rune(rest[0]) != r.mapping.separator {
			return invalid("the file says that its separator is %q, and csv.separator is %q", rest[0], r.mapping.separator)
		}
		if err := r.skipLine(file); err != nil {
			return err
		}
	}
	for range r.mapping.preamble {
		if err := r.skipLine(file); err != nil {
			return err
		}
	}
	return nil
}

func (r *csvRows) skipLine(file *bufio.Reader) error {
	for {
		r.budget.left = MaxRowBytes
		_, err := file.ReadSlice('\n')
		switch {
		case err == nil:
			r.above++
			return nil
		case errors.Is(err, io.EOF):
			return invalid("the file ends above its header; does csv.preamble count the lines right?")
		case !errors.Is(err, bufio.ErrBufferFull):
			return invalid("it cannot be read to its end: %v", err)
		}
	}
}

// quotedList shows the first names of a header.
func quotedList(names []string) string {
	const most = 30
	var b strings.Builder
	for i, name := range names {
		if i == most {
			return b.String() + " …"
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%.40q", name)
	}
	return b.String()
}

// read returns the next record as it is in the file.
func (r *csvRows) read() ([]string, error) {
	r.budget.left = MaxRowBytes
	record, err := r.reader.Read()
	if err == nil {
		r.line, _ = r.reader.FieldPos(0)
		r.line += r.above
	}
	var parse *csv.ParseError
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return record, err
	case errors.Is(err, errRowTooLong):
		return nil, invalid("line %d: a row is longer than %d bytes; is there a quote without its end?", r.line+1,
			MaxRowBytes)
	case errors.As(err, &parse):
		return nil, invalid("line %d, column %d: %v; the rows from there on cannot be told apart", parse.Line+r.above,
			parse.Column, parse.Err)
	}
	return nil, invalid("it cannot be read to its end: %v", err)
}

// next returns the next row that is not empty. io.EOF is the end. Any other error means that the
// file cannot be used, because it is unknown to which document some row belongs.
func (r *csvRows) next() (csvRow, error) {
	for {
		record, err := r.read()
		if err != nil {
			return csvRow{}, err
		}
		row := csvRow{line: r.line, cells: r.cells}
		if blank(record) {
			continue
		}
		for i, position := range r.positions {
			r.cells[i] = ""
			if position < len(record) {
				r.cells[i] = strings.TrimSpace(record[position])
			}
		}
		if _, skip := matching(r.mapping.skip, row.cells); skip {
			r.skipped.add(row.line)
			continue
		}
		if err := r.place(&row, record); err != nil {
			return csvRow{}, invalid("line %d: %w, so that it cannot be told which document the row belongs to", row.line,
				err)
		}
		return row, nil
	}
}

// place returns an error unless it is certain to which document the row belongs. Otherwise row.err
// says what else is wrong with it.
func (r *csvRows) place(row *csvRow, record []string) error {
	m := r.mapping
	if len(record) != r.width {
		row.err = fmt.Errorf("the row has %d cells and not %d; put cells that contain %q in quotes", len(record), r.width,
			m.separator)
		// A cell that is missing, or too many, shifts those behind it.
		shifted := func(column int) bool { return r.positions[column] > 0 }
		if slices.ContainsFunc(m.key, shifted) || m.organization.column != noColumn && shifted(m.organization.column) {
			return row.err
		}
	}
	for _, k := range m.key {
		if row.cells[k] == "" {
			return fmt.Errorf("%s is empty", m.columns[k])
		}
	}
	if row.err == nil {
		for _, cell := range record {
			if !utf8.ValidString(cell) {
				row.err = fmt.Errorf("%.40q is not UTF-8; set csv.encoding to what the file is written in", cell)
			}
		}
	}
	return nil
}

func blank(record []string) bool {
	return !slices.ContainsFunc(record, func(cell string) bool { return strings.TrimSpace(cell) != "" })
}

var errRowTooLong = errors.New("the row is too long")

// budgetReader bounds what is read for one row.
type budgetReader struct {
	inner io.Reader
	left  int
}

// Read implements io.Reader.
func (b *budgetReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errRowTooLong
	}
	n, err := b.inner.Read(p)
	b.left -= n
	return n, err
}
