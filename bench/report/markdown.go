package report

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strings"
)

// The generated part of docs/performance.md lies between these lines.
const (
	beginMark = "<!-- bench:begin -->"
	endMark   = "<!-- bench:end -->"
)

//go:embed skeleton.md
var skeleton string

// Explained says how a group's figures come about.
type Explained struct{ Group, About, Command string }

// WriteMarkdown puts the figures between the marks of the file at path, and leaves the rest of it as it is. A file that does not
// exist is begun. chart is how the file names the picture.
func (f File) WriteMarkdown(path, chart string, explained []Explained) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		text = []byte(skeleton)
	} else if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), beginMark)
	_, after, closed := strings.Cut(rest, endMark)
	if !found || !closed {
		return fmt.Errorf("%s lacks the lines %s and %s, between which the figures belong: add them", path, beginMark, endMark)
	}
	return write(path, []byte(before+beginMark+"\n"+f.markdown(chart, explained)+endMark+after))
}

func (f File) markdown(chart string, explained []Explained) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n![Daybook's figures beside those of its peers](%s)\n\n", chart)
	b.WriteString("| scenario | Daybook | peer | unit | ratio | target | met | runs | date, commit |\n|---|--:|--:|---|--:|---|---|--:|---|\n")
	for _, r := range f.Records {
		peer, ratio, met, target := "", "", "", r.Target
		if r.Peer != nil {
			peer = Figure(*r.Peer) + " (" + r.PeerName + ")"
		}
		if r.Ratio != nil {
			ratio = Figure(*r.Ratio)
		}
		if r.Met != nil {
			met = map[bool]string{true: "yes", false: "**no**"}[*r.Met]
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %d | %s, %s |\n",
			r.Scenario, Figure(r.Daybook), peer, r.Unit, ratio, target, met, r.Runs, r.Date, r.Commit)
	}
	b.WriteString("\nEach figure is the median of its runs; the ratio is Daybook's figure divided by the peer's.\n\n")
	for _, r := range f.Records {
		if r.Note != "" {
			fmt.Fprintf(&b, "- *%s*: %s\n", r.Scenario, r.Note)
		}
	}
	b.WriteString("\n### The machine\n\n| | |\n|---|---|\n")
	for _, fact := range f.Facts {
		fmt.Fprintf(&b, "| %s | %s |\n", fact.Name, fact.Value)
	}
	b.WriteString("\n### How each figure comes about\n")
	for _, e := range explained {
		fmt.Fprintf(&b, "\n**%s** (`%s`). %s\n", e.Group, e.Command, e.About)
	}
	b.WriteString("\n")
	return b.String()
}
