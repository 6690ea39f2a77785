package main

import (
	"context"
	"fmt"

	"github.com/daybook-dev/daybook/bench/report"
)

// side is a queue as it works jobs of one contract.
type side struct {
	// name is the peer's, settings are how it works; Daybook needs neither.
	name, settings string
	// n is how many jobs drain works.
	n     int
	drain func(ctx context.Context) (drained, error)
}

// tuned is a peer with its best settings, which are looked for among the variants first; a short
// run takes the first ones.
func tuned[S fmt.Stringer](ctx context.Context, b *bench, name string, n int, variants []S,
	drain func(ctx context.Context, s S, n int) (drained, error),
) (side, error) {
	best := variants[0]
	if !b.smoke {
		var err error
		best, err = fastest(ctx, b, variants, func(ctx context.Context, s S) (float64, error) {
			took, err := drain(ctx, s, n)
			return perSecond(n, took.took), err
		})
		if err != nil {
			return side{}, err
		}
	}
	return side{
		name: name, settings: best.String(), n: n,
		drain: func(ctx context.Context) (drained, error) { return drain(ctx, best, n) },
	}, nil
}

// contest drains all sides in turn, runs times each, and returns their rates and, in seconds, how
// long it took until the first job began: the medians.
func contest(ctx context.Context, runs int, sides []side) (rates, firsts []float64, err error) {
	measured, began := make([][]float64, len(sides)), make([][]float64, len(sides))
	for range runs {
		for i, s := range sides {
			took, err := s.drain(ctx)
			if err != nil {
				return nil, nil, err
			}
			measured[i] = append(measured[i], perSecond(s.n, took.took))
			began[i] = append(began[i], took.first.Seconds())
		}
	}
	for i := range sides {
		rates, firsts = append(rates, median(measured[i])), append(firsts, median(began[i]))
	}
	return rates, firsts, nil
}

// beside is a row of Daybook's, the first of the sides, once beside each of the peers. The row has
// its name beside River, or beside the only peer. A peer without a target is only told.
func beside(row report.Row, sides []side, figures []float64, targets map[string]report.Target) []report.Row {
	row.Daybook = figures[0]
	if len(sides) == 1 {
		return []report.Row{row}
	}
	var rows []report.Row
	for i, s := range sides[1:] {
		r := row.Beside(s.name, figures[i+1])
		r.Target = targets[s.name]
		if s.name != riverName && len(sides) > 2 {
			r.Name += ", beside " + s.name
		}
		r.Note = fmt.Sprintf("%s jobs; %s: %s.", report.Count(sides[0].n), s.name, s.settings)
		if s.n != sides[0].n {
			r.Note = fmt.Sprintf("%s jobs; %s: %s jobs, %s.", report.Count(sides[0].n), s.name, report.Count(s.n), s.settings)
		}
		rows = append(rows, r)
	}
	return rows
}
