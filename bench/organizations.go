package main

import (
	"context"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/bench/report"
)

func init() {
	register(scenario{
		order: 160, name: "organizations", topic: topicFairness, takes: "5 minutes",
		about: "*Trickle*: a million jobs of 10,000 organizations are due tomorrow; a job that is due comes " +
			"every 30 ms, in turn of one of these and of one that has nothing else. *With one large*: 2,000 " +
			"organizations with one document, one with 10,000. *One document each*: 100,000 organizations; " +
			"*idle afterwards* is how long a second the database is then busy. *Three documents each*: " +
			"12,000 organizations. *One job each*: 100,000 organizations, beside as many jobs of ten. *Slow " +
			"handlers*: jobs of 0.3 s, of two organizations and three priorities: what has begun after 12 " +
			"seconds. *Slow type*: 10,000 jobs of 3 s, and every half second one of another type: the " +
			"slowest of ten.",
		run: runOrganizations,
	})
}

// organizationsSizes says how large everything is. SIZE is the number of jobs due tomorrow; the
// rest keeps its proportion.
type organizationsSizes struct {
	// later is how many jobs are due tomorrow, laterOrgs of how many organizations.
	later, laterOrgs int
	// small is how many organizations have one document each beside one that has large.
	small, large int
	// single is how many organizations have one document each, several how many have documentsEach.
	single, several int
	// slow is how many jobs of a slow type wait before the quick ones.
	slow int
}

const documentsEach = 3

// sizesFor keeps the proportions of a million jobs due tomorrow.
func sizesFor(later int) organizationsSizes {
	part := func(ofMillion int) int { return max(2, int(float64(later)/1_000_000*float64(ofMillion))) }
	return organizationsSizes{
		later: later, laterOrgs: part(10_000), small: part(2_000), large: part(10_000), single: part(100_000),
		several: part(12_000), slow: max(100, part(10_000)),
	}
}

// organizationsPart is one part of the scenario: what it measures and the rows that come of it.
type organizationsPart struct {
	name    string
	measure func(context.Context) ([]float64, error)
	rows    func(figures []float64) []report.Row
}

func runOrganizations(ctx context.Context, b *bench) ([]report.Row, error) {
	s, runs := sizesFor(b.sized(1_000_000, 10_000)), b.repeated(1)
	var parts []organizationsPart
	parts = append(parts, b.trickleParts(s)...)
	parts = append(parts, b.manyParts(s)...)
	parts = append(parts, b.slowParts(s)...)
	var rows []report.Row
	for _, p := range parts {
		if !b.wanted(p.name) {
			continue
		}
		began := time.Now()
		figures, err := medians(ctx, runs, p.measure)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		b.say("  %s: %s", p.name, time.Since(began).Round(100*time.Millisecond))
		for _, r := range p.rows(figures) {
			r.Name, r.Runs = p.name+": "+r.Name, runs
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("no part is called %q", b.part)
	}
	return rows, nil
}

// missingNote tells of work that had not begun when the measurement gave up.
func missingNote(missing float64, of int) string {
	if missing == 0 {
		return ""
	}
	return fmt.Sprintf(" %s of %d had not begun when the measurement gave up.", report.Count(int(missing)), of)
}
