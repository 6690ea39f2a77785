// Package tracing makes spans of OpenTelemetry of what Daybook does: of requests to the HTTP API,
// of activities, of attempts at jobs, of the transactions that complete them, and of what handlers
// send. It is the one package that links OpenTelemetry's traces; the others say what is worth a
// span to package internal/telemetry/span, or are wrapped here. Nothing is made until Enable is
// called.
package tracing

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/telemetry/span"
)

// scope is the name of Daybook's tracer.
const scope = "github.com/daybook-dev/daybook"

var enabled atomic.Bool

var enableOnce sync.Once

// Enable has this process make spans from now on, by OpenTelemetry's global TracerProvider. Workers
// that were made before make none of activities, attempts and completions.
func Enable() {
	enableOnce.Do(func() {
		span.SetSource(traceparent)
		span.SetStarter(start)
		enabled.Store(true)
	})
}

// Enabled reports whether Enable was called.
func Enabled() bool { return enabled.Load() }

// tracer is Daybook's, of the global provider as it is now.
func tracer() trace.Tracer { return otel.Tracer(scope) }

// Interceptors make a span of each activity; none, before Enable. Workflows have no spans: a
// queue's workflow runs for ever, so that a span of it would never end, and one trace would hold
// all that was ever done. An activity's span names the workflow and its run.
func Interceptors() []interceptor.WorkerInterceptor {
	if !Enabled() {
		return nil
	}
	all, err := opentelemetry.NewTracingInterceptor(opentelemetry.TracerOptions{
		Tracer:            tracer(),
		TextMapPropagator: format,
	})
	if err != nil {
		otel.Handle(fmt.Errorf("trace activities: %w", err))
		return nil
	}
	return []interceptor.WorkerInterceptor{&activities{all: all}}
}

// activities has an interceptor intercept activities alone.
type activities struct {
	interceptor.WorkerInterceptorBase
	all interceptor.WorkerInterceptor
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (a *activities) InterceptActivity(ctx context.Context,
	next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return a.all.InterceptActivity(ctx, next)
}

// Engine wraps what an engine works with; nil, before Enable.
func Engine() engine.Tracer {
	if !Enabled() {
		return nil
	}
	return wrapper{}
}

// format writes and reads traceparents.
var format propagation.TraceContext

// traceparent is that of the span that runs in the context; "": none does.
func traceparent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	format.Inject(ctx, carrier)
	return carrier.Get("traceparent")
}

// remote is the span that a traceparent names; invalid: it names none.
func remote(parent string) trace.SpanContext {
	if parent == "" {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{"traceparent": parent}
	return trace.SpanContextFromContext(format.Extract(context.Background(), carrier))
}

// under is a context in which spans have the parent that a traceparent names: ctx, if that names
// none.
func under(ctx context.Context, parent string) context.Context {
	if c := remote(parent); c.IsValid() {
		return trace.ContextWithRemoteSpanContext(ctx, c)
	}
	return ctx
}

var kinds = map[span.Kind]trace.SpanKind{
	span.Internal: trace.SpanKindInternal, span.Server: trace.SpanKindServer, span.Client: trace.SpanKindClient,
	span.Producer: trace.SpanKindProducer,
	span.Consumer: trace.SpanKindConsumer,
}

// start implements span.Starter.
func start(ctx context.Context, s span.Span) (context.Context, span.Running) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = under(ctx, span.Parent(ctx))
	}
	ctx, r := tracer().Start(ctx, s.Name, trace.WithSpanKind(kinds[s.Kind]), trace.WithAttributes(attributes(s.Attrs)...))
	return ctx, running{r}
}

// running implements span.Running.
type running struct{ trace.Span }

// Rename implements span.Running.
func (r running) Rename(name string) { r.SetName(name) }

// Set implements span.Running.
func (r running) Set(attrs ...span.Attr) { r.SetAttributes(attributes(attrs)...) }

// End implements span.Running.
func (r running) End(err error) {
	if err != nil {
		r.SetStatus(codes.Error, clip(err.Error()))
	}
	r.Span.End()
}

// maxStatus bounds what a span says of an error.
const maxStatus = 500

func clip(s string) string {
	if len(s) > maxStatus {
		return s[:maxStatus] + "…"
	}
	return s
}

func attributes(attrs []span.Attr) []attribute.KeyValue {
	out := make([]attribute.KeyValue, 0, len(attrs))
	for _, a := range attrs {
		switch v := a.Value.(type) {
		case string:
			out = append(out, attribute.String(a.Key, v))
		case int:
			out = append(out, attribute.Int(a.Key, v))
		case bool:
			out = append(out, attribute.Bool(a.Key, v))
		}
	}
	return out
}
