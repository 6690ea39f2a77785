package health

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/diagnosis"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

const (
	// warnAfter is after what time a due job that nothing holds back is a warning: polls are up to
	// ten seconds apart by default, a crash takes fifteen.
	warnAfter = time.Minute
	// criticalAfter is after what time it is critical.
	criticalAfter = 10 * time.Minute
	// named is how many organizations, types or queues have a finding of their own; what there is
	// beyond is summed up in one.
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
	asked := 0
	// What fills a limit is looked up where the finding has a line of its own.
	longest := func(g diagnosis.Due, taskType, queue string) (h diagnosis.Holder, known bool) {
		if asked++; err != nil || asked > named {
			return h, false
		}
		h, known, err = diagnosis.LongestHeld(ctx, tx, kind, g.OrgID, queue, taskType)
		return h, known
	}
	for _, g := range groups {
		total += g.Count
		f := Finding{
			Kind: kind, Type: g.Type, OrgID: g.OrgID, Count: g.Count, Since: store.TimeOrNil(g.Since), Example: g.ID,
			ExampleOrg: g.ExampleOrg,
		}
		waits := p.clock().Sub(g.Since)
		switch g.Reason {
		case diagnosis.Paused:
			p.heldBack += g.Count
			found = append(found, p.pausedFinding(f, g, waits))
		case diagnosis.Capped:
			p.heldBack += g.Count
			ofType := f.Type
			if g.Needs == diagnosis.LimitOfAll {
				ofType = ""
			}
			h, known := longest(g, ofType, "")
			if g.Limit == 0 {
				f, err = ratedFinding(ctx, tx, f, waits)
				found = append(found, f)
				break
			}
			found = append(found, p.filled(cappedFinding(f, g, waits), h, known))
		case diagnosis.Unhandled:
			p.unhandled += g.Count
			found = append(found, missingFinding(f, waits))
		case diagnosis.TooNew:
			p.unhandled += g.Count
			found = append(found, tooNewFinding(f, g, waits))
		case diagnosis.Foreign:
			// A worker may read the source: the database does not say.
			if waits <= warnAfter {
				p.oldest, p.free = max(p.oldest, waits), p.free+g.Count
			} else {
				p.foreign += g.Count
				found = append(found, foreignFinding(f, g, waits))
			}
		case diagnosis.QueuePaused, diagnosis.QueueUnworked:
			p.heldBack += g.Count
			found = append(found, p.queueFinding(f, g, waits))
		case diagnosis.QueueLimited:
			p.heldBack += g.Count
			h, known := longest(g, "", g.Needs)
			var settings store.NamedQueue
			if known && g.Limit > 0 || asked <= named {
				settings, err = store.QueueOf(ctx, tx, g.Needs)
			}
			found = append(found, p.filled(p.limitedFinding(f, g, settings, waits), h, known && g.Limit > 0))
		case diagnosis.Free:
			p.oldest, p.free = max(p.oldest, waits), p.free+g.Count
			if waits > warnAfter {
				found = append(found, oldestFinding(f, waits))
			}
		}
	}
	if err != nil {
		return nil, err
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

// sumUp leaves the first findings of each code, kind and sort of subject, and makes one of all that
// are beyond named: there may be a hundred thousand organizations, and thousands of types and
// queues.
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
			f.Says = fmt.Sprintf("%s more %s are so: %s.", phrase.Count(n), s.of,
				plural(f.Count, jobWords(*f)[0], jobWords(*f)[1]))
			f.Todo = "List them all: `" + map[string]string{
				"organizations": "daybook organizations list",
				"queues":        "daybook queues list", "types": listTypes[s.kind],
			}[s.of] + "`."
		}
		kept = append(kept, *f)
	}
	return kept
}

// listTypes are the commands that show all types of a kind.
var listTypes = map[string]string{"jobs": "daybook jobs stats", "tasks": "daybook tasks list"}

// subjects is what there may be many of that have a finding as this one; empty: there is one, or
// few.
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
	are := func(who, is, have string) string {
		if g.HeldSince.IsZero() {
			return who + " " + is + " paused: " + waiting(f, waits)
		}
		return who + " " + have + " been paused for " + phrase.Age(p.clock().Sub(g.HeldSince)) + ": " + waiting(f, waits)
	}
	if f.Kind == "tasks" {
		f.Code = TypePaused
		f.Says = are("Tasks of type "+f.Type, "are", "have")
		ofType, ofAll := "`daybook tasks resume --type "+shell(f.Type)+"`", "`daybook tasks resume --all`"
		switch f.Todo = "Resume them when they may be worked: "; g.Needs {
		case diagnosis.LimitOfAll:
			f.Says = are("All tasks, those of type "+f.Type+" among them,", "are", "have")
			f.Todo += ofAll + "."
		case diagnosis.LimitOfBoth:
			f.Todo += ofAll + " and " + ofType + ": all tasks are paused, and the type by itself as well."
		default:
			f.Todo += ofType + "."
		}
		return f
	}
	f.Code = OrganizationPaused
	f.Says = are("Organization "+clip(f.OrgID, 100), "is", "has")
	f.Todo = "Resume it when its jobs may be worked: `daybook organizations resume --org " + shell(f.OrgID) + "`."
	return f
}

// raised is what a cap is set to when more may run: twice as much.
func raised(limit int64) string { return strconv.FormatInt(2*limit, 10) }

func cappedFinding(f Finding, g diagnosis.Due, waits time.Duration) Finding {
	f.Code, f.Severity = CapReached, Info
	if waits > warnAfter {
		f.Severity = Warning
	}
	who, command := "Organization "+clip(f.OrgID, 100)+" has", "organizations cap --org "+shell(f.OrgID)
	if f.Kind == "tasks" {
		who, command = "Tasks of type "+f.Type+" have", "tasks cap --type "+shell(f.Type)
		if g.Needs == diagnosis.LimitOfAll {
			who, command = "All types of tasks together, "+f.Type+" among them, have", "tasks cap --all"
		}
	}
	words := jobWords(f)
	f.Says = fmt.Sprintf("%s %s at work, as many as the cap allows: %s", who, phrase.Plural(g.Limit, words[0], words[1]),
		waiting(f, waits))
	f.Todo = "If more may run at a time, raise the cap: `daybook " + command + " --max-in-flight " + raised(g.Limit) +
		"`, or remove it: `daybook " + command + " --none`."
	return f
}

// ratedFinding is about an organization that is at its rate.
func ratedFinding(ctx context.Context, tx pgx.Tx, f Finding, waits time.Duration) (Finding, error) {
	list, err := store.KnownOrganizations(ctx, tx, store.OrganizationsPage{OrgID: f.OrgID, Limit: 1})
	if err != nil {
		return f, err
	}
	rate, per := 1, time.Second
	if len(list) > 0 && list[0].Rate != nil {
		rate, per = *list[0].Rate, time.Duration(*list[0].RateSeconds*float64(time.Second))
	}
	f.Code, f.Severity = CapReached, Info
	if waits > warnAfter {
		f.Severity = Warning
	}
	f.Says = fmt.Sprintf("Organization %s has begun as many jobs as its rate of %s in %s allows: %s", clip(f.OrgID, 100),
		phrase.Count(int64(rate)), phrase.Duration(per), waiting(f, waits))
	command := "`daybook organizations rate --org " + shell(f.OrgID)
	f.Todo = "If more may begin, raise the rate: " + command + " --rate " + raised(int64(rate)) + " --per " + per.String() +
		"`, or remove it: " + command + " --none`."
	return f, nil
}

// hangsAfter is from when on a job that fills a limit is looked at before the limit is raised.
const hangsAfter = 5 * time.Minute

// filled says which of the jobs that fill a cap or a limit has been at work longest, and what to do
// when it hangs.
func (p *probe) filled(f Finding, h diagnosis.Holder, known bool) Finding {
	if !known || p.Alone && h.OrgID != p.OrgID { // others' jobs may fill the limit of a queue
		return f
	}
	held := Finding{Kind: f.Kind, Example: h.ID, ExampleOrg: h.OrgID}
	by := ""
	if h.Type != "" {
		by = " of type " + h.Type
	}
	by += ", for " + phrase.Age(p.clock().Sub(h.Since))
	if h.Worker != "" {
		by += ", on worker " + clip(h.Worker, 80)
	}
	f.Says += " At work longest: " + jobWord(held) + " " + clip(h.ID, 100) + by + "."
	if p.clock().Sub(h.Since) > hangsAfter {
		todo := "See first whether it hangs: " + showCommand(held) + ". "
		if f.Kind == "jobs" {
			todo += "If it does, end it: `daybook jobs cancel " + shell(h.ID) + "`; a higher limit fills up as well. "
		}
		f.Todo = todo + f.Todo
	}
	return f
}

// tooNewFinding is about jobs that wait for a version of a handler.
func tooNewFinding(f Finding, g diagnosis.Due, waits time.Duration) Finding {
	f.Code, f.Severity, f.follows = HandlerMissing, Warning, true
	f.Says = fmt.Sprintf("No worker that runs has version %s of the handler for jobs of type %s, which these need: %s "+
		"Workers with an older one leave them alone.", g.Needs, f.Type, waiting(f, waits))
	f.Todo = "Start a worker of the program that has version " + g.Needs + ", or cancel the jobs: `daybook jobs list --type " +
		shell(f.Type) + " --state pending` lists them, and `daybook jobs cancel ID` cancels one."
	return f
}

func missingFinding(f Finding, waits time.Duration) Finding {
	f.Code, f.Severity, f.ErrorCode, f.follows = HandlerMissing, Warning, "HANDLER_MISSING", true
	if f.Kind == "tasks" {
		f.Says = fmt.Sprintf("No worker that runs has a processor for tasks of type %s: %s They wait until a worker "+
			"starts that has one.", f.Type, waiting(f, waits))
		f.Todo = "Start a worker that has a processor for it. A built-in type needs its settings (https://github.com/daybook-dev/daybook/blob/main/docs/tasks.md); a " +
			"worker logs at its start which ones it lacks."
		return f
	}
	f.Says = fmt.Sprintf("No worker that runs has a handler for jobs of type %s: %s When they have been due for five "+
		"minutes while a worker ran, they become "+
		"dead letters; they come back by themselves when a worker starts that has one.", f.Type, waiting(f, waits))
	f.Todo = "Start a worker that has a handler for it. A built-in type needs its settings (https://github.com/daybook-dev/daybook/blob/main/docs/job-types.md); a " +
		"worker logs at its start which ones it lacks."
	return f
}

func foreignFinding(f Finding, g diagnosis.Due, waits time.Duration) Finding {
	f.Code, f.Severity, f.follows = SourceMissing, Warning, true
	f.Says = fmt.Sprintf("No worker takes documents that need the %s: %s", g.Needs, waiting(f, waits))
	f.Todo = "Start the worker that has them. If they are on record by mistake, take them off: `daybook organizations " +
		"source daybook --org " + shell(f.ExampleOrg) +
		"` and `daybook organizations hooks --none --org " + shell(f.ExampleOrg) + "`."
	return f
}

func oldestFinding(f Finding, waits time.Duration) Finding {
	f.Code, f.Severity, f.follows = OldestDue, Warning, true
	if waits > criticalAfter {
		f.Severity = Critical
	}
	what := "The oldest due " + jobWord(f) + " has waited for " + phrase.Age(waits)
	if f.Count > 1 {
		what += fmt.Sprintf(" (%s due)", are(f.Count, jobWords(f)))
	}
	f.Says = what + ", and nothing on record holds it back."
	f.Todo = "If workers run, they are too slow for what comes, or another transaction holds the row: look at `daybook " +
		"leases` and " + showCommand(f) +
		"; add workers, or lanes: `daybook workflow configure " + f.Kind + " --concurrency " + lanes(f.Kind) + "`."
	return f
}

// lanes stands in an advice for twice as many lanes as the workflow of a kind has, which Temporal
// says later.
func lanes(kind string) string { return "{lanes of " + kind + "}" }

// fillLanes puts the numbers in.
func (p *probe) fillLanes() {
	for _, kind := range kinds() {
		n := models.DefaultConcurrency
		for _, s := range p.states {
			if s.Kind == kind && s.Settings != nil {
				n = s.Settings.Concurrency
			}
		}
		for i := range p.findings {
			p.findings[i].Todo = strings.ReplaceAll(p.findings[i].Todo, lanes(kind),
				strconv.Itoa(min(2*n, models.MaxConcurrency)))
		}
	}
}

// waiting says how many jobs wait, and for how long, as the rest of a sentence.
func waiting(f Finding, waits time.Duration) string {
	words := jobWords(f)
	if f.Count == 1 {
		return "1 due " + words[0] + " has waited for " + phrase.Age(waits) + "."
	}
	return atLeast(f.Count) + " due " + words[1] + " wait, the oldest for " + phrase.Age(waits) + "."
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
