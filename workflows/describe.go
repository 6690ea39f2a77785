package workflows

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/models"
)

// describe writes what the Temporal UI shows as the run's current details. It keeps to what every
// UI of Temporal shows alike: paragraphs, bold and lists, no tables; and to lines that fit the box.
func (a *run) describe() {
	var b strings.Builder
	s, c := a.state.Settings, a.state.Counts
	fmt.Fprintf(&b, "**%s**\n\n", a.mode())
	if t := a.state.LastTurn; t != nil {
		fmt.Fprintf(&b, "- Last turn (lane %d, %s): %s\n", t.Lane, clock(t.At), say(t.Report))
	}
	fmt.Fprintf(&b, "- Since %s: %s in %s\n", clock(a.state.StartedAt), sayCounts(c), count(c.Turns, "turn"))
	fmt.Fprintf(&b, "- Settings: %s, %s at a time, waits %d s for work"+boxEnd, count(int64(s.Concurrency), "lane"),
		count(int64(s.BatchSize), "job"), s.PollIntervalSeconds)
	workflow.SetCurrentDetails(a.laneCtx, b.String())
}

// turnSummary is the summary of a turn's activity. A summary is fixed when its activity is
// scheduled, before the activity does anything: so what a turn did is told by its result, and by
// the lane's next summary.
func (l *lane) turnSummary(waits bool) string {
	next := "works what is due, for up to %d s"
	if waits {
		next = "waits for work, and works for up to %d s"
	}
	return l.summary(fmt.Sprintf("turn %d "+next, l.turnNumber, turnSeconds))
}

// summary says what the lane's last turn did, unless that was told already, and what comes next.
func (l *lane) summary(next string) string {
	if l.said != "" {
		next = l.said + "; " + next
		l.said = ""
	}
	return fmt.Sprintf("lane %d: %s", l.number, next)
}

// mode is what the run is doing, in one line.
func (a *run) mode() string {
	switch {
	case a.draining:
		return "Draining: running turns end, none begins"
	case a.state.Paused && a.state.PausedSince != nil:
		return "Paused since " + clock(*a.state.PausedSince) + ": no turn begins until the signal resume"
	case a.state.Paused:
		return "Paused: no turn begins until the signal resume"
	case a.state.IdleSince != nil:
		return "Idle since " + clock(*a.state.IdleSince) + ": nothing is due"
	}
	return "Working"
}

// clock is a time as people read it.
func clock(t time.Time) string { return t.UTC().Format("2 Jan 15:04:05 UTC") }

// boxEnd ends a text for the Temporal UI: the UI makes its box lower than the text, and cuts off
// the last line. This one is blank.
const boxEnd = "\n\n\u00a0\n"

// say puts a turn's counts into words, without those that are zero.
func say(r models.TurnReport) string {
	var c models.RunCounts
	addJobs(&c, r)
	return sayCounts(c)
}

func sayCounts(c models.RunCounts) string {
	var ends []string
	for _, w := range []struct {
		name string
		n    int64
	}{
		{"completed", c.Completed},
		{"retried", c.Retried},
		{"rescheduled", c.Rescheduled},
		{"failed", c.Failed},
		{"cancelled", c.Cancelled},
		{"lost", c.Lost},
		{"released", c.Released},
	} {
		if w.n > 0 {
			ends = append(ends, thousands(w.n)+" "+w.name)
		}
	}
	jobs := count(c.Leased, "job")
	if len(ends) == 0 {
		return jobs
	}
	return jobs + " (" + strings.Join(ends, ", ") + ")"
}

// count is a number with its noun.
func count(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return thousands(n) + " " + noun
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
