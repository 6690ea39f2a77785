// Package metrics tells Prometheus and OpenTelemetry collectors what Daybook does. Workers tell it
// of jobs as events; one process of all tells of the queues what its sampler found. docs/metrics.md
// is the contract; a test compares it with what is exposed. No other package knows the libraries.
package metrics
