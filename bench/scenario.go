package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/daybook-dev/daybook/bench/report"
)

// scenario is one question that the benchmarks answer. Each has a file of its own, which registers it.
type scenario struct {
	// order is its place in the table; smaller is earlier.
	order int
	name  string
	// about says in a sentence how the figure comes about, for docs/performance.md.
	about string
	// skip returns why it cannot run here; nil or an empty answer: it can.
	skip func(b *bench) string
	// run measures, and fails when anything was not posted exactly once.
	run func(ctx context.Context, b *bench) ([]report.Row, error)
}

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
			return nil, fmt.Errorf("there is no scenario %q: choose among %s", strings.TrimSpace(name), strings.Join(names, ", "))
		}
		if !slices.ContainsFunc(chosen, func(s scenario) bool { return s.name == names[i] }) {
			chosen = append(chosen, all[i])
		}
	}
	return chosen, nil
}
