package main

import (
	"context"
	"math"
	"slices"
	"time"
)

// median is the middle of the values, or the mean of the two in the middle.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// percentile is the smallest value that p of 100 values do not exceed.
func percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(p/100*float64(len(sorted))))-1)]
}

// measurement is one run of one side.
type measurement func(context.Context) (float64, error)

// alternate calls the measurements in turn, runs times each, so that what changes on the machine
// meanwhile meets all of them. It returns the values of each. A measurement that is nil is left out
// and has no values.
func alternate(ctx context.Context, runs int, measurements ...measurement) ([][]float64, error) {
	values := make([][]float64, len(measurements))
	for range runs {
		for i, measure := range measurements {
			if measure == nil {
				continue
			}
			v, err := measure(ctx)
			if err != nil {
				return nil, err
			}
			values[i] = append(values[i], v)
		}
	}
	return values, nil
}

// medians calls measure runs times, and returns the median of each of the figures that it returns.
func medians(ctx context.Context, runs int, measure func(context.Context) ([]float64, error)) ([]float64, error) {
	var all [][]float64
	for range runs {
		figures, err := measure(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, figures)
	}
	middle := make([]float64, len(all[0]))
	for i := range middle {
		values := make([]float64, len(all))
		for run, figures := range all {
			values[run] = figures[i]
		}
		middle[i] = median(values)
	}
	return middle, nil
}

func perSecond(n int, d time.Duration) float64 { return float64(n) / d.Seconds() }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
