package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"codeberg.org/go-pdf/fpdf"
	"github.com/go-fonts/dejavu/dejavusans"
	"github.com/go-fonts/dejavu/dejavusansbold"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// PDF says how HTML is printed.
type PDF struct {
	// Font is a TrueType font for all text, normal and bold; nil: DejaVu Sans, which has the Latin,
	// Greek, Cyrillic, Armenian and Georgian scripts, among others, and none of East and South Asia.
	Font []byte
	// MadeAt is the date that the file says it was made on; required for files that are equal each
	// time.
	MadeAt time.Time
}

// Lengths in millimetres, and sizes of type in points.
const (
	marginX, marginTop, marginBottom = 15.0, 24.0, 20.0

	family   = "text"
	textSize = 9.5
)

// Grays.
const (
	ink, faint, line, hair = 31, 110, 150, 225
)

// Write prints HTML as PDF, on pages of A4 with numbers. What it prints of HTML: h1 to h3, p, div,
// ul, ol, li, hr, br, b and strong; tables with thead (again on each page), tbody, tfoot and
// colspan, in which the class "number" puts a cell to the right and is never wrapped, and rows of
// the classes opening, closing, section, total and result are bold; header and footer, which stand on each page, of
// which an element of the class "right" goes to the right. The class "landscape" of body turns the
// pages. The title becomes the file's. Everything else is its text alone: no style sheet, picture
// or script is read. Text runs from left to right, a character after the other: scripts that join
// letters or run from right to left are not set as they should be.
//
// It returns how many characters the font does not have; each of them is printed as U+FFFD.
func (o PDF) Write(w io.Writer, page io.Reader) (missing int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the HTML cannot be printed: %v", p)
		}
	}()
	root, err := html.Parse(page)
	if err != nil {
		return 0, fmt.Errorf("read the HTML: %w", err)
	}
	p := &printer{madeAt: o.MadeAt}
	normal, bold := dejavusans.TTF, dejavusansbold.TTF
	if o.Font != nil {
		normal, bold = o.Font, o.Font
	}
	if p.glyphs, err = sfnt.Parse(normal); err != nil {
		return 0, fmt.Errorf("read the font: %w", err)
	}
	p.begin(root, normal, bold)
	if body := find(root, atom.Body); body != nil {
		p.blocks(body)
	}
	if err := p.pdf.Error(); err != nil {
		return 0, fmt.Errorf("print: %w", err)
	}
	return p.missing, p.pdf.Output(w)
}

// CheckFont refuses what Write could not print with.
func CheckFont(font []byte) error {
	_, err := PDF{Font: font}.Write(io.Discard, strings.NewReader("<p>Check 0123456789"))
	return err
}

// printer is one file in the making.
type printer struct {
	pdf    *fpdf.Fpdf
	glyphs *sfnt.Font
	buffer sfnt.Buffer
	madeAt time.Time
	// known says which characters the font has.
	known   map[rune]bool
	missing int

	header, footer *html.Node
	// right is the right end of the text, bottom the lowest line of it.
	right, bottom float64
}

// begin opens the file and its first page.
func (p *printer) begin(root *html.Node, normal, bold []byte) {
	orientation := "P"
	body := find(root, atom.Body)
	if body != nil && hasClass(body, "landscape") {
		orientation = "L"
	}
	p.known = map[rune]bool{}
	p.pdf = fpdf.New(orientation, "mm", "A4", "")
	p.pdf.SetCatalogSort(true)
	p.pdf.SetCreationDate(p.madeAt)
	p.pdf.SetModificationDate(p.madeAt)
	p.pdf.SetProducer("Daybook", true)
	p.pdf.AddUTF8FontFromBytes(family, "", bytes.Clone(normal))
	p.pdf.AddUTF8FontFromBytes(family, "B", bytes.Clone(bold))
	if title := find(root, atom.Title); title != nil {
		p.pdf.SetTitle(p.clean(text(title)), true)
	}
	width, height := p.pdf.GetPageSize()
	p.right, p.bottom = width-marginX, height-marginBottom
	p.pdf.SetMargins(marginX, marginTop, marginX)
	p.pdf.SetAutoPageBreak(false, marginBottom)
	p.pdf.AliasNbPages("{pages}")
	if body != nil {
		p.header, p.footer = find(body, atom.Header), find(body, atom.Footer)
	}
	p.pdf.SetHeaderFunc(func() { p.running(p.header, 14, 17) })
	p.pdf.SetFooterFunc(p.foot)
	p.pdf.AddPage()
}

// running prints a header or footer: its text at the left, and what has the class "right" at the
// right.
func (p *printer) running(n *html.Node, base, rule float64) {
	if n == nil {
		return
	}
	p.font("", 8, faint)
	var right string
	if at := findClass(n, "right"); at != nil {
		right = p.clean(text(at))
		at.Parent.RemoveChild(at)
		defer n.AppendChild(at)
	}
	half := (p.right - marginX) / 2
	right = p.fit(right, half-2)
	left := p.fit(p.clean(text(n)), p.right-marginX-p.pdf.GetStringWidth(right)-4)
	p.pdf.Text(marginX, base, left)
	p.pdf.Text(p.right-p.pdf.GetStringWidth(right), base, right)
	p.rule(rule, hair)
}

// foot prints the footer and the page's number.
func (p *printer) foot() {
	y := p.bottom + 10
	p.running(p.footer, y, y-5)
	p.font("", 8, faint)
	// How many pages there are is filled in at the end, so that its place is at the right of a fixed
	// one.
	at := p.right - p.pdf.GetStringWidth("000000")
	page := fmt.Sprintf("%d / ", p.pdf.PageNo())
	p.pdf.Text(at-p.pdf.GetStringWidth(page), y, page)
	p.pdf.Text(at, y, "{pages}")
}

// font sets the type for what follows.
func (p *printer) font(style string, size float64, gray int) {
	p.pdf.SetFont(family, style, size)
	p.pdf.SetTextColor(gray, gray, gray)
}

// rule draws a line across the text.
func (p *printer) rule(y float64, gray int) {
	p.pdf.SetDrawColor(gray, gray, gray)
	p.pdf.SetLineWidth(0.2)
	p.pdf.Line(marginX, y, p.right, y)
}

// room begins a page unless there is room for the height.
func (p *printer) room(height float64) (turned bool) {
	if p.pdf.GetY()+height <= p.bottom || p.pdf.GetY() <= marginTop {
		return false
	}
	p.pdf.AddPage()
	p.pdf.SetY(marginTop)
	return true
}

// down moves down.
func (p *printer) down(mm float64) { p.pdf.SetY(p.pdf.GetY() + mm) }

// clean puts a text on one line, leaves out what is not to be seen, and replaces what the font does
// not have.
func (p *printer) clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\u00A0':
			return r
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		case !p.has(r):
			p.missing++
			return unicode.ReplacementChar
		}
		return r
	}, strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r != '\u00A0' && unicode.IsSpace(r) }), " "))
}

// has reports whether the font has a character. Those above the 16 bits that the file's encoding
// has, it has not.
func (p *printer) has(r rune) bool {
	has, seen := p.known[r]
	if !seen {
		index, err := p.glyphs.GlyphIndex(&p.buffer, r)
		has = err == nil && index != 0 && r <= 0xFFFF
		p.known[r] = has
	}
	return has
}

// fit cuts a text off at a width.
func (p *printer) fit(s string, width float64) string {
	if p.pdf.GetStringWidth(s) <= width {
		return s
	}
	runes := []rune(s)
	for len(runes) > 0 && p.pdf.GetStringWidth(string(runes)+"…") > width {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// wrap breaks a text into lines of a width, between words and, where a word is longer, inside it.
func (p *printer) wrap(s string, width float64) []string {
	width += 0.01 // a width that was computed from the text is not too small by a rounding error
	if p.pdf.GetStringWidth(s) <= width {
		return []string{s}
	}
	var lines []string
	var now strings.Builder
	used, blank := 0.0, p.pdf.GetStringWidth(" ")
	end := func() {
		lines = append(lines, now.String())
		now.Reset()
		used = 0
	}
	for word := range strings.SplitSeq(s, " ") {
		size := p.pdf.GetStringWidth(word)
		if now.Len() > 0 && used+blank+size > width {
			end()
		}
		if now.Len() > 0 {
			now.WriteByte(' ')
			used += blank
		}
		if size <= width {
			now.WriteString(word)
			used += size
			continue
		}
		for _, r := range word {
			one := p.pdf.GetStringWidth(string(r))
			if used+one > width && now.Len() > 0 {
				end()
			}
			now.WriteRune(r)
			used += one
		}
	}
	if now.Len() > 0 {
		end()
	}
	return lines
}
