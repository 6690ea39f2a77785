package report

import (
	"cmp"
	"slices"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	// maxColumns bounds the columns of a table, and maxLines the lines of a cell that is printed.
	maxColumns = 40
	maxLines   = 30
	// padding is beside the text of a cell, in millimetres; least is the least width of a column with
	// text.
	padding = 1.4
	least   = 14.0
)

// cell is a cell of a table.
type cell struct {
	text   string
	number bool
	span   int
}

// tableRow is a row of a table.
type tableRow struct {
	cells []cell
	head  bool
	// strong rows are bold; ruled ones have a line above.
	strong, ruled bool
}

// table prints a table, the head of which stands on each page.
func (p *printer) table(n *html.Node) {
	head, rows := p.rows(n)
	widths, size := p.columns(append(slices.Clone(head), rows...))
	if len(widths) == 0 {
		return
	}
	p.down(1)
	first := 0.0
	if len(rows) > 0 {
		first = p.height(rows[0], widths, size)
	}
	for _, r := range head {
		first += p.height(r, widths, size)
	}
	p.room(first)
	p.heads(head, widths, size)
	for _, r := range rows {
		if p.room(p.height(r, widths, size)) {
			p.heads(head, widths, size)
		}
		p.row(r, widths, size)
	}
	p.down(2)
}

func (p *printer) heads(head []tableRow, widths []float64, size float64) {
	for _, r := range head {
		p.row(r, widths, size)
	}
}

// rows reads the rows of a table: those of the head, and the others.
func (p *printer) rows(n *html.Node) (head, rows []tableRow) {
	for tr := range n.Descendants() {
		if tr.Type != html.ElementNode || tr.DataAtom != atom.Tr {
			continue
		}
		r := tableRow{head: tr.Parent.DataAtom == atom.Thead}
		r.ruled = hasClass(tr, "total") || hasClass(tr, "result") || hasClass(tr, "closing") || tr.Parent.DataAtom == atom.Tfoot
		r.strong = r.head || r.ruled || hasClass(tr, "opening") || hasClass(tr, "section")
		for td := range tr.ChildNodes() {
			if td.Type == html.ElementNode && (td.DataAtom == atom.Td || td.DataAtom == atom.Th) &&
				len(r.cells) < maxColumns {
				r.cells = append(r.cells, cell{text: p.clean(text(td)), number: hasClass(td, "number"), span: span(td)})
			}
		}
		if r.head {
			head = append(head, r)
		} else {
			rows = append(rows, r)
		}
	}
	return head, rows
}

func (r tableRow) weight() string {
	if r.strong {
		return "B"
	}
	return ""
}

// columns finds the widths of columns, and the size of type at which numbers fit whole and texts
// have a little room.
func (p *printer) columns(rows []tableRow) ([]float64, float64) {
	room := p.right - marginX
	for size := 8.5; ; size -= 0.5 {
		natural, numbers := p.natural(rows, size)
		total, fixed, texts := 0.0, 0.0, 0
		for i, w := range natural {
			total += w
			if numbers[i] {
				fixed += w
			} else {
				fixed += min(w, least)
				texts++
			}
		}
		switch {
		case len(natural) == 0:
			return nil, size
		case total <= room:
			return spread(natural, numbers, room-total, texts), size
		case fixed <= room || size <= 3.5:
			return share(natural, numbers, room), size
		}
	}
}

// natural are the widths at which nothing would be wrapped, and which columns have numbers.
func (p *printer) natural(rows []tableRow, size float64) (widths []float64, numbers []bool) {
	for _, r := range rows {
		p.pdf.SetFont(family, r.weight(), size)
		at := 0
		for _, c := range r.cells {
			for len(widths) < min(at+c.span, maxColumns) {
				widths, numbers = append(widths, 0), append(numbers, false)
			}
			if at >= len(widths) {
				break
			}
			if c.span == 1 {
				widths[at] = max(widths[at], p.pdf.GetStringWidth(c.text)+2*padding)
				numbers[at] = numbers[at] || c.number
			}
			at += c.span
		}
	}
	return widths, numbers
}

// spread divides what is left among the columns with text, or among all.
func spread(widths []float64, numbers []bool, left float64, texts int) []float64 {
	columns := texts
	if columns == 0 {
		columns = len(widths)
	}
	for i := range widths {
		if texts == 0 || !numbers[i] {
			widths[i] += left / float64(columns)
		}
	}
	return widths
}

// share gives numbers their width, and divides the rest among texts: none gets more than it needs
// while another one lacks.
func share(natural []float64, numbers []bool, room float64) []float64 {
	widths := make([]float64, len(natural))
	var open []int
	for i, w := range natural {
		if numbers[i] {
			widths[i] = w
			room -= w
		} else {
			open = append(open, i)
		}
	}
	slices.SortStableFunc(open, func(a, b int) int { return cmp.Compare(natural[a], natural[b]) })
	for n, i := range open {
		widths[i] = max(min(natural[i], room/float64(len(open)-n)), 4)
		room -= widths[i]
	}
	return widths
}

// lines are the lines of a cell.
func (p *printer) lines(c cell, width float64) []string {
	if c.number {
		return []string{c.text}
	}
	lines := p.wrap(c.text, width-2*padding)
	if len(lines) > maxLines {
		lines = append(lines[:maxLines-1], "…")
	}
	return lines
}

// width is that of a cell which begins at a column.
func (c cell) width(at int, widths []float64) float64 {
	total := 0.0
	for i := at; i < min(at+c.span, len(widths)); i++ {
		total += widths[i]
	}
	return total
}

const lineOf = 0.3528 * 1.35 // the height of a line of a table in millimetres, for a size in points

func (p *printer) height(r tableRow, widths []float64, size float64) float64 {
	p.pdf.SetFont(family, r.weight(), size)
	most, at := 1, 0
	for _, c := range r.cells {
		most = max(most, len(p.lines(c, c.width(at, widths))))
		at += c.span
	}
	return float64(most)*size*lineOf + 2.2
}

// row prints a row at the present height, and moves below it.
func (p *printer) row(r tableRow, widths []float64, size float64) {
	y, height, x, at := p.pdf.GetY(), p.height(r, widths, size), marginX, 0
	gray := ink
	if r.head {
		gray = faint
	}
	p.font(r.weight(), size, gray)
	if r.ruled {
		p.rule(y, line)
	}
	for _, c := range r.cells {
		width := c.width(at, widths)
		for n, part := range p.lines(c, width) {
			left := x + padding
			if c.number {
				left = x + width - padding - p.pdf.GetStringWidth(part)
			}
			p.pdf.Text(left, y+1.1+(float64(n)+0.78)*size*lineOf, part)
		}
		x += width
		at += c.span
	}
	y += height
	switch {
	case r.head:
		p.rule(y, line)
	case !r.ruled:
		p.rule(y, hair)
	}
	p.pdf.SetY(y)
}
