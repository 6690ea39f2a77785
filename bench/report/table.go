package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// headings are the table's columns.
func headings() []string {
	return []string{"scenario", "Daybook", "peer", "unit", "ratio", "target", "met"}
}

// cells are a row of the table.
func (r Row) cells() []string {
	peer, ratio, met := "–", "–", "–"
	if r.Peer != nil {
		peer = Figure(*r.Peer) + " (" + r.PeerName + ")"
	}
	if x := r.Ratio(); x != nil {
		ratio = Figure(*x)
	}
	if m := r.Met(); m != nil {
		met = map[bool]string{true: "yes", false: "no"}[*m]
	}
	target := r.Target.Text
	if target == "" {
		target = "–"
	}
	return []string{r.Scenario(), Figure(r.Daybook), peer, r.Unit, ratio, target, met}
}

// Table writes the rows for a terminal, and their notes below.
func Table(w io.Writer, rows []Row) error {
	table := [][]string{headings()}
	for _, r := range rows {
		table = append(table, r.cells())
	}
	widths := make([]int, len(table[0]))
	for _, cells := range table {
		for i, c := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	for _, cells := range table {
		var text strings.Builder
		for i, c := range cells {
			text.WriteString(c + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c)+2))
		}
		b.WriteString(strings.TrimRight(text.String(), " ") + "\n")
	}
	for _, r := range rows {
		if r.Note != "" {
			fmt.Fprintf(&b, "\n%s: %s", r.Scenario(), r.Note)
		}
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}
