package health

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

// The names of the checks of Temporal.
const (
	checkTemporal  = "Temporal"
	checkWorkflows = "workflows"
	checkWorkers   = "workers"
)

// noPoller begins what is said when no worker polls at all.
const noPoller = "No worker polls "

// temporal makes findings of what Temporal said. It comes after the database, which says what
// waits.
func (p *probe) temporal(a temporalAnswer) {
	if !a.asked {
		p.skip(checkTemporal, checkWorkflows, checkWorkers, checkSchedules)
		return
	}
	p.check(checkTemporal, func() ([]Finding, error) {
		switch {
		case a.err == nil && !a.slowly:
			return nil, nil
		case a.err == nil || tookTooLong(a.err) && p.worked(kinds(), workedLately):
			return []Finding{p.temporalSlow(a)}, nil
		}
		return []Finding{p.temporalUnavailable(a)}, nil
	})
	p.checked[len(p.checked)-1].TookMS = a.took.Milliseconds()
	if a.err != nil {
		p.skip(checkWorkflows, checkWorkers, checkSchedules)
		return
	}
	p.states = a.states
	p.check(checkWorkflows, func() (found []Finding, _ error) {
		for _, s := range a.states {
			found = append(found, p.workflow(s)...)
		}
		return found, nil
	})
	p.check(checkWorkers, func() (found []Finding, _ error) {
		for _, s := range a.states {
			found = append(found, p.workers(s)...)
		}
		return found, nil
	})
	switch {
	case p.OrgID != "": // an organization is not told of others' schedules
	case a.unlisted != nil && a.slowly:
		p.skip(checkSchedules)
	default:
		p.check(checkSchedules, func() ([]Finding, error) { return p.clocks(a.schedules), a.unlisted })
	}
}

const (
	// workedLately is how long ago a job was completed at most that Temporal is taken to be there,
	// and busy, when it does not answer in time. Turns that run when it becomes unavailable end
	// within seconds.
	workedLately = 30 * time.Second
	// reclaimedWithin is after what time at most another worker has reclaimed what one that ended
	// held.
	reclaimedWithin = 15 * time.Second
)

// worked reports whether a job of one of the kinds was completed within a span.
func (p *probe) worked(kinds []string, within time.Duration) bool {
	return slices.ContainsFunc(kinds, func(kind string) bool {
		last := p.lastDone[kind]
		return !last.IsZero() && p.clock().Sub(last) < within
	})
}

// temporalNamed is Temporal with its address.
func (p *probe) temporalNamed() string {
	if p.TemporalAddress == "" {
		return "Temporal"
	}
	return "Temporal at " + p.TemporalAddress
}

// temporalSlow says that Temporal answers late, or that it must be there though it does not answer:
// jobs are completed.
func (p *probe) temporalSlow(a temporalAnswer) Finding {
	f := Finding{Code: AnswersSlowly, Severity: Info}
	f.Says = fmt.Sprintf("%s answers slowly: its answer took %s.", p.temporalNamed(), phrase.Duration(a.took))
	f.Todo = "If it stays so (`daybook doctor` asks anew), look how busy its machine and its database are."
	if a.err != nil {
		f.Severity = Warning
		f.Says = fmt.Sprintf("%s answers slowly: no answer came within %s, though jobs were completed less than %s ago. "+
			"Workflows and workers were not looked at.",
			p.temporalNamed(), phrase.Duration(a.took), phrase.Duration(workedLately))
	}
	return f
}

// temporalUnavailable says why Temporal cannot be asked. Turns that run go on to their end, and no
// other begins.
func (p *probe) temporalUnavailable(a temporalAnswer) Finding {
	f := Finding{Code: TemporalUnavailable, Severity: Critical}
	err, at := a.err, p.temporalNamed()
	namespace := cmp.Or(p.Namespace, client.DefaultNamespace)
	var missing *serviceerror.NamespaceNotFound
	var denied *serviceerror.PermissionDenied
	switch {
	case errors.As(err, &missing):
		f.Says = fmt.Sprintf("%s has no namespace %q.", at, namespace)
		f.Todo = "Create it: `temporal operator namespace create --namespace " + shell(namespace) +
			"`, or set TEMPORAL_NAMESPACE."
	case errors.As(err, &denied), strings.Contains(err.Error(), "Unauthenticated"):
		f.Says = fmt.Sprintf("%s refuses access to namespace %q: %s.", at, namespace, sentence(err))
		f.Todo = "Check TEMPORAL_API_KEY and the TLS settings (TEMPORAL_TLS…)."
	case tookTooLong(err):
		f.Says = fmt.Sprintf("%s did not answer within %s: it is unavailable, or too busy to answer.", at,
			phrase.Duration(a.took))
		f.Todo = "Check that it runs and that TEMPORAL_ADDRESS names it. Jobs are kept in the database; workers go on by " +
			"themselves when it answers."
	default:
		f.Says = at + " does not answer: " + sentence(err) + "."
		f.Todo = "Check that it runs and that TEMPORAL_ADDRESS names it. Jobs are kept in the database; workers go on by " +
			"themselves when it answers."
	}
	return f
}

// severity is that of something that stops a kind: critical when work waits for it or may.
func (p *probe) severity(kind string) Severity {
	switch {
	case !p.known[kind], p.open[kind]:
		return Critical
	case p.used[kind]:
		return Warning
	}
	return Info
}

// workflow looks at a kind's workflow.
func (p *probe) workflow(s WorkflowState) []Finding {
	f := Finding{Kind: s.Kind, Severity: p.severity(s.Kind), Since: s.ClosedAt}
	start := "`daybook workflow start --kind " + s.Kind + "`"
	switch s.State {
	case NeverStarted:
		f.Code = WorkflowNotStarted
		f.Says = fmt.Sprintf("The workflow of %s (%s) was never started.", s.Kind, s.ID)
		f.Todo = "Start it: " + start + "."
		f.cause, f.about = "never", func(kinds []string) (says, todo string) {
			command := "daybook workflow start"
			if len(kinds) < len(store.Queues()) {
				command += " " + strings.Join(kinds, " ")
			}
			return fmt.Sprintf("The workflows of %s were never started.", phrase.And(kinds)), "Start them: `" + command + "`."
		}
		return []Finding{f}
	case Ended:
		f.Code = WorkflowEnded
		when := ""
		if s.ClosedAt != nil {
			when = " " + phrase.Age(p.clock().Sub(*s.ClosedAt)) + " ago"
		}
		f.Says = fmt.Sprintf("The workflow of %s (%s) %s%s.", s.Kind, s.ID, s.Ended, when)
		f.Todo = "Start it again: " + start + "."
		return []Finding{f}
	case Running:
	}
	var found []Finding
	if s.Paused {
		f.Code, f.Since = WorkflowPaused, s.PausedSince
		is := "is paused"
		if s.PausedSince != nil {
			is = "has been paused for " + phrase.Age(p.clock().Sub(*s.PausedSince))
		}
		if f.Severity == Info {
			f.Severity = Warning
		}
		f.Says = fmt.Sprintf("The workflow of %s %s: no %s begins.", s.Kind, is, jobWords(f)[0])
		f.Todo = "Resume it when its jobs may be worked: `daybook workflow resume --kind " + s.Kind + "`."
		if s.Unpaused != "" && s.Unpaused != s.ID {
			f.Severity = Warning
			f.Says = fmt.Sprintf("The workflow of %s (%s) %s, but %s runs too and is not paused: its %s are worked.", s.Kind,
				s.ID, is, s.Unpaused, jobWords(f)[1])
			f.Todo = "Pause all of them, if no job may be worked: `daybook workflow pause --kind " + s.Kind + "`; or " +
				lowerFirst(f.Todo)
		}
		found = append(found, f)
	}
	return append(found, p.failing(s)...)
}

// troubleFrom is from when on a worker that waits for the database is named: shorter outages pass.
const troubleFrom = 5 * time.Second

// failing looks for activities that fail again and again.
func (p *probe) failing(s WorkflowState) []Finding {
	const fewAttempts = 3
	var found []Finding
	if t := s.Trouble; t != nil && p.clock().Sub(t.Since) > troubleFrom {
		return append(found, p.troubled(s.Kind, *t))
	}
	for _, r := range s.Retrying {
		if r.Attempt <= fewAttempts {
			continue
		}
		f := Finding{
			Code: TurnsFailing, Severity: p.severity(s.Kind), Kind: s.Kind, Count: int64(r.Attempt),
			Since: store.TimeOrNil(r.Since),
		}
		if f.Severity == Info {
			f.Severity = Warning
		}
		f.Says = fmt.Sprintf("The turns of %s fail: %s is at attempt %d. The last failure: %s", s.Kind, r.Type, r.Attempt,
			ended(clip(r.Failure, 300)))
		f.Todo = "Mend what the failure names; it is tried again every five seconds. `daybook workflow show --kind " +
			s.Kind + "` has more, the worker's log the rest."
		found = append(found, f)
		break // the lanes fail for the same
	}
	return found
}

// troubled is the finding of turns that wait for the database. It is one for all kinds, and stands
// behind what is known of the database itself.
func (p *probe) troubled(kind string, t models.TurnTrouble) Finding {
	f := Finding{
		Code: TurnsFailing, Severity: p.severity(kind), Kind: kind, Since: store.TimeOrNil(t.Since), follows: true,
	}
	if f.Severity == Info {
		f.Severity = Warning
	}
	says, wait := t.Says, "wait for the database"
	f.Todo = "They go on by themselves when it answers. If it answers here, look at the address in the worker's " +
		"environment and at what is between the two; a worker with another environment has to be restarted."
	switch {
	case diskFull(says):
		wait += ", which has no room on its disk"
		says, _, _ = strings.Cut(says, ". "+store.DiskAdvice) // the worker says as well what to do
		f.Todo = store.DiskAdvice
	case strings.Contains(says, "(SQLSTATE 28") || strings.Contains(says, "(SQLSTATE 42501)"):
		f.Todo = "Mend the password or the rights of the worker's role. It is tried again all the time; a worker with " +
			"another environment has to be restarted."
	case strings.Contains(says, "(SQLSTATE 53300)"):
		f.Todo = store.ConnectionsAdvice
	}
	says = ended(clip(says, 300))
	f.cause, f.about = "trouble: "+f.Todo, func(kinds []string) (string, string) {
		after, the := p.failedOver(), "The"
		if after != "" {
			after, the = after+", ", "the"
		}
		return fmt.Sprintf("%s%s worker's turns of %s %s: %s", after, the, phrase.And(kinds), wait, says), f.Todo
	}
	f.Says, f.Todo = f.about([]string{kind})
	return f
}

// startGrace is for how long after its workflow's start a worker may be about to poll for the first
// time.
const startGrace = 15 * time.Second

// workers looks whether workers poll for a kind, and answer.
func (p *probe) workers(s WorkflowState) []Finding {
	live := s.Live(p.clock())
	if s.Answered || s.State != Running && live > 0 {
		return nil
	}
	if live > 0 && p.worked([]string{s.Kind}, reclaimedWithin) {
		words := jobWords(Finding{Kind: s.Kind})
		return []Finding{{
			Code: AnswersSlowly, Severity: Info, Kind: s.Kind, Since: store.TimeOrNil(p.lastDone[s.Kind]),
			Says: fmt.Sprintf("The workers of %s answer slowly: %s did not say in time how the workflow stands, though %s "+
				"were completed less than %s ago.",
				s.Kind, clip(s.Workers[0].Name, 80), words[1], phrase.Duration(reclaimedWithin)),
			Todo: "If it stays so (`daybook doctor` asks anew), look how busy the worker's machine is.",
		}}
	}
	f := Finding{Code: NoWorker, Severity: p.severity(s.Kind), Kind: s.Kind, Todo: "Start `daybook worker`."}
	if s.State == Running && f.Severity == Info {
		f.Severity = Warning
	}
	if len(s.Workers) > 0 {
		f.Since = store.TimeOrNil(s.Workers[0].LastPoll)
	}
	switch {
	case live > 0:
		f.Todo = "Look whether the process runs and what its log says; start `daybook worker` if it does not."
		f.noneAnswers(p.taskQueues, clip(s.Workers[0].Name, 80), phrase.Age(p.clock().Sub(s.Workers[0].LastPoll)))
	case len(s.Workers) > 0:
		name, ago := clip(s.Workers[0].Name, 80), phrase.Age(p.clock().Sub(s.Workers[0].LastPoll))
		f.nonePolls(p.taskQueues, ": the last one, "+name+", polled "+ago+" ago.")
	case s.State == Running && s.StartedAt != nil && p.clock().Sub(*s.StartedAt) < startGrace:
		f.stalled, f.Severity = f.Severity == Critical, Warning
		f.Todo = "Start `daybook worker`, unless one is starting: it polls within seconds."
		f.nonePolls(p.taskQueues, " yet: the workflow was started "+phrase.Age(p.clock().Sub(*s.StartedAt))+" ago.")
	default:
		f.nonePolls(p.taskQueues, ".")
	}
	return []Finding{f}
}

// nonePolls says that no worker polls the task queue, or those of several kinds, and what is known
// besides.
func (f *Finding) nonePolls(taskQueues func(kinds []string) []string, besides string) {
	todo := f.Todo
	f.cause, f.about = "none polls", func(kinds []string) (says, do string) {
		return noPoller + phrase.And(taskQueues(kinds)) + besides, todo
	}
	f.Says, f.Todo = f.about([]string{f.Kind})
}

// noneAnswers says that a worker which polled the task queue, or those of several kinds, does not
// answer.
func (f *Finding) noneAnswers(taskQueues func(kinds []string) []string, name, ago string) {
	todo := f.Todo
	f.cause, f.about = "none answers, as "+name, func(kinds []string) (says, do string) {
		return fmt.Sprintf("No worker answers for %s, though %s polled %s %s ago: it has ended, or is overloaded.",
			phrase.And(kinds), name, phrase.And(taskQueues(kinds)), ago), todo
	}
	f.Says, f.Todo = f.about([]string{f.Kind})
}

// taskQueues are the task queues of kinds, as Temporal knows their workflows.
func (p *probe) taskQueues(kinds []string) (names []string) {
	for _, kind := range kinds {
		i := slices.IndexFunc(p.states, func(s WorkflowState) bool { return s.Kind == kind })
		names = append(names, p.states[i].TaskQueue)
	}
	return names
}
