package health

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/phrase"
	"github.com/daybook-dev/daybook/internal/store"
)

// The names of the checks of Temporal.
const (
	checkTemporal  = "Temporal"
	checkWorkflows = "workflows"
	checkWorkers   = "workers"
)

// noPoller begins what is said when no worker polls at all.
const noPoller = "No worker polls "

// temporal makes findings of what Temporal said. It comes after the database, which says what waits.
func (p *probe) temporal(a temporalAnswer) {
	if !a.asked {
		p.skip(checkTemporal, checkWorkflows, checkWorkers)
		return
	}
	p.check(checkTemporal, func() ([]Finding, error) {
		if a.err == nil {
			return nil, nil
		}
		return []Finding{p.temporalUnavailable(a.err)}, nil
	})
	p.checked[len(p.checked)-1].TookMS = a.took.Milliseconds()
	if a.err != nil {
		p.skip(checkWorkflows, checkWorkers)
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
}

// temporalUnavailable says why Temporal cannot be asked. Turns that run go on to their end, and no other begins.
func (p *probe) temporalUnavailable(err error) Finding {
	f := Finding{Code: TemporalUnavailable, Severity: Critical}
	at := "Temporal"
	if p.TemporalAddress != "" {
		at += " at " + p.TemporalAddress
	}
	namespace := cmp.Or(p.Namespace, client.DefaultNamespace)
	var missing *serviceerror.NamespaceNotFound
	var denied *serviceerror.PermissionDenied
	switch {
	case errors.As(err, &missing):
		f.Says = fmt.Sprintf("%s has no namespace %q.", at, namespace)
		f.Todo = "Create it with `temporal operator namespace create`, or set TEMPORAL_NAMESPACE."
	case errors.As(err, &denied), strings.Contains(err.Error(), "Unauthenticated"):
		f.Says = fmt.Sprintf("%s refuses access to namespace %q: %s.", at, namespace, sentence(err))
		f.Todo = "Check TEMPORAL_API_KEY and the TLS settings (TEMPORAL_TLS…)."
	default:
		f.Says = at + " does not answer: " + sentence(err) + "."
		f.Todo = "Check that it runs and that TEMPORAL_ADDRESS names it. Jobs are kept in the database; workers go on by themselves when it answers."
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
		since := ""
		if s.PausedSince != nil {
			since = ", since " + phrase.Age(p.clock().Sub(*s.PausedSince))
		}
		if f.Severity == Info {
			f.Severity = Warning
		}
		f.Says = fmt.Sprintf("The workflow of %s is paused%s.", s.Kind, since)
		f.Todo = "Resume it when its jobs may be worked: `daybook workflow resume --kind " + s.Kind + "`."
		if s.Unpaused != "" && s.Unpaused != s.ID {
			f.Severity = Warning
			f.Says = fmt.Sprintf("The workflow of %s (%s) is paused%s, but %s runs too, and is not: jobs are worked.", s.Kind, s.ID, since, s.Unpaused)
			f.Todo = "Pause all of them, if no job may be worked: `daybook workflow pause --kind " + s.Kind + "`; or " + lowerFirst(f.Todo)
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
		f := Finding{Code: TurnsFailing, Severity: p.severity(s.Kind), Kind: s.Kind, Since: store.TimeOrNil(t.Since)}
		if f.Severity == Info {
			f.Severity = Warning
		}
		f.Says = fmt.Sprintf("The worker's turns of %s wait for the database: %s", s.Kind, ended(clip(t.Says, 300)))
		f.Todo = "Mend what the database answers: the password and the rights of the worker's role, the address in the worker's environment, the limit of connections. It is tried again all " +
			"the time; a worker with another environment has to be restarted."
		if diskFull(t.Says) {
			// The worker says as well what to do.
			says, _, _ := strings.Cut(t.Says, ". "+store.DiskAdvice)
			f.Says = fmt.Sprintf("The worker's turns of %s wait for the database, which has no room on its disk: %s", s.Kind, ended(clip(says, 300)))
			f.Todo = store.DiskAdvice
		}
		return append(found, f)
	}
	for _, r := range s.Retrying {
		if r.Attempt <= fewAttempts {
			continue
		}
		f := Finding{Code: TurnsFailing, Severity: p.severity(s.Kind), Kind: s.Kind, Count: int64(r.Attempt), Since: store.TimeOrNil(r.Since)}
		if f.Severity == Info {
			f.Severity = Warning
		}
		f.Says = fmt.Sprintf("The turns of %s fail: %s is at attempt %d. The last failure: %s", s.Kind, r.Type, r.Attempt, ended(clip(r.Failure, 300)))
		f.Todo = "Mend what the failure names; it is tried again every five seconds. `daybook workflow show --kind " + s.Kind + "` has more, the worker's log the rest."
		found = append(found, f)
		break // the lanes fail for the same
	}
	return found
}

// startGrace is for how long after its workflow's start a worker may be about to poll for the first time.
const startGrace = 15 * time.Second

// workers looks whether workers poll for a kind, and answer.
func (p *probe) workers(s WorkflowState) []Finding {
	live := s.Live(p.clock())
	if s.Answered || s.State != Running && live > 0 {
		return nil
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
		f.Says = fmt.Sprintf("No worker answers for %s, though %s polled %s %s ago: it has ended, or is overloaded.",
			s.Kind, clip(s.Workers[0].Name, 80), s.TaskQueue, phrase.Age(p.clock().Sub(s.Workers[0].LastPoll)))
		f.Todo = "Look whether the process runs and what its log says; start `daybook worker` if it does not."
	case len(s.Workers) > 0:
		f.Says = fmt.Sprintf("%s%s: the last one, %s, polled %s ago.", noPoller, s.TaskQueue, clip(s.Workers[0].Name, 80), phrase.Age(p.clock().Sub(s.Workers[0].LastPoll)))
	case s.State == Running && s.StartedAt != nil && p.clock().Sub(*s.StartedAt) < startGrace:
		f.stalled, f.Severity = f.Severity == Critical, Warning
		f.Says = fmt.Sprintf("%s%s yet: its workflow was started %s ago.", noPoller, s.TaskQueue, phrase.Age(p.clock().Sub(*s.StartedAt)))
		f.Todo = "Start `daybook worker`, unless one is starting: it polls within seconds."
	default:
		f.Says = noPoller + s.TaskQueue + "."
	}
	return []Finding{f}
}
