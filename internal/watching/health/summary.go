package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// summary is the line that says whether work gets done.
func (p *probe) summary(r Report) string {
	var stopped []Finding
	for _, f := range r.Findings {
		if f.stops() && slices.ContainsFunc(p.kinds(),
			func(kind string) bool { return f.covers(kind) && !stops(stopped, kind) }) {
			stopped = append(stopped, f)
		}
	}
	if len(stopped) == 0 {
		return p.working()
	}
	before := "Nothing is worked: "
	if rest := p.goesOn(stopped); len(rest) > 0 {
		before = "Not everything is worked (" + phrase.And(rest) + " " + isAre(len(rest)) + "): "
	}
	var sentences []string
	for _, f := range stopped {
		sentences = append(sentences, f.Says+" "+f.Todo)
	}
	return before + lowerFirst(strings.Join(sentences, " ")) + p.notDone()
}

// stops reports whether one of the findings stops a kind.
func stops(stopped []Finding, kind string) bool {
	return slices.ContainsFunc(stopped, func(f Finding) bool { return f.covers(kind) })
}

// goesOn are the kinds that nothing stops, of those that are used.
func (p *probe) goesOn(stopped []Finding) []string {
	return slices.DeleteFunc(p.kinds(), func(kind string) bool { return !p.used[kind] || stops(stopped, kind) })
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// working says how work gets done while nothing stops it.
func (p *probe) working() string {
	if p.Pool == nil {
		if p.Temporal == nil {
			return "Nothing was asked: neither a database nor Temporal is named."
		}
		return "Workflows run and workers poll; the database was not asked."
	}
	var b strings.Builder
	// A figure that could not be had may hide what waits.
	unknown := slices.DeleteFunc(p.kinds(), func(kind string) bool { return p.known[kind] })
	idle := p.completed == 0 && !p.completedMore && p.oldest > warnAfter
	lead := "Work gets done: "
	switch {
	case len(unknown) > 0 || p.completed < 0 || idle:
		lead = "It is not known whether work gets done: "
	case p.Temporal == nil:
		lead = "Nothing is wrong with the database (Temporal was not asked): "
	}
	b.WriteString(lead)
	switch {
	case p.completed < 0:
		b.WriteString("how much was completed is not known")
	case p.completed == 0 && !p.completedMore:
		b.WriteString("nothing was completed in the last minute")
	default:
		done := phrase.Count(p.completed)
		if p.completedMore {
			done = atLeast(p.completed)
		}
		fmt.Fprintf(&b, "%s completed in the last minute", done)
	}
	others := p.waitForOthers()
	nothing := "nothing"
	if len(others) > 0 {
		nothing = "nothing else"
	}
	for _, o := range others {
		b.WriteString(", " + o)
	}
	switch {
	case len(unknown) > 0:
		fmt.Fprintf(&b, ", what waits of %s could not be counted (%s)", phrase.And(unknown), p.whyUnknown())
	case p.oldest > warnAfter:
		fmt.Fprintf(&b, ", but the oldest due job has waited for %s", phrase.Age(p.oldest))
	case p.free > 0: // it may be picked at any moment, and is counted as due
		fmt.Fprintf(&b, ", %s waits longer than %s", nothing,
			phrase.Duration(max(p.oldest.Truncate(time.Second), time.Second)))
	default:
		fmt.Fprintf(&b, ", %s waits", nothing)
	}
	if dead := p.deadWords(); dead != "" {
		b.WriteString(", but " + dead)
	}
	if n := p.count(Warning); n > 0 {
		fmt.Fprintf(&b, "; %s", plural(n, "warning", "warnings"))
	}
	return b.String() + "."
}

// deadWords counts what failed for good and is there to be seen to; empty: nothing did.
func (p *probe) deadWords() string {
	var says []string
	for _, kind := range kinds() {
		words, did := jobWords(Finding{Kind: kind}), " failed"
		if kind == "accounting" {
			did = " could not be posted"
		}
		if n := p.dead[kind]; n > 0 {
			if kind == "tasks" {
				did += " in the last day"
			}
			says = append(says, plural(n, words[0], words[1])+did)
		}
	}
	return phrase.And(says)
}

// notDone is deadWords as a sentence of its own behind others.
func (p *probe) notDone() string {
	if dead := p.deadWords(); dead != "" {
		return " Besides, " + dead + "."
	}
	return ""
}

// whyUnknown is why what waits is not known.
func (p *probe) whyUnknown() string {
	if p.Alone {
		return "the database does not say"
	}
	for _, c := range p.checked {
		if c.Error != "" && (c.Name == checkDue || c.Name == checkSchema) {
			return clip(c.Error, 200)
		}
	}
	return "the schema could not be read"
}

// waitForOthers says what could be worked and waits for something else than a worker's time.
func (p *probe) waitForOthers() []string {
	var says []string
	for _, w := range []struct {
		n   int64
		one string
		all string
	}{
		{p.unhandled, "waits for a worker that has its type", "wait for a worker that has their type"},
		{
			p.foreign, "waits for a worker that has its source and hooks",
			"wait for a worker that has their source and hooks",
		},
		{p.heldBack, "is held back", "are held back"},
		{p.behind, "waits for its turn in a sequence", "wait for their turn in a sequence"},
	} {
		switch {
		case w.n == 1:
			says = append(says, "1 "+w.one)
		case w.n > 1:
			says = append(says, atLeast(w.n)+" "+w.all)
		}
	}
	return says
}

func (p *probe) count(s Severity) (n int64) {
	for _, f := range p.findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}
