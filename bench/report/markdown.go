package report

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// The generated part of docs/performance.md lies between these lines.
const (
	beginMark = "<!-- bench:begin -->"
	endMark   = "<!-- bench:end -->"
)

//go:embed skeleton.md
var skeleton string

// Explained says how a group's figures come about, and under which topic they stand.
type Explained struct {
	Topic, Group, About string
}

// WriteMarkdown puts the figures between the markers of the file at path, one table a topic, and
// leaves the rest of it as it is. A file that does not exist is begun. chart is how the file names
// the picture. The groups of a topic follow each other in explained.
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
		return fmt.Errorf("%s lacks the lines %s and %s, between which the figures belong: add them", path, beginMark,
			endMark)
	}
	return write(path, []byte(before+beginMark+"\n"+f.markdown(chart, explained)+endMark+after))
}

func (f File) markdown(chart string, explained []Explained) string {
	var b strings.Builder
	b.WriteString("\nEach figure is the median of its runs, unless its name says otherwise; the ratio is Daybook's " +
		"figure divided by the peer's. " +
		"*Flushes* are how often a second the disk made a page durable: each commit waits for one. The settings of each " +
		"run, of Daybook and its peers, and its other figures are in [performance.json](performance.json) (`note`).\n")
	f.lead(&b)
	for len(explained) > 0 {
		n := slices.IndexFunc(explained, func(e Explained) bool { return e.Topic != explained[0].Topic })
		if n < 0 {
			n = len(explained)
		}
		f.topic(&b, explained[:n])
		explained = explained[n:]
	}
	fmt.Fprintf(&b, "\n### The figures that have a peer\n\n![Daybook's figures beside those of its peers](%s)\n", chart)
	b.WriteString("\n### The machine\n\nThat of the latest figures. What one row compares was measured on one machine, in one run.\n\n| | |\n|---|---|\n")
	for _, fact := range f.Facts {
		fmt.Fprintf(&b, "| %s | %s |\n", fact.Name, fact.Value)
	}
	b.WriteString("\n")
	return b.String()
}

// lead writes what Daybook does beside the best peer at the very same, also where it is behind.
func (f File) lead(b *strings.Builder) {
	b.WriteString("\n### Beside the best peer\n\nHow many times as good Daybook is: below 1 it is behind.\n\n" +
		"the same work | Daybook | best peer | unit | times as good\n---|--:|--:|---|--:\n")
	for _, r := range f.bestPeers() {
		work, peer := r.contract()
		times := Figure(r.timesAsGood())
		if r.timesAsGood() < 1 {
			times = "**" + times + "**"
		}
		fmt.Fprintf(b, "%s | %s | %s (%s) | %s | %s\n", work, Figure(r.Daybook), Figure(*r.Peer), peer, r.Unit, times)
	}
}

// bestPeers are the figures of the same work beside its best peer: one of each, in the order of the
// page. What SQL by hand does is no peer's, and what should not happen at all has no ratio.
func (f File) bestPeers() (best []Record) {
	for _, r := range f.Records {
		if r.Ratio == nil || *r.Ratio == 0 || r.PeerName == ByHand {
			continue
		}
		work, _ := r.contract()
		n := slices.IndexFunc(best, func(other Record) bool {
			known, _ := other.contract()
			return known == work
		})
		switch {
		case n < 0:
			best = append(best, r)
		case r.timesAsGood() < best[n].timesAsGood():
			best[n] = r
		}
	}
	return best
}

// ByHand is the name of statements that do the work without a queue.
const ByHand = "SQL by hand"

// contract splits the record's name into what is done and which of the peer's clients is beside it.
func (r Record) contract() (work, peer string) {
	for _, joint := range []string{", beside ", ", "} {
		if work, client, found := strings.Cut(r.Scenario, joint+r.PeerName); found {
			return work, r.PeerName + client
		}
	}
	return r.Scenario, r.PeerName
}

// timesAsGood is the ratio, or its inverse where less is better: of times, and of what idle workers
// ask.
func (r Record) timesAsGood() float64 {
	if strings.HasSuffix(r.Unit, "/s") && r.Group != "idle" || strings.Contains(r.Unit, "first 15 s") {
		return *r.Ratio
	}
	return 1 / *r.Ratio
}

// topic writes one topic: its command, its table, and how each figure comes about.
func (f File) topic(b *strings.Builder, explained []Explained) {
	var groups []string
	for _, e := range explained {
		groups = append(groups, e.Group)
	}
	fmt.Fprintf(b, "\n### %s\n\n    make bench SCENARIO=%s WRITE=1\n\n", explained[0].Topic, strings.Join(groups, ","))
	var records []Record
	for _, r := range f.Records {
		if slices.Contains(groups, r.Group) {
			records = append(records, r)
		}
	}
	if len(records) == 0 {
		b.WriteString("Not measured yet.\n")
	} else {
		table(b, records)
	}
	for _, e := range explained {
		fmt.Fprintf(b, "\n**%s**. %s\n", e.Group, e.About)
	}
}

func table(b *strings.Builder, records []Record) {
	one := onePeer(records)
	fmt.Fprintf(b, "| scenario | Daybook | %s | unit | ratio | target | runs | measured |\n|---|--:|--:|---|--:|---|--:|---|\n", cmp.Or(one, "peer"))
	var measured []string
	for _, r := range records {
		if !slices.Contains(measured, r.Measured.String()) {
			measured = append(measured, r.Measured.String())
		}
		row(b, r, one, letter(measured, r.Measured.String()))
	}
	b.WriteString("\nMeasured: ")
	for i, m := range measured {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(b, "%c: %s", letter(measured, m), m)
	}
	b.WriteString(".\n")
}

// onePeer is the peer of all rows that have one; empty: they have several, or none.
func onePeer(records []Record) (name string) {
	for _, r := range records {
		switch {
		case r.Peer == nil || r.PeerName == name:
		case name != "":
			return ""
		default:
			name = r.PeerName
		}
	}
	return name
}

// row writes a figure. one is the peer that the head of the table names.
func row(b *strings.Builder, r Record, one string, measured rune) {
	peer, ratio, target := "", "", r.Target
	if r.Peer != nil {
		peer = Figure(*r.Peer)
		if one == "" {
			peer += " (" + r.PeerName + ")"
		}
	}
	if r.Ratio != nil {
		ratio = Figure(*r.Ratio)
	}
	if r.Met != nil {
		target += map[bool]string{true: ": met", false: ": **missed**"}[*r.Met]
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %d | %c |\n", r.Scenario, Figure(r.Daybook), peer, r.Unit, ratio,
		target, r.Runs, measured)
}

// letter stands for one of the moments at which a table's rows were measured.
func letter(measured []string, m string) rune { return 'a' + rune(slices.Index(measured, m)) }
