package health

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/phrase"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/diagnosis"
)

const (
	// warnAfter is after what time a due job that nothing holds back is a warning: polls are up to ten seconds apart by default, a crash takes fifteen.
	warnAfter = time.Minute
	// criticalAfter is after what time it is critical.
	criticalAfter = 10 * time.Minute
	// named is how many organizations, types or queues have a finding of their own; what there is beyond is summed up in one.
	named = 10
)

// due looks at what is due in a kind and what holds it back.
func (p *probe) due(ctx context.Context, tx pgx.Tx, kind string) ([]Finding, error) {
	groups, err := diagnosis.DueJobs(ctx, tx, kind, p.OrgID)
	if err != nil {
		return nil, err
	}
	var found []Finding
	var total int64
	for _, g := range groups {
		total += g.Count
		f := Finding{Kind: kind, Type: g.Type, OrgID: g.OrgID, Count: g.Count, Since: store.TimeOrNil(g.Since), Example: g.ID, ExampleOrg: g.ExampleOrg}
		waits := p.clock().Sub(g.Since)
		switch g.Reason {
		case diagnosis.Paused:
			p.heldBack += g.Count
			found = append(found, p.pausedFinding(f, g, waits))
		case diagnosis.Capped:
			p.heldBack += g.Count
			found = append(found, cappedFinding(f, g, waits))
		case diagnosis.Unhandled:
			p.unhandled += g.Count
			found = append(found, missingFinding(f, waits))
		case diagnosis.Foreign:
			// A worker may read the source: the database does not say.
			if waits <= warnAfter {
				p.oldest = max(p.oldest, waits)
			} else {
				p.foreign += g.Count
				found = append(found, foreignFinding(f, g, waits))
			}
		case diagnosis.QueuePaused, diagnosis.QueueUnworked, diagnosis.QueueLimited:
			p.heldBack += g.Count
			found = append(found, p.queueFinding(f, g, waits))
		case diagnosis.Free:
			p.oldest = max(p.oldest, waits)
			if waits > warnAfter {
				found = append(found, oldestFinding(f, waits))
			}
		}
	}
	for i := range found {
		found[i].AtLeast = total >= diagnosis.Most
	}
	if total > 0 {
		p.known[kind], p.open[kind], p.used[kind] = true, true, true
		return found, nil
	}
	open, used, err := diagnosis.OpenOrUsed(ctx, tx, kind)
	p.known[kind], p.open[kind], p.used[kind] = err == nil, open, used
	return found, err
}

// sumUp leaves the first findings of each code, kind and sort of subject, and makes one of all that are beyond named: there may be a hundred thousand organizations, and thousands of
// types and queues.
func sumUp(found []Finding) []Finding {
	type sort struct {
		code     Code
		kind, of string
	}
	seen, rest := map[sort]int64{}, map[sort]*Finding{}
	kept := found[:0]
	for _, f := range found {
		s := sort{f.Code, f.Kind, f.subjects()}
		switch seen[s]++; {
		case s.of == "" || seen[s] <= named:
			kept = append(kept, f)
		case rest[s] == nil:
			rest[s] = &f
		default:
			rest[s].Count += f.Count
		}
	}
	for s, f := range rest {
		if n := seen[s] - named; n > 1 {
			f.OrgID, f.Type, f.Queue, f.ErrorCode, f.Since, f.summed = "", "", "", "", nil, true
			f.Says = fmt.Sprintf("%s more %s are so: %s.", phrase.Count(n), s.of, plural(f.Count, jobWords(*f)[0], jobWords(*f)[1]))
			f.Todo = "List them all: `" + map[string]string{"organizations": "daybook organizations list", "queues": "daybook queues list", "types": "daybook " + s.kind + " list"}[s.of] + "`."
		}
		kept = append(kept, *f)
	}
	return kept
}

// subjects is what there may be many of that have a finding as this one; empty: there is one, or few.
func (f Finding) subjects() string {
	switch {
	case f.Code == SequenceHeld: // is bounded where it is read
		return ""
	case f.Queue != "":
		return "queues"
	case f.OrgID != "":
		return "organizations"
	case f.Type != "":
		return "types"
	}
	return ""
}

func (p *probe) pausedFinding(f Finding, g diagnosis.Due, waits time.Duration) Finding {
	f.Severity, f.Since = Warning, store.TimeOrNil(g.HeldSince)
	since := ""
	if !g.HeldSince.IsZero() {
		since = ", since " + phrase.Age(p.clock().Sub(g.HeldSince))
	}
	if f.Kind == "tasks" {
		f.Code = TypePaused
		f.Says = fmt.Sprintf("Tasks of type %s are paused%s: %s, the oldest due for %s.", f.Type, since, waiting(f), phrase.Age(waits))
		ofType, ofAll := "`daybook tasks resume --type "+shell(f.Type)+"`", "`daybook tasks resume --all`"
		switch f.Todo = "Resume them when they may be worked: "; g.Needs {
		case diagnosis.LimitOfAll:
			f.Says = fmt.Sprintf("All tasks are paused%s, those of type %s among them: %s, the oldest due for %s.", since, f.Type, waiting(f), phrase.Age(waits))
			f.Todo += ofAll + "."
		case diagnosis.LimitOfBoth:
			f.Todo += ofAll + " and " + ofType + ": all tasks are paused, and the type by itself as well."
		default:
			f.Todo += ofType + "."
		}
		return f
	}
	f.Code = OrganizationPaused
	f.Says = fmt.Sprintf("Organization %s is paused%s: %s, the oldest due for %s.", clip(f.OrgID, 100), since, waiting(f), phrase.Age(waits))
	f.Todo = "Resume it when its jobs may be worked: `daybook organizations resume --org " + shell(f.OrgID) + "`."
	return f
}

func cappedFinding(f Finding, g diagnosis.Due, waits time.Duration) Finding {
	f.Code, f.Severity = CapReached, Info
	if waits > warnAfter {
		f.Severity = Warning
	}
	if f.Kind == "tasks" {
		f.Says = fmt.Sprintf("Tasks of type %s are at their cap of %s at a time: %s, the oldest due for %s.", f.Type, phrase.Count(g.Limit), waiting(f), phrase.Age(waits))
		of := "--type " + shell(f.Type)
		if g.Needs == diagnosis.LimitOfAll {
			of = "--all"
			f.Says = fmt.Sprintf("All tasks together, those of type %s among them, are at their cap of %s at a time: %s, the oldest due for %s.", f.Type, phrase.Count(g.Limit), waiting(f), phrase.Age(waits))
		}
		f.Todo = "If more may run at a time, raise it: `daybook tasks cap " + of + " --max-in-flight N`, or remove it: `--none` (`daybook tasks limits` lists the caps)."
		return f
	}
	f.Says = fmt.Sprintf("Organization %s is at its cap of %s at a time: %s, the oldest due for %s.", clip(f.OrgID, 100), plural(g.Limit, "job", "jobs"), waiting(f), phrase.Age(waits))
	f.Todo = "If more may run at a time, raise it: `daybook organizations cap --org " + shell(f.OrgID) + " --max-in-flight N`, or remove it: `--none`."
	return f
}

func missingFinding(f Finding, waits time.Duration) Finding {
	f.Code, f.Severity, f.ErrorCode = HandlerMissing, Warning, "HANDLER_MISSING"
	if f.Kind == "tasks" {
		f.Says = fmt.Sprintf("No worker has a processor for tasks of type %s: %s, the oldest due for %s. They wait until a worker starts that has one.", f.Type, waiting(f), phrase.Age(waits))
		f.Todo = "Start a worker that has a processor for it. A built-in type needs its settings (docs/tasks.md); a worker logs at its start which ones it lacks."
		return f
	}
	f.Says = fmt.Sprintf("No worker has a handler for jobs of type %s: %s, the oldest due for %s. When they have been due, and a worker has run, for five minutes, they become dead letters, until a worker starts that has one.", f.Type, waiting(f), phrase.Age(waits))
	f.Todo = "Start a worker that has a handler for it. A built-in type needs its settings (docs/job-types.md); a worker logs at its start which ones it lacks."
	return f
}

func foreignFinding(f Finding, g diagnosis.Due, waits time.Duration) Finding {
	f.Code, f.Severity = SourceMissing, Warning
	f.Says = fmt.Sprintf("No worker works accounting jobs that need %s: %s, the oldest due for %s.", g.Needs, waiting(f), phrase.Age(waits))
	f.Todo = "Start the worker that reads this source and has these hooks, or say where the documents are: `daybook organizations source NAME --org " + shell(f.ExampleOrg) + "`."
	return f
}

func oldestFinding(f Finding, waits time.Duration) Finding {
	f.Code, f.Severity = OldestDue, Warning
	if waits > criticalAfter {
		f.Severity = Critical
	}
	what := "The oldest " + jobWord(f) + " has been due for " + phrase.Age(waits)
	if f.Count > 1 {
		what += fmt.Sprintf("; %s due", are(f.Count, jobWords(f)))
	}
	f.Says = what + ", and nothing on record holds it back."
	f.Todo = "If workers run, they are too slow for what comes, or another transaction holds the row: look at `daybook leases` and " + showCommand(f) + "; add workers or lanes (`daybook workflow configure --concurrency N`)."
	return f
}

// waiting says how many jobs wait.
func waiting(f Finding) string {
	words := jobWords(f)
	if f.Count == 1 {
		return "1 due " + words[0] + " waits"
	}
	return atLeast(f.Count) + " due " + words[1] + " wait"
}

func are(n int64, words [2]string) string {
	if n == 1 {
		return "1 " + words[0] + " is"
	}
	return atLeast(n) + " " + words[1] + " are"
}

// jobWord names a job of a finding's kind and type.
func jobWord(f Finding) string {
	if f.Type != "" {
		return jobWords(f)[0] + " of type " + f.Type
	}
	return jobWords(f)[0]
}

func jobWords(f Finding) [2]string {
	switch f.Kind {
	case "accounting":
		return [2]string{"document", "documents"}
	case "tasks":
		return [2]string{"task", "tasks"}
	default:
		return [2]string{"job", "jobs"}
	}
}

// showCommand shows a finding's example.
func showCommand(f Finding) string {
	if f.Kind == "accounting" {
		return "`daybook accounting show " + shell(f.ExampleOrg) + " " + shell(f.Example) + "`"
	}
	return "`daybook " + f.Kind + " show " + shell(f.Example) + "`"
}
