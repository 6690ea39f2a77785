package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/daybook-dev/daybook/bench/report"
)

func init() {
	register(scenario{
		order: 100, name: "steady", topic: topicSteady, takes: "13 minutes",
		about: steadyAbout + "800 jobs/s, one a transaction, for a minute. River's FetchCooldown is the one whose median " +
			"from " +
			"commit to the handler's beginning is nearest to Daybook's; it completes in batches every 50 ms.",
		skip: func(*bench) string {
			if runtime.GOOS != "linux" {
				return "it reads /proc, which only Linux has"
			}
			return ""
		},
		run: runSteady,
	})
}

// riverCooldowns are what River is tuned among; they lie close to each other around the latency
// that Daybook has by default.
var riverCooldowns = []time.Duration{
	time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond, 4 * time.Millisecond, 5 * time.Millisecond,
	7 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond,
}

// economies are the values of workers.JobsOptions.PickInterval, which trades latency for processor
// time, of which the curve is made. processConfig carries a value to the worker.
var economies = []time.Duration{
	time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond,
	50 * time.Millisecond,
}

func runSteady(ctx context.Context, b *bench) ([]report.Row, error) {
	runs, plan := b.repeated(3), b.plan(calmRate, 1, time.Minute, nil)
	own, err := b.steadies(ctx, 1, b.daybookSteady(), plan)
	if err != nil {
		return nil, err
	}
	var tuned, usual []steadyFigures
	settings := riverTuned
	if !b.alone {
		if !b.smoke {
			if settings, err = b.tuneRiver(ctx, plan, percentile(own[0].all.begun, 50)); err != nil {
				return nil, err
			}
			if usual, err = b.steadies(ctx, 1, riverLoaded("River's default client", riverDefault, 10*time.Second),
				plan); err != nil {
				return nil, err
			}
		}
		if tuned, err = b.steadies(ctx, 1, riverLoaded("River's tuned client", settings, 10*time.Second),
			plan); err != nil {
			return nil, err
		}
	}
	for range runs - 1 {
		more, err := b.steadies(ctx, 1, b.daybookSteady(), plan)
		if err != nil {
			return nil, err
		}
		own = append(own, more...)
		if b.alone {
			continue
		}
		if more, err = b.steadies(ctx, 1, riverLoaded("River's tuned client", settings, 10*time.Second), plan); err != nil {
			return nil, err
		}
		tuned = append(tuned, more...)
	}
	core := func(f steadyFigures) float64 { return f.all.core() }
	begun := func(f steadyFigures) float64 { return percentile(f.all.begun, 50) }
	row := func(name, unit string, target report.Target, peer []steadyFigures,
		figure func(steadyFigures) float64,
	) report.Row {
		return report.Row{
			Name: name, Unit: unit, Target: target, Runs: runs,
			Daybook: steadyMedian(own, figure),
		}.Beside(riverName, steadyMedian(peer, figure))
	}
	rows := []report.Row{
		row("processor time, River tuned to the same latency", "% of a core", report.AtMostTimesPeer(0.8), tuned, core),
		row("commit to beginning, p50, River tuned to the same latency", "ms", report.Target{}, tuned, begun),
		row("commit to completion, p50, River tuned to the same latency", "ms", report.Target{}, tuned,
			completedIn(allTime, 50)),
		row("commit to completion, p99, River tuned to the same latency", "ms", report.Target{}, tuned,
			completedIn(allTime, 99)),
	}
	rows[0].Note = fmt.Sprintf("last run: %s.", own[len(own)-1])
	if len(tuned) > 0 {
		rows[0].Note += fmt.Sprintf(" River: %s: %s.", settings, tuned[len(tuned)-1])
	}
	if len(usual) > 0 {
		rows = append(rows, row("processor time, River's default client", "% of a core", report.Target{}, usual, core))
		rows[len(rows)-1].Note = fmt.Sprintf("River: %s: %s.", riverDefault, usual[0])
	}
	curve, err := b.economyCurve(ctx, plan)
	return append(rows, curve...), err
}

// tuneRiver finds the settings of River whose median to the beginning is nearest to another one.
func (b *bench) tuneRiver(ctx context.Context, plan steadyPlan, median float64) (best riverSettings, err error) {
	b.say("  looking for River's settings with the same latency")
	plan.held = min(plan.held, 15*time.Second)
	plan.part = min(plan.part, plan.held/4)
	nearest := math.Inf(1)
	for _, cooldown := range riverCooldowns {
		s := riverDefault
		s.fetchCooldown = cooldown
		f, err := b.steady(ctx, riverLoaded(fmt.Sprintf("River, FetchCooldown %s", cooldown), s, 10*time.Second), plan)
		if err != nil {
			return best, err
		}
		if distance := math.Abs(math.Log(percentile(f.all.begun, 50) / median)); distance < nearest {
			best, nearest = s, distance
		}
	}
	return best, nil
}

// economyCurve shows what the setting that trades latency for processor time does.
func (b *bench) economyCurve(ctx context.Context, plan steadyPlan) ([]report.Row, error) {
	var rows []report.Row
	values := economies
	if b.smoke {
		values = values[:1]
	}
	for _, value := range values {
		q := b.daybookSteady()
		q.economy = value
		f, err := b.steady(ctx, q, plan)
		if err != nil {
			return nil, err
		}
		rows = append(rows, report.Row{
			Name: fmt.Sprintf("processor time at %s", value), Daybook: f.all.core(), Unit: "% of a core", Runs: 1,
			Note: fmt.Sprintf("%s.", f),
		})
	}
	return rows, nil
}
