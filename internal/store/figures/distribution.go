package figures

import (
	"slices"
	"time"
)

// Bounds are the upper bounds of the buckets of times, in seconds; above the last one is one bucket
// more. Histograms of metrics have the same. A change wants a migration: rows of daybook.history
// have a count for each bucket.
func Bounds() []float64 { return slices.Clone(bounds) }

var bounds = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}

// Bucket is the place of a time's bucket.
func Bucket(d time.Duration) int {
	i, _ := slices.BinarySearch(bounds, d.Seconds())
	return i
}

// Distribution is how a number of times is distributed.
type Distribution struct {
	// Seconds is their sum.
	Seconds float64
	// Buckets counts them by Bounds; nil: there are none.
	Buckets []int64
}

// Observe adds a time. One that is negative, because two clocks differ, is none at all.
func (d *Distribution) Observe(t time.Duration) {
	if d.Buckets == nil {
		d.Buckets = make([]int64, len(bounds)+1)
	}
	t = max(t, 0)
	d.Seconds += t.Seconds()
	d.Buckets[Bucket(t)]++
}

// Add adds the times of another distribution.
func (d *Distribution) Add(other Distribution) {
	if len(other.Buckets) == 0 {
		return
	}
	if d.Buckets == nil {
		d.Buckets = make([]int64, len(bounds)+1)
	}
	d.Seconds += other.Seconds
	for i := range min(len(d.Buckets), len(other.Buckets)) {
		d.Buckets[i] += other.Buckets[i]
	}
}

// Count is how many times there are.
func (d Distribution) Count() int64 {
	var n int64
	for _, b := range d.Buckets {
		n += b
	}
	return n
}

// Quantile is the time that a share of the times, from 0 to 1, does not exceed; 0 when there are
// none. It is an estimate: within a bucket times are taken to be spread evenly, as Prometheus does
// it, and above the last bound it is that bound.
func (d Distribution) Quantile(share float64) time.Duration {
	n := d.Count()
	if n == 0 {
		return 0
	}
	rank := share * float64(n)
	var below int64
	for i, b := range d.Buckets {
		if b == 0 || float64(below+b) < rank {
			below += b
			continue
		}
		if i >= len(bounds) {
			break
		}
		low := 0.0
		if i > 0 {
			low = bounds[i-1]
		}
		return time.Duration((low + (bounds[i]-low)*(rank-float64(below))/float64(b)) * float64(time.Second))
	}
	return time.Duration(bounds[len(bounds)-1] * float64(time.Second))
}
