package top

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

// Write writes a picture once, with the rows of every list: for a pipe, or a terminal that cannot
// be redrawn.
func Write(w io.Writer, p Picture, width int) error {
	m := Model{picture: p, have: true, width: width, height: 1 << 16}
	lines := m.head()
	for v := range views {
		m.view = v
		if m.rows() > 0 {
			lines = append(append(lines, ""), m.list(m.rows())...)
		}
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// text is the whole screen, which never has more lines than the terminal.
func (m Model) text() string {
	if !m.have {
		if m.err != nil {
			return m.cut("The figures cannot be read: " + terminal.OneLine(m.err.Error()) + " Trying again. (q quits)")
		}
		return "Reading…"
	}
	lines := m.head()
	lines = append(lines, "", m.tabs())
	lines = append(lines, m.list(max(m.height-len(lines)-2, 1))...)
	lines = lines[:min(len(lines), max(m.height-1, 1))]
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	return strings.Join(append(lines, m.foot()), "\n")
}

const (
	reset = "\x1b[0m"
	bold  = "\x1b[1m"
	faint = "\x1b[2m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
	amber = "\x1b[33m"
)

func (m Model) paint(style, s string) string {
	if !m.color || s == "" {
		return s
	}
	return style + s + reset
}

// head says whether work gets done, what is wrong, and how the queues stand.
func (m Model) head() []string {
	p := m.picture
	mark, style := "●", green
	switch {
	case !p.Working:
		mark, style = "✖", red
	case len(p.Findings) > 0:
		style = amber
	}
	lines := []string{m.paint(style, mark) + " " + m.paint(bold, m.cutBy(terminal.OneLine(p.Summary), 2))}
	const most = 3
	for i, f := range p.Findings {
		if i == most {
			lines = append(lines, m.paint(faint, fmt.Sprintf("  and %d more: `daybook doctor`", len(p.Findings)-most)))
			break
		}
		style := amber
		if f.Severity == health.Critical {
			style = red
		}
		lines = append(lines, "  "+m.paint(style, string(f.Code))+" "+m.cutBy(terminal.OneLine(f.Says), len(f.Code)+3))
	}
	lines = append(lines, "")
	return append(lines, m.table([]column{
		{"QUEUE", false},
		{"LANES", false},
		{"DUE", true},
		{"WAITING", true},
		{"LEASED", true},
		{"FAILED", true},
		{"OLDEST", true},
		{"DONE/S", true},
		{"ERRORS/MIN", true},
		{"P50", true},
		{"P95", true},
		{"LAST HOUR", false},
	}, len(p.Queues), func(i int) []string {
		return append([]string{p.Queues[i].Kind, lanesOf(p, p.Queues[i].Kind)}, figuresOf(p.Queues[i])...)
	})...)
}

// lanesOf says what the workflow of a kind does: how many of its lanes work on a turn, or why none
// does.
func lanesOf(p Picture, kind string) string {
	for _, w := range p.Workflows {
		switch {
		case w.Kind != kind:
		case w.State != health.Running:
			return "no workflow"
		case w.Status == nil:
			return "no answer"
		case w.Status.Paused:
			return "paused"
		default:
			return fmt.Sprintf("%d of %d", w.Status.Lanes, w.Status.Settings.Concurrency)
		}
	}
	return "–"
}

func figuresOf(r Row) []string {
	about := ""
	if r.Estimated {
		about = "≈"
	}
	cells := []string{
		about + count(r.Due), about + count(r.Waiting), count(r.Leased), count(r.Failed), seconds(r.OldestDueSeconds),
		rate(r.CompletedPerSecond), rate(r.FailedPerMinute),
		seconds(r.LatencyP50), seconds(r.LatencyP95),
	}
	return append(cells, spark(r.Completed))
}

func (m Model) tabs() string {
	parts := make([]string, views)
	for i, name := range viewNames {
		label := strconv.Itoa(i+1) + " " + name
		if view(i) == m.view {
			label = m.paint(bold, "["+label+"]")
		} else {
			label = m.paint(faint, " "+label+" ")
		}
		parts[i] = label
	}
	return strings.Join(parts, " ")
}

// list is the chosen list, from the row that it was scrolled to, at most so many rows.
func (m Model) list(most int) []string {
	p := m.picture
	if m.rows() == 0 {
		return []string{m.paint(faint, [views]string{
			"No type of job or task has open or failed jobs, and none was worked in the last hour.",
			"Nothing failed in the last hour, and there are no dead letters.",
			"No organization has open or failed jobs.", "No worker holds a lease. Short jobs need none.",
		}[m.view])}
	}
	from := max(min(m.from, m.rows()-1), 0)
	n := min(m.rows()-from, most)
	switch m.view {
	case byType:
		return m.table([]column{
			{"TYPE", false},
			{"KIND", false},
			{"DUE", true},
			{"WAITING", true},
			{"LEASED", true},
			{"FAILED", true},
			{"OLDEST", true},
			{"DONE/S", true},
			{"ERRORS/MIN", true},
			{"P50", true},
			{"P95", true},
			{"OWNER", false},
		}, n, func(i int) []string {
			r := p.Types[from+i]
			cells := append([]string{r.Type, r.Kind}, figuresOf(r)...)
			cells[len(cells)-1] = r.Owner
			return cells
		})
	case byCode:
		return m.table([]column{
			{"KIND", false},
			{"TYPE", false},
			{"CODE", false},
			{"FAILED", true},
			{"RETRIED", true},
			{"DEAD LETTERS", true},
			{"OWNER", false},
		}, n, func(i int) []string {
			f := p.Failures[from+i]
			return []string{
				f.Kind, f.Type, cmp.Or(f.Code, "(without a code)"), count(f.Failed), count(f.Retried),
				count(f.Waiting), f.Owner,
			}
		})
	case byOrganization:
		return m.table([]column{
			{"ORGANIZATION", false},
			{"QUEUE", false},
			{"PENDING", true},
			{"LEASED", true},
			{"FAILED", true},
			{"LIMITS", false},
		}, n, func(i int) []string {
			o := p.Organizations[from+i]
			return []string{o.OrgID, o.Kind, count(o.Pending), count(o.Leased), count(o.Failed), limits(o)}
		})
	case byWorker:
		return m.table([]column{
			{"WORKER", false},
			{"QUEUE", false},
			{"JOBS", true},
			{"WORKING", true},
			{"EXPIRED", true},
			{"RENEWED", true},
			{"TURN", false},
		}, n, func(i int) []string {
			l := p.Leases[from+i]
			return []string{
				l.Worker, l.Kind, count(l.Jobs), count(l.Working), count(l.Expired),
				phrase.Age(p.At.Sub(l.Renewed)) + " ago", l.Turn,
			}
		})
	case views:
	}
	return nil
}

func limits(o Organization) string {
	var said []string
	if o.Paused {
		said = append(said, "paused")
	}
	if o.Cap != nil {
		said = append(said, "cap "+strconv.Itoa(*o.Cap))
	}
	if o.Rated {
		said = append(said, "rate")
	}
	return strings.Join(said, ", ")
}

// foot says what the keys do, and how old what is shown is.
func (m Model) foot() string {
	state := "read " + m.picture.SampledAt.Local().Format(time.TimeOnly)
	switch {
	case m.err != nil:
		state = "cannot be read any more: " + terminal.OneLine(m.err.Error())
	case m.held:
		state = "held; p goes on"
	}
	return m.paint(faint, m.cut("q quit  p hold  1-4 or tab list  ↑↓ scroll   "+state))
}

type column struct {
	name  string
	right bool
}

// table writes rows under a head, each column as wide as its widest cell, cut where the screen
// ends.
func (m Model) table(columns []column, n int, row func(int) []string) []string {
	cells := make([][]string, n+1)
	for _, c := range columns {
		cells[0] = append(cells[0], c.name)
	}
	for i := range n {
		for _, cell := range row(i) {
			cells[i+1] = append(cells[i+1], terminal.OneLine(cell))
		}
	}
	width := make([]int, len(columns))
	for _, r := range cells {
		for i, cell := range r {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	lines := make([]string, len(cells))
	for n, r := range cells {
		var b strings.Builder
		for i, cell := range r {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if columns[i].right {
				cell, pad = pad+cell, ""
			}
			b.WriteString(cell + pad + "  ")
		}
		lines[n] = m.cut(strings.TrimRight(b.String(), " "))
	}
	lines[0] = m.paint(faint, lines[0])
	return lines
}

// cut ends a line where the screen ends.
func (m Model) cut(s string) string { return m.cutBy(s, 0) }

// cutBy leaves room for what stands before the text.
func (m Model) cutBy(s string, before int) string {
	width := m.width - before
	if m.width <= 0 || utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:max(width-1, 0)]) + "…"
}

func count(n int64) string {
	switch {
	case n == 0:
		return "·"
	case n >= 10_000_000:
		return strconv.FormatInt(n/1_000_000, 10) + "M"
	case n >= 100_000:
		return strconv.FormatInt(n/1000, 10) + "k"
	}
	return strconv.FormatInt(n, 10)
}

func rate(perUnit float64) string {
	switch {
	case perUnit == 0:
		return "·"
	case perUnit >= 100:
		return strconv.FormatFloat(perUnit, 'f', 0, 64)
	case perUnit >= 1:
		return strconv.FormatFloat(perUnit, 'f', 1, 64)
	}
	return strconv.FormatFloat(perUnit, 'f', 2, 64)
}

func seconds(s float64) string {
	if s <= 0 {
		return "·"
	}
	return phrase.Duration(time.Duration(s * float64(time.Second)))
}

// spark draws numbers as a line of bars, three minutes each.
func spark(minutes []int64) string {
	const each = 3
	var sums []int64
	for end := len(minutes); end > 0; end -= each {
		sum := int64(0)
		for _, n := range minutes[max(end-each, 0):end] {
			sum += n
		}
		sums = append([]int64{sum}, sums...)
	}
	most := int64(1)
	for _, n := range sums {
		most = max(most, n)
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, n := range sums {
		if n == 0 {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(bars[int(n*int64(len(bars)-1)/most)])
	}
	return b.String()
}
