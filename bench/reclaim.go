package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/bench/report"
)

const (
	// heldJobs are in hand when a worker is killed, over both workers; each takes heldTakes, so that
	// those of the other worker go on for as long as a reclaim lasts. River's tuned client gives up
	// a job after 15 s.
	heldJobs  = 20
	heldTakes = 14 * time.Second
	// heldFor is how long they have been in hand when the worker is killed.
	heldFor = 2 * time.Second
	// checksApart is how far apart the checks of an idle worker are.
	checksApart = 8 * time.Second
)

func init() {
	register(scenario{
		order: 189, name: "reclaim", topic: topicFaults, takes: "11 minutes",
		about: "Two worker processes have 20 jobs of 14 s in hand, and the one that has more of them is killed after two " +
			"seconds: until the last of what it held begins again. *Working*: 50 short jobs a second come " +
			"besides. *Idle*: nothing came for half a minute before, and nothing comes besides; or one job came, " +
			"its worker is killed at once, at a random moment, and the slowest of the runs counts. *Charged* are " +
			"jobs with a second attempt that the killed worker never had. River's tuned client has a JobTimeout " +
			"and RescueStuckJobsAfter of 15 s; pg-boss's jobs have heartbeats of 10 s, the least that it takes, " +
			"looked at every second. DBOS leaves a dead executor's workflows to a process of its id, or to " +
			"Conductor.",
		skip: func(b *bench) string {
			if b.smoke {
				return "it cannot be short"
			}
			return ""
		},
		run: runReclaim,
	})
}

// reclaimPhases are those of the scenario.
func reclaimPhases() []faultPhase {
	kill := func(rest time.Duration) func(context.Context, *faultRun) error {
		return func(ctx context.Context, r *faultRun) error {
			pause(ctx, rest)
			return r.killHolder(ctx)
		}
	}
	recovery := func(target float64) []faultRow {
		return []faultRow{{name: "until the last begins again", unit: "s", target: report.AtMost(target)}}
	}
	return []faultPhase{
		{name: "working", rate: 50, perTx: 1, lasting: 20 * time.Second, strike: kill(3 * time.Second), rows: recovery(5)},
		{name: "idle", strike: kill(30 * time.Second), rows: recovery(10)},
		{
			name: "idle, the other one without jobs", slowest: true, alone: true, rows: recovery(10),
			strike: func(ctx context.Context, r *faultRun) error {
				pause(ctx, 30*time.Second+rand.N(checksApart)) //nolint:gosec // no secret
				return r.killOnly(ctx)
			},
		},
	}
}

// killHolder puts long jobs into hand and kills the worker that has more of them. When the other one
// has none, more jobs come once, so that a living worker has what must not be charged.
func (r *faultRun) killHolder(ctx context.Context) error {
	for added := heldJobs; added <= 2*heldJobs; added += heldJobs {
		if err := r.hold(ctx, added-heldJobs, added); err != nil {
			return err
		}
		if min(r.longInHand(0), r.longInHand(1)) > 0 {
			break
		}
	}
	pause(ctx, heldFor)
	if r.longInHand(1) > r.longInHand(0) {
		return r.kill(ctx, r.workers[1])
	}
	return r.kill(ctx, r.workers[0])
}

// killOnly puts one long job into hand and kills its worker at once: the other one has not seen a
// lease, and checks as seldom as an idle worker does.
func (r *faultRun) killOnly(ctx context.Context) error {
	if err := r.hold(ctx, 0, 1); err != nil {
		return err
	}
	return r.kill(ctx, r.workers[r.longInHand(1)])
}

// hold enqueues the long jobs from first to last and waits until all are in hand.
func (r *faultRun) hold(ctx context.Context, first, last int) error {
	for i := first; i < last; i++ {
		r.load.add(ctx, []faultJob{{Number: longJobs + i, Takes: int(heldTakes.Milliseconds())}})
	}
	err := await(ctx, 10*time.Millisecond, func(context.Context) (bool, int64, error) {
		n := r.longInHand(0) + r.longInHand(1)
		return n == last, int64(n), nil
	})
	if err != nil {
		return fmt.Errorf("wait until the long jobs are in hand: %w", err)
	}
	return nil
}

// longInHand is how many long jobs a worker is at.
func (r *faultRun) longInHand(worker int) (n int) {
	for _, number := range r.journal.inHand(r.workers[worker].name) {
		if number >= longJobs {
			n++
		}
	}
	return n
}

// reclaimSides are the queues of the scenario, Daybook first.
func (b *bench) reclaimSides(ctx context.Context) []loadedQueue {
	queues := []loadedQueue{daybookLoaded(time.Minute)}
	if b.alone {
		return queues
	}
	queues = append(queues, riverLoaded(riverName, riverTuned, time.Minute), dbosLoaded(dbosQuick, 30*time.Second))
	if node, _ := b.useNode(ctx); node != nil {
		queues = append(queues, pgbossLoaded(node, pgbossWatchful, time.Minute))
	}
	return queues
}

func runReclaim(ctx context.Context, b *bench) ([]report.Row, error) {
	runs, all := b.repeated(2), b.reclaimSides(ctx)
	var rows []report.Row
	charged := make([]float64, len(all))
	for _, p := range reclaimPhases() {
		if !b.wanted(p.name) {
			continue
		}
		queues := all
		if p.alone {
			queues = all[:1]
		}
		figures := make([][]float64, len(queues))
		var notes []string
		for range runs {
			for i, q := range queues {
				f, err := b.underFault(ctx, q, p)
				if err != nil {
					return nil, err
				}
				charged[i] += f[figureChargedOthers]
				if f[figureLost] > 0 || q.own() && f[figureOpen] > 0 {
					return nil, fmt.Errorf("%s, %s: %s", p.name, q.name, faultLine(f))
				}
				if f[figureOpen] > 0 {
					notes = append(notes, fmt.Sprintf("%s: %.0f had not begun again after %s.", q.name, f[figureOpen], q.patience))
					continue
				}
				figures[i] = append(figures[i], max(f[figureRecovery], f[figureLongRecovery]))
			}
		}
		rows = append(rows, reclaimRows(p, queues, figures, runs, strings.Join(notes, " "))...)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("no phase is called %q", b.part)
	}
	row := report.Row{Name: "charged", Unit: "jobs", Runs: runs, Target: report.AtMost(0), Daybook: charged[0]}
	for i, q := range all[1:] {
		row.Note += fmt.Sprintf("%s: %.0f. ", q.name, charged[i+1])
	}
	row.Note = strings.TrimSpace(row.Note)
	return append(rows, row), nil
}

// reclaimRows are those of a phase, one beside each of the peers whose jobs began again.
func reclaimRows(p faultPhase, queues []loadedQueue, figures [][]float64, runs int, note string) []report.Row {
	of := p.rows[0]
	row := report.Row{
		Name: p.name + ": " + of.name, Daybook: p.of(figures[0]), Unit: of.unit, Target: of.target, Runs: runs, Note: note,
	}
	var rows []report.Row
	for i, q := range queues {
		if i == 0 || len(figures[i]) == 0 {
			continue
		}
		r := row.Beside(q.name, p.of(figures[i]))
		if len(rows) > 0 {
			r.Name += ", beside " + q.name
		}
		r.Note = strings.TrimSpace(fmt.Sprintf("%s: %s. %s", q.name, q.settings(), note))
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return []report.Row{row}
	}
	return rows
}

// of is the figure of several runs: the median, or the slowest.
func (p faultPhase) of(figures []float64) float64 {
	if p.slowest {
		return slices.Max(figures)
	}
	return median(figures)
}
