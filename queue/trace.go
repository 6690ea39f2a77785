package queue

import (
	"context"

	"github.com/daybook-dev/daybook/internal/telemetry/span"
)

// WithTraceParent returns a context in which what is enqueued belongs to a trace: that of a
// traceparent as W3C Trace Context writes it, such as
// 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01. It is kept with the job, and the job's
// handler and what that enqueues and sends belong to the trace as well. A text of another form is
// dropped: ctx is returned as it is.
//
// It comes before the source of SetTraceSource. A handler's context has its job's trace already.
//
// For the rest of the transaction that a request runs in the setting daybook.traceparent says the
// same.
func WithTraceParent(ctx context.Context, traceparent string) context.Context {
	return span.WithParent(ctx, traceparent)
}

// TraceParent returns the traceparent of what is enqueued in the context; "": it belongs to no
// trace. A handler sends it on to the services that it calls, in the header traceparent.
func TraceParent(ctx context.Context) string { return span.Parent(ctx) }

// SetTraceSource has every request of this process ask f for the traceparent of the span that runs
// in its context; "" where none does. It is for programs that trace with a library of their own.
// Nil, as at the start: nothing is asked. With OpenTelemetry:
//
//	queue.SetTraceSource(func(ctx context.Context) string {
//		c := propagation.MapCarrier{}
//		propagation.TraceContext{}.Inject(ctx, c)
//		return c.Get("traceparent")
//	})
func SetTraceSource(f func(ctx context.Context) string) { span.SetSource(f) }
