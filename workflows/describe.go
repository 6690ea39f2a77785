package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/activities"
)

// describe writes what the Temporal UI shows on the run's page.
func (a *run) describe() {
	var b strings.Builder
	s := a.state.Settings
	mode := "running"
	switch {
	case a.draining:
		mode = "draining"
	case a.state.Paused:
		mode = "paused"
	case a.state.IdleSince != nil:
		mode = "idle since " + a.state.IdleSince.UTC().Format(time.RFC3339)
	}
	fmt.Fprintf(&b, "**%s**, %d lanes, batch %d, poll %d s\n\n", mode, s.Concurrency, s.BatchSize, s.PollIntervalSeconds)
	if t := a.state.LastTurn; t != nil {
		fmt.Fprintf(&b, "last turn (lane %d, %s): %s\n\n", t.Lane, t.At.UTC().Format(time.RFC3339), say(t.Report))
	}
	c := a.state.Counts
	fmt.Fprintf(&b, "in %d turns since %s: leased %d, completed %d, retried %d, rescheduled %d, failed %d, cancelled %d, lost %d, released %d",
		c.Turns, a.state.StartedAt.UTC().Format(time.RFC3339), c.Leased, c.Completed, c.Retried, c.Rescheduled, c.Failed, c.Cancelled, c.Lost, c.Released)
	workflow.SetCurrentDetails(a.laneCtx, b.String())
}

// say puts a turn's counts into words, without those that are zero.
func say(r activities.ProcessOutput) string {
	words := []string{fmt.Sprintf("leased %d", r.Leased)}
	for _, w := range []struct {
		name string
		n    int
	}{
		{"completed", r.Completed},
		{"retried", r.Retried},
		{"rescheduled", r.Rescheduled},
		{"failed", r.Failed},
		{"cancelled", r.Cancelled},
		{"lost", r.Lost},
		{"released", r.Released},
	} {
		if w.n > 0 {
			words = append(words, fmt.Sprintf("%s %d", w.name, w.n))
		}
	}
	return strings.Join(words, ", ")
}
