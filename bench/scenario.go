package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/daybook-dev/daybook/bench/report"
)

// scenario is one question that the benchmarks answer. Each has a file of its own, which registers
// it.
type scenario struct {
	// order is its place in the table; smaller is earlier.
	order int
	name  string
	// topic is the heading under which its rows stand in docs/performance.md. The scenarios of a
	// topic follow each other.
	topic string
	// takes is about how long it takes at full size, for the help and bench/README.md.
	takes string
	// about says in a sentence how the figure comes about, for docs/performance.md.
	about string
	// skip returns why it cannot run here; nil or an empty answer: it can.
	skip func(b *bench) string
	// run measures, and fails when anything was not posted exactly once.
	run func(ctx context.Context, b *bench) ([]report.Row, error)
}

// The topics.
const (
	topicDocuments = "Posting documents"
	topicJobs      = "Background jobs"
	topicEnqueuing = "Enqueuing"
	topicLatency   = "Latency"
	topicSteady    = "Processor time under steady load"
	topicSnapshots = "Old snapshots and long reads"
	topicFairness  = "Fairness and many organizations"
	topicFootprint = "Idle workers and memory"
	topicFaults    = "Faults"
)

var registered []scenario

// register adds a scenario; the init function of its file calls it.
func register(s scenario) { registered = append(registered, s) }

// scenarios returns all of them in their order.
func scenarios() []scenario {
	all := slices.Clone(registered)
	slices.SortFunc(all, func(a, b scenario) int { return cmp.Compare(a.order, b.order) })
	return all
}

// choose returns the scenarios of a comma-separated list of names; an empty list is all of them.
func choose(list string) ([]scenario, error) {
	all := scenarios()
	if list == "" {
		return all, nil
	}
	var chosen []scenario
	var names []string
	for _, s := range all {
		names = append(names, s.name)
	}
	for name := range strings.SplitSeq(list, ",") {
		i := slices.Index(names, strings.TrimSpace(name))
		if i < 0 {
			return nil, fmt.Errorf("there is no scenario %q: choose among %s", strings.TrimSpace(name),
				strings.Join(names, ", "))
		}
		if !slices.ContainsFunc(chosen, func(s scenario) bool { return s.name == names[i] }) {
			chosen = append(chosen, all[i])
		}
	}
	return chosen, nil
}

// list tells all scenarios and how long they take.
func list(w io.Writer) error {
	var b strings.Builder
	b.WriteString("Scenarios, and about how long they take at full size:\n")
	for _, s := range scenarios() {
		fmt.Fprintf(&b, "  %-16s  %-34s  %s\n", s.name, s.topic, s.takes)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
