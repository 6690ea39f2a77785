package workers

import "github.com/daybook-dev/daybook/workers/internal/tracing"

// EnableTracing has this process make spans of OpenTelemetry, by the global TracerProvider
// (otel.SetTracerProvider): of activities, of attempts at jobs, of the transactions that complete
// them, of what the built-in handlers send. It is off until then. Call it before the workers are
// made.
//
// A job's spans belong to the trace that it was enqueued in: requests of package queue take it from
// the span that runs in their context, and handlers are given a context with a span. It replaces
// what queue.SetTraceSource has set.
func EnableTracing() { tracing.Enable() }
