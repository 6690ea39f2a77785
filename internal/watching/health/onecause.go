package health

import (
	"cmp"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// oneCause leaves one finding of each cause. What the others found is said in that one.
func (p *probe) oneCause() {
	sortFindings(p.findings)
	p.findings = together(p.findings)
	p.explain()
	sortFindings(p.findings)
}

// together makes one finding of those of several kinds that have the same cause. A kind that was
// never used is left out, where another one has the finding: it would be of no other use.
func together(all []Finding) []Finding {
	type key struct {
		code  Code
		cause string
	}
	at := map[key]int{}
	kept := all[:0]
	for _, f := range all {
		k := key{f.Code, f.cause}
		i, seen := at[k]
		switch {
		case f.cause == "":
			kept = append(kept, f)
		case !seen:
			at[k] = len(kept)
			kept = append(kept, f)
		case f.Severity == Info && kept[i].Severity != Info:
		default:
			kept[i].join(f)
		}
	}
	return kept
}

// join has the finding stand for another kind, too.
func (f *Finding) join(other Finding) {
	if f.severities == nil {
		f.severities = map[string]Severity{f.Kind: f.Severity}
	}
	f.severities[other.Kind] = other.Severity
	f.Kinds = append(f.AboutKinds(), other.Kind)
	order := kinds()
	slices.SortFunc(f.Kinds, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	f.Kind, f.stalled, f.Count = "", f.stalled || other.stalled, f.Count+other.Count
	f.Says, f.Todo = f.about(f.Kinds)
}

// explain takes out what is there because of another finding, and says of that one how much waits
// for it.
func (p *probe) explain() {
	because := map[int][]Finding{}
	var kept []int
	for i, f := range p.findings {
		if by := p.causeOf(f); by >= 0 {
			because[by] = append(because[by], f)
			p.consequences = append(p.consequences, f)
			continue
		}
		kept = append(kept, i)
	}
	left := make([]Finding, 0, len(kept))
	for _, i := range kept {
		f := p.findings[i]
		if all := because[i]; len(all) > 0 {
			f.explains(all, p.clock())
		}
		left = append(left, f)
	}
	p.findings = left
}

// causeOf is the place of the finding because of which another one is there; -1: there is none.
func (p *probe) causeOf(f Finding) int {
	if !f.follows {
		return -1
	}
	first := func(is func(c Finding) bool) int {
		return slices.IndexFunc(p.findings, func(c Finding) bool { return c.covers(f.Kind) && is(c) })
	}
	if f.Code == TurnsFailing {
		return first(func(c Finding) bool { return c.stops() && ofDatabase[c.Code] })
	}
	switch i := first(func(c Finding) bool { return c.stops() && explaining[c.Code] }); {
	case i >= 0:
		return i
	case f.Code == StaleLeases:
		return -1
	}
	// Without Temporal's word: the worker whose leases expired is gone, and no other one works the
	// kind.
	return first(func(c Finding) bool { return c.Code == StaleLeases })
}

// explaining are the codes of what has everything of a kind wait.
var explaining = map[Code]bool{
	SplitBrain: true, StandbyMissing: true, TableLocked: true, TemporalUnavailable: true, WorkflowNotStarted: true, WorkflowEnded: true,
	WorkflowPaused: true, NoWorker: true, TurnsFailing: true,
}

// ofDatabase are the codes of what has every statement of a worker fail or wait.
var ofDatabase = map[Code]bool{SplitBrain: true, DatabaseUnavailable: true, StandbyMissing: true}

// explains adds to the finding how much waits because of it.
func (f *Finding) explains(all []Finding, now time.Time) {
	type counted struct{ waiting, held int64 }
	sums := map[string]*counted{}
	var oldest *time.Time
	for _, c := range all {
		if f.Severity.rank() > c.Severity.rank() {
			f.Severity = c.Severity
		}
		if own, several := f.severities[c.Kind]; several && own.rank() > c.Severity.rank() {
			f.severities[c.Kind] = c.Severity
		}
		f.stalled = f.stalled || c.stalled
		s := sums[c.Kind]
		if s == nil {
			s = &counted{}
			sums[c.Kind] = s
		}
		switch c.Code {
		case BacklogGrows: // counts what the others count
		case StaleLeases:
			s.held += c.Count
		default:
			s.waiting += c.Count
			if c.Since != nil && (oldest == nil || c.Since.Before(*oldest)) {
				oldest = c.Since
			}
		}
	}
	var waiting, held []string
	for _, kind := range kinds() {
		words := jobWords(Finding{Kind: kind})
		if s := sums[kind]; s != nil && s.waiting > 0 {
			waiting = append(waiting, plural(s.waiting, words[0], words[1]))
		}
		if s := sums[kind]; s != nil && s.held > 0 {
			held = append(held, plural(s.held, words[0], words[1]))
		}
	}
	if len(waiting) > 0 {
		f.Says += " Waiting: " + phrase.And(waiting)
		if oldest != nil {
			f.Says += ", the oldest for " + phrase.Age(now.Sub(*oldest))
		}
		f.Says += "."
	}
	if len(held) > 0 {
		f.Says += " At work when their worker ended: " + phrase.And(held) + "; the next worker reclaims them."
	}
	f.Since = cmp.Or(f.Since, oldest)
}
