// Package figures keeps what Daybook says of itself: gauges of this moment, what attempts came to
// lately, and how deep the queues were. Pages, reports and metrics read these, at a cost that does
// not depend on the queues' size. Package sampler writes the gauges.
package figures
