package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/daybook-dev/daybook/cmd/daybook/internal/camel"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/models"
)

// Emit prints v as JSON for programs, with names in camelCase, or what human writes for people.
func (a *App) Emit(v any, human func(io.Writer) error) error { return a.EmitTo(a.Stdout, v, human) }

// EmitTo is Emit on another writer than standard output.
func (a *App) EmitTo(w io.Writer, v any, human func(io.Writer) error) error {
	if !a.JSON {
		return human(w)
	}
	data, err := camel.Marshal(v, storedAsJSON...)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err = w.Write(b.Bytes())
	return err
}

// EmitDone is Emit for what was done until it ended with an error, or without one: what was done
// before an interruption stays done. Where nothing was done there is the error alone.
func (a *App) EmitDone(ended error, nothing bool, v any, human func(io.Writer) error) error {
	if ended != nil && nothing {
		return ended
	}
	return cmp.Or(ended, a.Emit(v, human))
}

// storedAsJSON are data whose JSON is stored and imported: their names are those of that format.
var storedAsJSON = []reflect.Type{reflect.TypeFor[models.Content]()}

// Table is an aligned table for people.
type Table struct {
	head []string
	// Right holds the columns that are aligned to the right.
	Right []int
	Rows  [][]string
}

// NewTable returns a table with these columns.
func NewTable(head ...string) *Table { return &Table{head: head} }

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Print writes the table. On a terminal the head is bold, and the last column is cut where the
// screen ends.
func (a *App) Print(w io.Writer, t *Table) error {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.Rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(terminal.OneLine(cell)))
		}
	}
	right := map[int]bool{}
	for _, i := range t.Right {
		right[i] = true
	}
	screen := ScreenWidth(w)
	var b strings.Builder
	line := func(row []string) string {
		b.Reset()
		for i, cell := range row {
			cell = terminal.OneLine(cell)
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch {
			case right[i]:
				b.WriteString(pad + cell)
			case i == len(row)-1:
				b.WriteString(cell)
			default:
				b.WriteString(cell + pad)
			}
			if i < len(row)-1 {
				b.WriteString("  ")
			}
		}
		return cut(strings.TrimRight(b.String(), " "), screen)
	}
	if _, err := fmt.Fprintln(w, a.Bold(w, line(t.head))); err != nil {
		return err
	}
	for _, row := range t.Rows {
		if _, err := fmt.Fprintln(w, line(row)); err != nil {
			return err
		}
	}
	return nil
}

// Bold marks text on a terminal, unless NO_COLOR is set.
func (a *App) Bold(w io.Writer, text string) string {
	if !IsTerminal(w) || a.Environment.NoColor != "" || a.Environment.Term == "dumb" {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}

// ScreenWidth returns the terminal's width; 0: no terminal, nothing is cut.
func ScreenWidth(w io.Writer) int {
	if s, ok := w.(Screen); ok {
		w = s.Terminal
	}
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

func cut(s string, width int) string {
	if width <= 1 || utf8.RuneCountInString(s) <= width {
		return s
	}
	runes := []rune(s)
	return string(runes[:width-1]) + "…"
}

// IsTerminal reports whether what is written goes to a terminal.
func IsTerminal(w io.Writer) bool {
	if s, ok := w.(Screen); ok {
		w = s.Terminal
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Screen buffers what goes to the terminal that it stands for.
type Screen struct {
	*bytes.Buffer
	Terminal io.Writer
}
