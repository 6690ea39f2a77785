package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/bench/report"
)

// longJobs is the number from which on jobs are long ones.
const longJobs = 1_000_000_000

// window is a time in which nothing could be done, whatever the queue is: PostgreSQL was
// unavailable, or the workflow stopped on request.
type window struct{ from, until time.Time }

// observed is what was seen of one phase with one queue.
type observed struct {
	// committed is the moment before the commit of each job was sent, of those whose commit was
	// answered.
	committed map[int]time.Time
	begun     map[int][]beginning
	windows   []window
	// held is when the worker that held a job was killed; killed is when each worker was that was.
	held   map[int]time.Time
	killed map[string]time.Time
	// found are the jobs that are in the database in the end.
	found map[int]foundJob
	// effects is how many calls of its handler have left their effect.
	effects map[int]int
	// transactions is how many jobs that share them were completed in; 0: none shares any.
	transactions int
	end          time.Time
	refused      int
}

// foundJob is a job as the database has it in the end.
type foundJob struct{ finished, again bool }

// The figures of a phase. Times are in seconds.
const (
	figureJobs = iota
	figureP50
	figureP95
	figureP99
	figureSlowest
	figureOverHalf
	figureOverOne
	figureOverTwo
	// figureHeld is how many jobs killed workers held, the recoveries how long after the kill the
	// last of them began again.
	figureHeld
	figureRecovery
	figureLongRecovery
	figureLost
	// figureOpen is how many jobs are neither finished nor lost in the end.
	figureOpen
	figureTwice
	figureCharged
	// figureChargedOthers is how many of those no killed worker ever had.
	figureChargedOthers
	figureRefused
	// figureShare is how many jobs shared a transaction, on average.
	figureShare
	figureCount
)

// figures come to the figures of a phase.
func (o observed) figures() []float64 {
	f := make([]float64, figureCount)
	var delays []float64
	for number, at := range o.committed {
		if number >= longJobs || o.recovers(number) {
			continue
		}
		delays = append(delays, o.delay(number, at).Seconds())
	}
	f[figureJobs] = float64(len(o.committed))
	f[figureP50], f[figureP95], f[figureP99], f[figureSlowest] = percentile(delays, 50), percentile(delays, 95),
		percentile(delays, 99), percentile(delays, 100)
	for _, d := range delays {
		for figure, limit := range map[int]float64{figureOverHalf: 0.5, figureOverOne: 1, figureOverTwo: 2} {
			if d > limit {
				f[figure]++
			}
		}
	}
	for number, killed := range o.held {
		again, needed := o.recovery(number, killed)
		if !needed {
			continue
		}
		f[figureHeld]++
		figure := figureRecovery
		if number >= longJobs {
			figure = figureLongRecovery
		}
		f[figure] = max(f[figure], again.Seconds())
	}
	o.outcomes(f)
	return f
}

// outcomes come to the figures of what became of the jobs.
func (o observed) outcomes(f []float64) {
	for number := range o.committed {
		job, there := o.found[number]
		if !there || job.finished && o.effects[number] == 0 {
			f[figureLost]++
		}
	}
	for number, job := range o.found {
		if !job.finished {
			f[figureOpen]++
		}
		if job.again {
			f[figureCharged]++
			if !o.killedHad(number) {
				f[figureChargedOthers]++
			}
		}
		if o.effects[number] > 1 {
			f[figureTwice]++
		}
	}
	f[figureRefused] = float64(o.refused)
	if o.transactions > 0 {
		f[figureShare] = float64(len(o.effects)) / float64(o.transactions)
	}
}

// killedHad says whether a worker that was killed held the job, or had begun it.
func (o observed) killedHad(number int) bool {
	_, held := o.held[number]
	return held || slices.ContainsFunc(o.begun[number], func(c beginning) bool { return !o.killed[c.worker].IsZero() })
}

// recovers says whether the job first began after the worker that held it was killed: its wait is a
// recovery.
func (o observed) recovers(number int) bool {
	killed, held := o.held[number]
	first, begun := o.firstAfter(number, time.Time{})
	return held && (!begun || first.After(killed))
}

// delay is how long after its commit a job began, without the time in which it could not.
func (o observed) delay(number int, committed time.Time) time.Duration {
	begun, ok := o.firstAfter(number, time.Time{})
	if !ok {
		begun = o.end
	}
	d := begun.Sub(committed)
	for _, w := range o.windows {
		from, until := later(w.from, committed), w.until
		if begun.Before(until) {
			until = begun
		}
		if until.After(from) {
			d -= until.Sub(from)
		}
	}
	return d
}

// recovery is how long after the kill a job began again. A job that did not need to, because it had
// just been completed, says so.
func (o observed) recovery(number int, killed time.Time) (after time.Duration, needed bool) {
	if again, begun := o.firstAfter(number, killed); begun {
		return again.Sub(killed), true
	}
	if o.found[number].finished {
		return 0, false
	}
	return o.end.Sub(killed), true
}

// firstAfter is when a handler of the job first began after a moment. What several workers tell
// comes in no order.
func (o observed) firstAfter(number int, moment time.Time) (first time.Time, ok bool) {
	for _, c := range o.begun[number] {
		if c.at.After(moment) && (!ok || c.at.Before(first)) {
			first, ok = c.at, true
		}
	}
	return first, ok
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// faultLine tells a phase's figures in words.
func faultLine(f []float64) string {
	n := func(figure int) string { return report.Count(int(f[figure])) }
	text := fmt.Sprintf("%s jobs, p50 %s ms, p95 %s ms, p99 %s ms, slowest %s s, over 0.5 / 1 / 2 s: %s / %s / %s",
		n(figureJobs), report.Figure(1000*f[figureP50]),
		report.Figure(1000*f[figureP95]), report.Figure(1000*f[figureP99]), report.Figure(f[figureSlowest]),
		n(figureOverHalf), n(figureOverOne), n(figureOverTwo))
	if f[figureHeld] > 0 {
		text += fmt.Sprintf(", held by the killed %s, recovered after %s s", n(figureHeld),
			report.Figure(f[figureRecovery]))
	}
	if f[figureLongRecovery] > 0 {
		text += fmt.Sprintf(" (long ones %s s)", report.Figure(f[figureLongRecovery]))
	}
	text += fmt.Sprintf(", lost %s, twice %s, charged %s", n(figureLost), n(figureTwice), n(figureCharged))
	if f[figureShare] > 0 {
		text += fmt.Sprintf(" (not a killed worker's: %s), %s jobs a transaction", n(figureChargedOthers),
			report.Figure(f[figureShare]))
	}
	if f[figureOpen] > 0 {
		text += fmt.Sprintf(", not done in the end %s", n(figureOpen))
	}
	if f[figureRefused] > 0 {
		text += fmt.Sprintf(", not accepted %s", n(figureRefused))
	}
	return text
}
