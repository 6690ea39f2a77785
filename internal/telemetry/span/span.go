// Package span is how Daybook's code takes part in traces without linking a tracing library: a
// trace is passed on as the text of a traceparent (W3C Trace Context), and what is worth a span
// says so to a hook. Package workers/internal/tracing fills the hooks with OpenTelemetry, where it
// is asked to; without it they cost the read of a pointer.
package span

import (
	"context"
	"errors"
	"sync/atomic"
)

// traceparentBytes is the length of a traceparent of version 00: version, trace id, span id and
// flags, with dashes.
const traceparentBytes = 55

// Valid reports whether the text is a traceparent of version 00, such as
// 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.
func Valid(traceparent string) bool {
	return len(traceparent) == traceparentBytes && traceparent[:3] == "00-" && traceparent[35] == '-' &&
		traceparent[52] == '-' &&
		isID(traceparent[3:35]) && isID(traceparent[36:52]) && isHex(traceparent[53:])
}

// TraceID is the trace of a traceparent: 32 digits; "": it is not valid.
func TraceID(traceparent string) string {
	if !Valid(traceparent) {
		return ""
	}
	return traceparent[3:35]
}

func isHex(s string) bool {
	for i := range len(s) {
		if (s[i] < '0' || s[i] > '9') && (s[i] < 'a' || s[i] > 'f') {
			return false
		}
	}
	return true
}

// isID reports whether s is a number in hexadecimal that is not 0.
func isID(s string) bool {
	if !isHex(s) {
		return false
	}
	for i := range len(s) {
		if s[i] != '0' {
			return true
		}
	}
	return false
}

type (
	askedKey     struct{}
	inheritedKey struct{}
)

// WithParent returns a context in which what is asked for belongs to the trace of traceparent,
// whatever span runs. One that is not valid is dropped.
func WithParent(ctx context.Context, traceparent string) context.Context {
	if !Valid(traceparent) {
		return ctx
	}
	return context.WithValue(ctx, askedKey{}, traceparent)
}

// Inherit is WithParent for the trace that a job came with: a span that runs comes before it.
func Inherit(ctx context.Context, traceparent string) context.Context {
	if !Valid(traceparent) {
		return ctx
	}
	return context.WithValue(ctx, inheritedKey{}, traceparent)
}

// Parent returns the traceparent of what is asked for in the context: that of WithParent, else that
// of the span that runs, else that of Inherit; "": it belongs to no trace.
func Parent(ctx context.Context) string {
	if t, ok := ctx.Value(askedKey{}).(string); ok {
		return t
	}
	if running := source.Load(); running != nil {
		if t := (*running)(ctx); Valid(t) {
			return t
		}
	}
	t, _ := ctx.Value(inheritedKey{}).(string)
	return t
}

var source atomic.Pointer[func(context.Context) string]

// SetSource has Parent ask f for the traceparent of the span that runs in a context, "" where none
// does. Nil: nothing is asked.
func SetSource(f func(ctx context.Context) string) {
	if f == nil {
		source.Store(nil)
		return
	}
	source.Store(&f)
}

// Kind is whose side of a call a span is on.
type Kind int

// The kinds of spans: of work of this process, of a request that it answers, of one that it sends
// and waits for, of one that asks for work that is done later, and of that work.
const (
	Internal Kind = iota
	Server
	Client
	Producer
	Consumer
)

// Attr is something that a span says of what it covers. It must be no secret. Value is a string, an
// int or a bool.
type Attr struct {
	Key   string
	Value any
}

// Span is one that is about to start. Its parent is the span that runs in the context, or else
// Parent.
type Span struct {
	// Name says what is done, not to what: "send webhook". There are few different ones.
	Name  string
	Kind  Kind
	Attrs []Attr
}

// Running is a span that has started.
type Running interface {
	// Rename gives it another name.
	Rename(name string)
	// Set adds to what it says.
	Set(attrs ...Attr)
	// End ends it, with the error of what it covers. It is called once.
	End(err error)
}

// Starter starts spans.
type Starter func(ctx context.Context, s Span) (context.Context, Running)

var starter atomic.Pointer[Starter]

// SetStarter has Start start spans. Nil: Start does nothing.
func SetStarter(s Starter) {
	if s == nil {
		starter.Store(nil)
		return
	}
	starter.Store(&s)
}

// Start starts a span. What is done in the context that it returns belongs to it.
func Start(ctx context.Context, s Span) (context.Context, Running) {
	start := starter.Load()
	if start == nil {
		return ctx, none{}
	}
	ctx, running := (*start)(ctx, s)
	if ctx.Value(privateKey{}) != nil {
		running = private{running}
	}
	return ctx, running
}

type privateKey struct{}

// Private returns a context whose spans do not say what an error is: it may quote what is encrypted
// in the database.
func Private(ctx context.Context) context.Context { return context.WithValue(ctx, privateKey{}, true) }

// ErrPrivate stands for an error of which a span says nothing.
var ErrPrivate = errors.New("the error is kept with the job, encrypted")

// private is a span that keeps errors to itself.
type private struct{ Running }

// End implements Running.
func (p private) End(err error) {
	if err != nil {
		err = ErrPrivate
	}
	p.Running.End(err)
}

// none is the span of a process that does not trace.
type none struct{}

func (none) Rename(string) {}
func (none) Set(...Attr)   {}
func (none) End(error)     {}
