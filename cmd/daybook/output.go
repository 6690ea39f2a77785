package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/daybook-dev/daybook/internal/camel"
	"github.com/daybook-dev/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

// emit prints v as JSON for programs, with names in camelCase, or what human writes for people.
func (a *app) emit(v any, human func(io.Writer) error) error { return a.emitTo(a.stdout, v, human) }

// emitTo is emit on another writer than standard output.
func (a *app) emitTo(w io.Writer, v any, human func(io.Writer) error) error {
	if !a.json {
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

// emitDone is emit for what was done until it ended with an error, or without one: what was done before an interruption stays done. Where nothing was
// done there is the error alone.
func (a *app) emitDone(ended error, nothing bool, v any, human func(io.Writer) error) error {
	if ended != nil && nothing {
		return ended
	}
	return cmp.Or(ended, a.emit(v, human))
}

// storedAsJSON are data whose JSON is stored and imported: their names are those of that format.
var storedAsJSON = []reflect.Type{reflect.TypeFor[models.Content]()}

// table is an aligned table for people.
type table struct {
	head []string
	// right holds the columns that are aligned to the right.
	right []int
	rows  [][]string
}

func newTable(head ...string) *table { return &table{head: head} }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// print writes the table. On a terminal the head is bold, and the last column is cut where the screen ends.
func (a *app) print(w io.Writer, t *table) error {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(terminal.OneLine(cell)))
		}
	}
	right := map[int]bool{}
	for _, i := range t.right {
		right[i] = true
	}
	screen := screenWidth(w)
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
	if _, err := fmt.Fprintln(w, a.bold(w, line(t.head))); err != nil {
		return err
	}
	for _, row := range t.rows {
		if _, err := fmt.Fprintln(w, line(row)); err != nil {
			return err
		}
	}
	return nil
}

// bold marks text on a terminal, unless NO_COLOR is set.
func (a *app) bold(w io.Writer, text string) string {
	if !isTerminal(w) || a.environment.NoColor != "" || a.environment.Term == "dumb" {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}

// screenWidth returns the terminal's width; 0: no terminal, nothing is cut.
func screenWidth(w io.Writer) int {
	if s, ok := w.(screen); ok {
		w = s.terminal
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

// formatTime writes a moment in the reader's zone.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// pluralOf counts what the queue of a kind holds.
func pluralOf(kind string, n int64) string {
	if kind == string(models.KindTasks) {
		return phrase.Plural(n, "task", "tasks")
	}
	return phrase.Plural(n, "job", "jobs")
}
