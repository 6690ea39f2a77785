package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// print writes what was done, and what came of it.
func (w *world) print(f found) {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(w.out, format+"\n", args...) } // an error here cannot be told either
	how := "each commit is confirmed by a standby"
	if w.async {
		how = "asynchronous replication"
	}
	p("")
	p("%s of trouble, seed %d, %s cluster, %s", w.lasting, w.seed, w.cluster, how)
	p("")
	p("  %-52s %6s   %s", "what was done", "times", "then work of every kind went on after (median, longest and of what)")
	for _, t := range append(w.troubles(), append(w.servers.troubles(),
		trouble{name: "disk", what: "disk of the primary full, for 3 s"})...) {
		if n := w.struck[t.name]; n > 0 {
			p("  %-52s %6d   %s", t.what, n, w.probe.after(t.name))
		}
	}
	if n := w.struck["snapshot"]; n > 0 {
		p("  %-52s %6s   %s", "a snapshot held", "always", fmt.Sprintf("(lost %d times with its connection)", n-1))
	}
	if w.clocks() {
		p("  %-52s %6s", "clocks of the servers up to 6 s apart", "always")
	}
	for _, lack := range w.lacks {
		p("  %-52s %6s", lack, "not")
	}
	if len(w.failed) > 0 {
		p("  %-52s %6d", "could not be done, as something else was wrong", len(w.failed))
	}
	if n := w.struck["ended"]; n > 0 {
		p("  %-52s %6d", "workers that ended by themselves", n)
	}
	took := make([]time.Duration, len(w.probe.recoveries))
	for i, r := range w.probe.recoveries {
		took[i] = r.took
	}
	p("")
	p("  what came of it")
	row := func(name string, n int, note string, args ...any) {
		p("  %-52s %6d   %s", name, n, fmt.Sprintf(note, args...))
	}
	row("acknowledged", f.acknowledged, "%d documents, %d jobs, %d tasks; %d more were refused, %d not answered", f.documents,
		f.jobs, f.tasks, f.refused, f.unanswered)
	if f.async {
		row("lost with a primary whose standby lacked it", f.gone, "asynchronous replication: expected, and counted")
		row("lost", f.noEffect, "completed, and nothing was done")
	} else {
		row("lost", f.gone+f.noEffect, "%d are in no table, %d are completed and nothing was done", f.gone, f.noEffect)
	}
	row("done twice", f.twice, "of what is done in the transaction that completes it")
	row("done and never enqueued", f.unknown, "")
	row("out of order", f.disordered, "of jobs in a sequence, enqueued further apart than the clocks")
	row("stuck", f.stuck, "nothing more was done for %s when the trouble was over", w.patience)
	if f.waiting > 0 {
		row("tasks that wait for a dead worker's lease", f.waiting, "of five minutes; not counted as stuck")
	}
	row("workflows that ended by themselves", f.ended, "")
	row("dead letters", f.dead, "no handler fails by itself")
	row("charged wrongly", f.chargedWrongly, "attempts that count, although no worker was killed at them")
	for _, why := range f.wrongly[:min(10, len(f.wrongly))] {
		p("  %-52s          %s", "", why)
	}
	row("charged rightly", f.chargedRightly, "their worker was killed")
	row("called again", f.again, "handlers with effects outside of the job's transaction")
	books := "sound"
	if f.audit != "" {
		books = f.audit
	}
	p("  %-52s %6s   daybook audit --all-orgs", "books", books)
	p("")
	p("  %-52s %s", "work of every kind went on after trouble", spread(took))
	p("  %-52s %s", "what a killed worker held was reclaimed after", spread(w.probe.reclaims))
	p("  %-52s %.1f s, the troubles' own time included", "longest time without work of a kind", w.probe.idle.Seconds())
	p("")
}

// after says how long it took until work went on after a kind of trouble, whatever else was wrong.
func (p *probe) after(name string) string {
	var all []recovery
	for _, r := range p.recoveries {
		if slices.Contains(r.troubles, name) {
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.SortFunc(all, func(a, b recovery) int { return cmp.Compare(a.took, b.took) })
	longest := all[len(all)-1]
	return fmt.Sprintf("%.1f s, %.1f s (%s)", all[len(all)/2].took.Seconds(), longest.took.Seconds(), longest.last)
}

// spread says median, 99th percentile and the longest.
func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "never measured"
	}
	slices.Sort(all)
	at := func(percent int) float64 { return all[min(len(all)-1, len(all)*percent/100)].Seconds() }
	return strings.Join([]string{
		fmt.Sprintf("p50 %.1f s", at(50)), fmt.Sprintf("p99 %.1f s", at(99)),
		fmt.Sprintf("longest %.1f s", all[len(all)-1].Seconds()), fmt.Sprintf("of %d", len(all)),
	}, ", ")
}
