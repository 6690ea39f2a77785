package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/daybook-dev/daybook/models"
)

const (
	// MaxDocumentRows is how many rows of a CSV file a document may have.
	MaxDocumentRows = 100_000
	// maxOpenBytes bounds the memory of the documents that wait for more of their rows.
	maxOpenBytes = 512 << 20
)

// CSV reads documents from CSV files by a mapping, in two passes. OpenCSV counts the rows of each
// document. Documents reads the files again and yields a document as soon as it has all its rows,
// wherever they are. So a document with a bad row, or with rows in a file that cannot be read to
// its end, is never yielded in part. Only the keys of all documents and the rows of incomplete
// documents are held in memory.
type CSV struct {
	mapping *Mapping
	// documents are what the rows become, taken which of them the last row does.
	documents []*Mapping
	taken     []bool
	org       string
	open      func(context.Context) iter.Seq2[Source, error]
	files     []csvFile
	groups    map[string]*csvGroup
	lastKey   []byte
	count     int
}

// csvGroup is a document: the rows that share a key.
type csvGroup struct {
	rows int
	// file is the number of the first file with rows of it; also that of another one, or noFile.
	file, also int
	draft      *draft // while some rows have been read and others not
	closed     bool
}

const noFile = -1

// CSVDocument is a document with the place where it begins.
type CSVDocument struct {
	// Source is the file and line of the document's first row.
	Source   string
	Document models.Document
}

// OpenCSV reads the files that open yields once, to learn which rows belong together. org is the
// organization whose documents these are; empty: the mapping names it.
//
// The error is ctx's; or it says that nothing can be imported, and wraps ErrInvalid: neither org
// nor the mapping names an organization, or rows of a document may stand in several files
// (group.files: joined) and one of those cannot be read.
func OpenCSV(ctx context.Context, m *Mapping, org string,
	open func(context.Context) iter.Seq2[Source, error],
) (*CSV, error) {
	unowned := func(m *Mapping) bool { return m.organization.constantField() && m.organization.constant == "" }
	if org == "" && slices.ContainsFunc(m.documents(), unowned) {
		return nil, invalid("neither the mapping nor the import says whose documents these are; name the organization")
	}
	c := &CSV{mapping: m, documents: m.documents(), org: org, open: open, groups: map[string]*csvGroup{}}
	c.taken = make([]bool, len(c.documents))
	for source, err := range open(ctx) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var skipped SkippedRows
		if err == nil {
			skipped, err = c.index(ctx, source)
		} else {
			c.refuseArchive(source.Name, err)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil && !errors.Is(err, ErrInvalid) {
			err = fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		if err == nil {
			err = c.sameFile(source)
		}
		if err != nil && m.files == filesJoined {
			return nil, fmt.Errorf("%s: %w; nothing is imported, because any document may have rows there", source.Name, err)
		}
		c.files = append(c.files, csvFile{name: source.Name, file: source.File, err: err, skipped: skipped})
	}
	for _, g := range c.groups {
		if c.files[g.file].err == nil {
			c.count++
		}
	}
	return c, nil
}

// Count returns the number of documents in the files that can be read, good or not.
func (c *CSV) Count() int { return c.count }

// Skipped returns the files that can be read of which csv.skip left rows out.
func (c *CSV) Skipped() []SkippedRows {
	var skipped []SkippedRows
	for _, f := range c.files {
		if f.err == nil && f.skipped.Rows > 0 {
			skipped = append(skipped, f.skipped)
		}
	}
	return skipped
}

// index counts the rows of a file.
func (c *CSV) index(ctx context.Context, source Source) (SkippedRows, error) {
	number := len(c.files)
	rows, err := newCSVRows(c.mapping, source.Reader)
	if err != nil {
		return SkippedRows{}, err
	}
	rows.skipped.Source = source.Name
	for {
		row, err := rows.next()
		switch {
		case errors.Is(err, io.EOF):
			return rows.skipped, nil
		case err != nil:
			return rows.skipped, err
		case ctx.Err() != nil:
			return rows.skipped, ctx.Err()
		}
		for of, taken := range c.taking(&row) {
			if !taken {
				continue
			}
			key := c.key(number, of, row.cells)
			g, ok := c.groups[string(key)]
			if !ok {
				g = &csvGroup{file: number, also: noFile}
				c.groups[string(key)] = g
			}
			g.rows++
			if g.file != number && g.also == noFile {
				g.also = number
			}
		}
	}
}

// taking says which of the mapping's documents a row belongs to. A row that cannot be read belongs to
// all. One that none takes is wrong in the first.
func (c *CSV) taking(row *csvRow) []bool {
	found := false
	for i, m := range c.documents {
		c.taken[i] = row.err != nil || m.takes(row.cells)
		found = found || c.taken[i]
	}
	if !found {
		c.taken[0] = true
		row.err = invalid("no document of the mapping takes the row; add it to the rows of one, or to csv.skip")
	}
	return c.taken
}

// key is the key of a row's document: the same in all its rows, and in no others. It is good until
// the next one is asked for.
func (c *CSV) key(file, of int, cells []string) []byte {
	m := c.documents[of]
	key := c.lastKey[:0]
	if len(c.documents) > 1 {
		key = append(strconv.AppendInt(key, int64(of), 10), 0)
	}
	if m.files == filesApart {
		key = append(strconv.AppendInt(key, int64(file), 10), 0)
	}
	if c.org == "" && !m.organization.constantField() {
		key = append(append(key, cells[m.organization.column]...), 0)
	}
	for i, k := range m.key {
		if i > 0 {
			key = append(key, 0)
		}
		key = append(key, cells[k]...)
	}
	c.lastKey = key
	return key
}

// Documents reads the files again and yields each document when it is complete. A document that is
// refused, and a file of which nothing is imported, yields an error that wraps ErrInvalid, with the
// place in Source, and reading goes on; so does one that the mapping leaves out, whose error is
// ErrNotBookable. Any other error is the last: ctx's, that the files changed
// since OpenCSV, or that too many documents wait for rows that stand far apart. It can be called
// once.
func (c *CSV) Documents(ctx context.Context) iter.Seq2[CSVDocument, error] {
	return func(yield func(CSVDocument, error) bool) {
		p := &csvPass{CSV: c, ctx: ctx, yield: yield}
		for source, err := range c.open(ctx) {
			if p.number >= len(c.files) || c.files[p.number].name != source.Name && ctx.Err() == nil {
				err = errChanged
			} else if known := c.files[p.number].err; known != nil {
				if !c.files[p.number].silent && !yield(CSVDocument{Source: source.Name}, known) {
					return
				}
				p.number++
				continue
			}
			if err == nil {
				err = p.file(source)
			}
			switch {
			case p.stopped:
				return
			case ctx.Err() != nil:
				yield(CSVDocument{Source: source.Name}, ctx.Err())
				return
			case err != nil:
				yield(CSVDocument{Source: source.Name}, err)
				return
			}
			p.number++
		}
		if p.number < len(c.files) || p.waiting > 0 {
			yield(CSVDocument{}, errChanged)
		}
	}
}

var errChanged = errors.New("the files were changed while they were read; import them again")

// csvPass is the second pass over the files.
type csvPass struct {
	*CSV
	ctx     context.Context // ends this pass
	yield   func(CSVDocument, error) bool
	number  int
	waiting int // documents that wait for more of their rows
	bytes   int // about what they need in memory
	stopped bool
}

// file reads a file that the first pass could read.
func (p *csvPass) file(source Source) error {
	rows, err := newCSVRows(p.mapping, source.Reader)
	if err != nil {
		return errChanged
	}
	for !p.stopped {
		row, err := rows.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case p.ctx.Err() != nil:
			return p.ctx.Err()
		case err != nil:
			return errChanged
		}
		for of, taken := range p.taking(&row) {
			if !taken || p.stopped {
				continue
			}
			g, ok := p.groups[string(p.key(p.number, of, row.cells))]
			if !ok || !g.closed && p.files[g.file].err == nil && g.file > p.number {
				return errChanged
			}
			if g.closed {
				continue
			}
			mine := row
			if len(p.documents) > 1 { // a document may fill in cells
				mine.cells = slices.Clone(row.cells)
			}
			if err := p.row(g, of, source, mine); err != nil {
				return err
			}
		}
	}
	return nil
}

// row adds a row to its document, and closes the document if it was the last.
func (p *csvPass) row(g *csvGroup, of int, source Source, row csvRow) error {
	if g.draft == nil {
		place, key := placeOf(source, row), p.id(p.documents[of], source, row.cells)
		switch {
		case g.also != noFile && p.mapping.files == filesOne:
			g.closed = true
			p.refuse(place, key, p.spread(g))
			return nil
		case g.rows > MaxDocumentRows:
			g.closed = true
			p.refuse(place, key, invalid("it has %d rows; at most %d are allowed; does group.key name the right columns?",
				g.rows, MaxDocumentRows))
			return nil
		}
		g.draft = newDraft(p.documents[of], p.org, key, place)
		p.waiting++
	}
	d := g.draft
	before := d.bytes
	d.add(source.Name, row)
	p.bytes += d.bytes - before
	if d.rows < g.rows {
		if p.bytes > maxOpenBytes {
			return fmt.Errorf("%s: the rows of %d documents wait for others and need too much memory; sort the files by "+
				"%s, and import the rest again",
				placeOf(source, row), p.waiting, strings.Join(p.keyNames(), ", "))
		}
		return nil
	}
	p.waiting--
	p.bytes -= d.bytes
	g.draft, g.closed = nil, true
	p.deliver(d)
	return nil
}

func placeOf(source Source, row csvRow) string {
	return fmt.Sprintf("%s: line %d", source.Name, row.line)
}

// spread is the error of a document that must be in one file and has rows in two.
func (p *csvPass) spread(g *csvGroup) error {
	if first := p.files[g.file]; first.err != nil {
		return invalid("it has rows in %s too, which cannot be read; see group.files in https://github.com/daybook-dev/daybook/blob/main/docs/import.md", first.name)
	}
	return invalid("it has rows in %s too; if that is one document set group.files to joined, if not to apart",
		p.files[g.also].name)
}

// deliver yields a document that has all its rows, or the error that says why it is refused.
func (p *csvPass) deliver(d *draft) {
	document, err := d.finish()
	if err != nil { // also ErrNotBookable, of a document that the mapping leaves out
		p.refuse(d.place, d.doc.ID, err)
		return
	}
	p.stopped = !p.yield(CSVDocument{Source: d.place, Document: document}, nil)
}

func (p *csvPass) refuse(place, key string, err error) {
	p.stopped = !p.yield(CSVDocument{Source: place + ": document " + key}, err)
}

func (p *csvPass) keyNames() []string {
	names := make([]string, len(p.mapping.key))
	for i, k := range p.mapping.key {
		names[i] = p.mapping.columns[k]
	}
	return names
}

var escapeSlash = strings.NewReplacer("%", "%25", "/", "%2F")

// id is the document's id: its key; if that has several parts, or the document a name, they are
// joined by slashes, and slashes within the parts of a key escaped.
func (p *csvPass) id(m *Mapping, source Source, cells []string) string {
	if len(m.key) == 1 && m.files != filesApart {
		id := cells[m.key[0]]
		if m.name != "" {
			id += "/" + m.name
		}
		return id
	}
	var parts []string
	if m.files == filesApart {
		parts = append(parts, source.File)
	}
	for _, k := range m.key {
		parts = append(parts, escapeSlash.Replace(cells[k]))
	}
	if m.name != "" {
		parts = append(parts, m.name)
	}
	return strings.Join(parts, "/")
}
