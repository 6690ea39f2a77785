package metrics

import "slices"

// histogram counts values by upper bounds; above the last one is one bucket more.
type histogram struct {
	bounds  []float64
	buckets []uint64
	sum     float64
	count   uint64
}

func newHistogram(bounds []float64) *histogram {
	return &histogram{bounds: bounds, buckets: make([]uint64, len(bounds)+1)}
}

func (h *histogram) observe(v float64) {
	i, _ := slices.BinarySearch(h.bounds, v)
	h.buckets[i]++
	h.sum += v
	h.count++
}
