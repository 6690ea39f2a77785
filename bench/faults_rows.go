package main

import (
	"context"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/bench/report"
)

// phaseFigures are a phase's figures: Daybook's first, then those of the queues beside it that ran.
type phaseFigures struct {
	phase   faultPhase
	figures [][]float64
}

// faultSides are the queues of a phase, Daybook first, then River with its usual and with its tuned
// settings.
func (b *bench) faultSides(p faultPhase) []loadedQueue {
	queues := []loadedQueue{daybookLoaded(b.lasting(60*time.Second, 5*time.Second))}
	queues[0].shared = p.shared
	if b.alone || p.alone || b.smoke && p.andShared {
		return queues
	}
	// River's usual settings leave a dead worker's jobs for an hour: nothing is gained by waiting for
	// them.
	patience := b.lasting(10*time.Second, time.Second)
	queues = append(queues, riverLoaded("River's default client", riverDefault, patience))
	if p.killed {
		patience = b.lasting(50*time.Second, time.Second)
	}
	return append(queues, riverLoaded("River's tuned client", riverTuned, patience))
}

func runFaults(ctx context.Context, b *bench) ([]report.Row, error) {
	runs := b.repeated(1)
	var rows []report.Row
	var all []phaseFigures
	for _, p := range b.faultPhases() {
		if !b.wanted(p.name) {
			continue
		}
		measured := phaseFigures{phase: p}
		for _, q := range b.faultSides(p) {
			figures, err := medians(ctx, runs,
				func(ctx context.Context) ([]float64, error) { return b.underFault(ctx, q, p) })
			if err != nil {
				return nil, err
			}
			measured.figures = append(measured.figures, figures)
		}
		all = append(all, measured)
		rows = append(rows, measured.rows(b.faultSides(p), runs)...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no phase is called %q", b.part)
	}
	if b.part == "" {
		rows = append(rows, faultSums(all, runs)...)
	}
	return rows, nil
}

// rows are those of a phase. The slowest job has one beside each of River's settings, the others
// have one beside the tuned ones. The first row's note tells all figures.
func (m phaseFigures) rows(queues []loadedQueue, runs int) []report.Row {
	var rows []report.Row
	for _, of := range m.phase.rows {
		row := report.Row{
			Name: m.phase.name + ": " + of.name, Daybook: m.figures[0][of.figure] * of.scale, Unit: of.unit,
			Target: of.target, Runs: runs,
		}
		if len(queues) == 1 {
			rows = append(rows, row)
			continue
		}
		for i := len(queues) - 1; i > 0; i-- {
			if i < len(queues)-1 && of.figure != figureSlowest {
				continue
			}
			beside := row
			if of.figure == figureSlowest {
				beside.Name += ", " + queues[i].name
			}
			peer := m.figures[i][of.figure] * of.scale
			beside.Peer, beside.PeerName = &peer, riverName
			rows = append(rows, beside)
		}
	}
	for i, q := range queues {
		rows[0].Note += q.name + ": " + faultLine(m.figures[i]) + ". "
	}
	rows[0].Note = rows[0].Note[:len(rows[0].Note)-1]
	return rows
}

// faultSums are rows over all phases: what must never happen, whatever fails.
func faultSums(all []phaseFigures, runs int) []report.Row {
	sum := func(figure int, of func(faultPhase) bool) (own float64, peer *float64) {
		for _, m := range all {
			if !of(m.phase) {
				continue
			}
			own += m.figures[0][figure]
			if last := len(m.figures) - 1; last > 0 {
				if peer == nil {
					peer = new(float64)
				}
				*peer += m.figures[last][figure]
			}
		}
		return own, peer
	}
	row := func(name string, figure int, of func(faultPhase) bool, target report.Target, note string) report.Row {
		own, peer := sum(figure, of)
		r := report.Row{Name: name, Daybook: own, Unit: "jobs", Target: target, Runs: runs, Note: note}
		if peer != nil {
			r.Peer, r.PeerName = peer, riverName
		}
		return r
	}
	every := func(faultPhase) bool { return true }
	living := func(p faultPhase) bool { return !p.killed }
	peerNote := fmt.Sprintf("River: %s.", riverTuned)
	return []report.Row{
		row("all phases: lost", figureLost, every, report.AtMost(0), peerNote),
		row("all phases: not done in the end", figureOpen, every, report.AtMost(0), peerNote),
		row("phases without a killed worker: charged", figureCharged, living, report.AtMost(0), peerNote),
		row("phases without a killed worker: done twice", figureTwice, living, report.Target{}, peerNote),
	}
}
