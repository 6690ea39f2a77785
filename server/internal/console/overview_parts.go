package console

import (
	"cmp"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/models"
)

// findingLine is a finding with where to look.
type findingLine struct {
	health.Finding
	// Look is the address of the jobs that it is about, Example that of one of them; empty: there is
	// none.
	Look, Example string
}

// About names the kinds of queues that it is about.
func (l findingLine) About() string { return phrase.And(l.AboutKinds()) }

func newFindingLine(r *request, f health.Finding) findingLine {
	line := findingLine{Finding: f}
	switch f.Code {
	case health.FailedJobs:
		line.Look = listAddress(r, f.Kind, f.Type, f.ErrorCode, models.JobFailed)
	case health.RetryingJobs, health.HandlerMissing, health.OldestDue, health.BacklogGrows:
		line.Look = listAddress(r, f.Kind, f.Type, f.ErrorCode, models.JobPending)
	case health.StaleLeases, health.NoWorker, health.WorkflowPaused, health.WorkflowEnded, health.WorkflowNotStarted,
		health.TurnsFailing:
		if r.Token.OrgID == nil { // the page is about all organizations
			line.Look = r.link("workers")
		}
	case health.OrganizationPaused, health.CapReached, health.SourceMissing, health.TypePaused:
		line.Look = r.link("organizations")
	case health.ScheduleClocks:
		line.Look = r.link("schedules")
	case health.NoToken:
		line.Look = r.link("tokens")
	case health.SequenceHeld:
		line.Look = listAddress(r, "jobs", f.Type, f.ErrorCode, models.JobFailed)
	default: // no page shows more of it
	}
	if f.Queue != "" && r.Token.OrgID == nil {
		line.Look = r.link(joinPath("queues", f.Queue))
	}
	if f.Example != "" && f.Kind != "accounting" {
		line.Example = r.link(joinPath(f.Kind, f.Example))
	}
	return line
}

// listAddress is that of the list of a kind's jobs in a state.
func listAddress(r *request, kind, jobType, code string, state models.JobState) string {
	if kind == "accounting" {
		jobType = ""
	}
	word := string(state)
	if kind == "tasks" && state == models.JobPending {
		word = string(models.TaskReady)
	}
	return r.link(kind, "state", word, "type", jobType, "code", code)
}

// codeWords writes what is between backticks as code.
func codeWords(text string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			b.WriteString("<code>" + template.HTMLEscapeString(part) + "</code>")
		} else {
			b.WriteString(template.HTMLEscapeString(part))
		}
	}
	return template.HTML(b.String()) //nolint:gosec // every part is escaped
}

// queueCard is how one kind of queue stands and stood.
type queueCard struct {
	figures.Kind
	// Gauges says that the counts are known.
	Gauges bool
	// Completed and Failed count attempts of the period, Retried those that will be tried again.
	Completed, Failed, Retried int64
	// P50 and P95 are from ready to completed.
	P50, P95 time.Duration
	Charts   []chart
	Rows     []stepRow
	// PerMinute is how many were completed in a minute, on average.
	PerMinute float64
}

// stepRow is a step of a card's charts, in numbers.
type stepRow struct {
	At                     string
	Completed, Failed, Due int64
	P95                    time.Duration
}

// Approx marks a count that is an estimate.
func (q queueCard) Approx(state string) string {
	if slices.Contains(q.Estimated, state) {
		return "≈"
	}
	return ""
}

// endedBadly are the outcomes of attempts that a person may have to look into.
func endedBadly(outcome string) bool { return outcome == "failed" || outcome == "reclaimed" }

func newQueueCard(steps axis, k figures.Kind, bars []figures.Bar, depths []figures.Depth, gauges bool) queueCard {
	q := queueCard{Kind: k, Gauges: gauges}
	good, bad, due, late := make([]float64, steps.n), make([]float64, steps.n), make([]float64, steps.n),
		make([]float64, steps.n)
	waited := make([]figures.Distribution, steps.n)
	var all figures.Distribution
	for i := range bars {
		b := &bars[i]
		at := steps.index(b.At)
		if b.Kind != k.Kind || at < 0 {
			continue
		}
		switch {
		case b.Outcome.Outcome == "completed":
			q.Completed += b.Count
			good[at] += float64(b.Count)
			waited[at].Add(b.Waited)
			all.Add(b.Waited)
		case b.Outcome.Outcome == "retried":
			q.Retried += b.Count
		case endedBadly(b.Outcome.Outcome):
			q.Failed += b.Count
			bad[at] += float64(b.Count)
		}
	}
	for i := range depths {
		if at := steps.index(depths[i].At); depths[i].Kind == k.Kind && at >= 0 {
			due[at] = max(due[at], float64(depths[i].Due))
		}
	}
	for i := range steps.n {
		late[i] = waited[i].Quantile(0.95).Seconds()
		if good[i]+bad[i]+due[i] > 0 {
			q.Rows = append(q.Rows, stepRow{
				At: steps.label(i), Completed: int64(good[i]), Failed: int64(bad[i]), Due: int64(due[i]),
				P95: waited[i].Quantile(0.95),
			})
		}
	}
	q.P50, q.P95 = all.Quantile(0.5), all.Quantile(0.95)
	q.PerMinute = float64(q.Completed) / (steps.step * time.Duration(steps.n)).Minutes()
	q.draw(steps, good, bad, due, late)
	return q
}

// draw makes the card's charts; a kind that did nothing and has nothing to do has none.
func (q *queueCard) draw(steps axis, good, bad, due, late []float64) {
	per := strings.NewReplacer(" 0 s", "", " 0 min", "").Replace(" in " + phrase.Duration(steps.step))
	if steps.step == time.Minute {
		per = " a minute"
	}
	add := func(id, title, says string, c chart) {
		c.ID, c.Title, c.Says, c.From, c.To = q.Kind.Kind+"-"+id, title, says, steps.label(0), "now"
		q.Charts = append(q.Charts, c)
	}
	goodPath, badPath, most := steps.bars(good, bad)
	line, area, deepest := steps.lines(due)
	slow, below, slowest := steps.lines(late)
	if most == 0 && deepest == 0 {
		return
	}
	add("done", "Worked", "Jobs completed and, in red, failed.",
		chart{Good: goodPath, Bad: badPath, Most: "up to " + number(int64(most)) + per})
	if q.Gauges {
		add("due", "Due", "Jobs that waited to be worked.",
			chart{Line: line, Area: area, Most: "up to " + number(int64(deepest))})
	}
	add("late", "Ready to completed, P95", "The time within which 95 of 100 jobs were completed.", chart{
		Line: slow, Area: below, Most: "up to " + phrase.Duration(time.Duration(slowest*float64(time.Second))),
	})
}

// failureLine is what failed, by type and code.
type failureLine struct {
	Kind, Type, Code, Owner string
	// Dead counts the dead letters that there are now, Failed and Retried attempts of the period.
	Dead, Failed, Retried int64
	// Look is the address of the dead letters' list.
	Look string
}

// failureLines joins the dead letters that there are with what failed in the period, the most
// first.
func failureLines(r *request, gauges figures.Gauges, bars []figures.Bar, all bool) []failureLine {
	if !all {
		gauges = figures.Gauges{}
	}
	failures := figures.FailuresOf(gauges, bars)
	list := make([]failureLine, len(failures))
	for i, f := range failures {
		list[i] = failureLine{
			Kind: f.Kind, Type: f.Type, Code: f.Code, Owner: f.Owner, Dead: f.Dead, Failed: f.Failed + f.Reclaimed,
			Retried: f.Retried,
			Look:    listAddress(r, f.Kind, f.Type, f.Code, models.JobFailed),
		}
	}
	slices.SortFunc(list, func(a, b failureLine) int {
		return cmp.Or(cmp.Compare(b.Dead, a.Dead), cmp.Compare(b.Failed, a.Failed), cmp.Compare(b.Retried, a.Retried),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Code, b.Code))
	})
	return list[:min(len(list), 20)]
}
