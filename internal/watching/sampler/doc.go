// Package sampler looks every 15 seconds how the queues stand, and writes it to daybook.gauges. Of
// all processes that run it one samples: the one whose name the last sample has. When it ends, or
// falls silent for 40 seconds, another one samples.
package sampler
