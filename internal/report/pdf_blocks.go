package report

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// ignored are elements of which nothing is printed where they stand.
var ignored = []atom.Atom{
	atom.Header, atom.Footer, atom.Script, atom.Style, atom.Head, atom.Title, atom.Noscript,
	atom.Template,
}

// isBlock are elements that begin a line of their own.
var isBlock = []atom.Atom{
	atom.Div, atom.P, atom.H1, atom.H2, atom.H3, atom.Ul, atom.Ol, atom.Li, atom.Table, atom.Hr, atom.Section,
	atom.Article, atom.Main, atom.Body,
	atom.Dl, atom.Dt, atom.Dd, atom.Blockquote, atom.Pre, atom.Address, atom.Figure,
}

// find returns the first element of a kind.
func find(n *html.Node, kind atom.Atom) *html.Node {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.DataAtom == kind {
			return d
		}
	}
	return nil
}

// findClass returns the first element of a class.
func findClass(n *html.Node, class string) *html.Node {
	for d := range n.Descendants() {
		if hasClass(d, class) {
			return d
		}
	}
	return nil
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func hasClass(n *html.Node, class string) bool {
	return n.Type == html.ElementNode && slices.Contains(strings.Fields(attribute(n, "class")), class)
}

// text is the text of an element.
func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// run is a part of a line.
type run struct {
	text    string
	bold    bool
	newline bool
}

// look is how a block looks: its size, what is above and below it, and how far it is indented.
type look struct {
	size, above, below, indent float64
	bold                       bool
	mark                       string
}

var looks = map[atom.Atom]look{
	atom.H1: {size: 16, below: 1.5, bold: true},
	atom.H2: {size: 11, above: 5, below: 1.5, bold: true},
	atom.H3: {size: 10, above: 3, below: 1, bold: true},
	atom.Li: {size: textSize, below: 0.5, indent: 5, mark: "•"},
}

// blocks prints what is inside of an element.
func (p *printer) blocks(n *html.Node) {
	style, ok := looks[n.DataAtom]
	if !ok {
		style = look{size: textSize, below: 0.8}
	}
	var line []run
	flush := func() {
		p.paragraph(line, style)
		line = nil
	}
	for c := range n.ChildNodes() {
		switch {
		case c.Type == html.TextNode, c.Type == html.ElementNode && !slices.Contains(isBlock, c.DataAtom) &&
			!slices.Contains(ignored, c.DataAtom):
			line = runs(line, c, style.bold)
		case c.Type != html.ElementNode || slices.Contains(ignored, c.DataAtom):
		case c.DataAtom == atom.Table:
			flush()
			p.table(c)
		case c.DataAtom == atom.Hr:
			flush()
			p.room(4)
			p.rule(p.pdf.GetY()+2, hair)
			p.down(4)
		default:
			flush()
			p.blocks(c)
		}
	}
	flush()
}

// runs adds the text of what stands in a line.
func runs(line []run, n *html.Node, bold bool) []run {
	switch {
	case n.Type == html.TextNode:
		return append(line, run{text: n.Data, bold: bold})
	case n.Type != html.ElementNode || slices.Contains(ignored, n.DataAtom):
		return line
	case n.DataAtom == atom.Br:
		return append(line, run{newline: true})
	}
	for c := range n.ChildNodes() {
		line = runs(line, c, bold || n.DataAtom == atom.B || n.DataAtom == atom.Strong || n.DataAtom == atom.Th)
	}
	return line
}

// paragraph prints a line of text, over as many lines as it takes.
func (p *printer) paragraph(line []run, style look) {
	if !slices.ContainsFunc(line, func(r run) bool { return strings.TrimSpace(r.text) != "" }) {
		return
	}
	height := style.size * 0.3528 * 1.4
	left := marginX + style.indent
	p.down(style.above)
	p.room(height * 2)
	x, y := left, p.pdf.GetY()
	next := func() {
		p.pdf.SetY(y + height)
		p.room(height)
		x, y = left, p.pdf.GetY()
	}
	if style.mark != "" {
		p.font("", style.size, ink)
		p.pdf.Text(left-4, y+height*0.75, style.mark)
	}
	space := false
	for _, r := range line {
		if r.newline {
			next()
			space = false
			continue
		}
		weight := ""
		if r.bold {
			weight = "B"
		}
		p.font(weight, style.size, ink)
		cleaned := p.clean(r.text)
		space = space || strings.TrimLeft(r.text, " \n\t") != r.text
		blank := p.pdf.GetStringWidth(" ")
		for word := range strings.FieldsSeq(strings.ReplaceAll(cleaned, "\u00A0", "\u2007")) {
			for _, part := range p.wrap(strings.ReplaceAll(word, "\u2007", "\u00A0"), p.right-left) {
				size := p.pdf.GetStringWidth(part)
				if space && x > left {
					x += blank
				}
				if x > left && x+size > p.right {
					next()
				}
				p.pdf.Text(x, y+height*0.75, part)
				x += size
				space = true
			}
		}
		space = strings.TrimRight(r.text, " \n\t") != r.text
	}
	p.pdf.SetY(y + height + style.below)
}

// span is how many columns a cell takes.
func span(n *html.Node) int {
	columns, err := strconv.Atoi(attribute(n, "colspan"))
	if err != nil || columns < 1 {
		return 1
	}
	return min(columns, maxColumns)
}
