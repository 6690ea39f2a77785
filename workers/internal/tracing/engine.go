package tracing

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/span"
	"github.com/daybook-dev/daybook/models"
)

// wrapper implements engine.Tracer.
type wrapper struct{}

// Handlers implements engine.Tracer.
func (wrapper) Handlers(kind string, h engine.Handlers) engine.Handlers { return handlers{h, kind} }

// Kind implements engine.Tracer.
func (wrapper) Kind(k engine.Kind) engine.Kind { return completing{k} }

// The attributes of spans about jobs: the keys that log lines have.
const (
	attrKind     = attribute.Key("daybook.kind")
	attrOrg      = attribute.Key("daybook.org")
	attrType     = attribute.Key("daybook.type")
	attrJob      = attribute.Key("daybook.job")
	attrDocument = attribute.Key("daybook.document")
	attrAttempt  = attribute.Key("daybook.attempt")
	attrOutcome  = attribute.Key("daybook.outcome")
	attrCode     = attribute.Key("daybook.code")
	attrTurn     = attribute.Key("daybook.turn")
	attrJobs     = attribute.Key("daybook.jobs")
)

// about says which job a span is about.
func about(kind string, j *store.Job) []attribute.KeyValue {
	attrs := []attribute.KeyValue{attrKind.String(kind), attrJob.String(j.ID), attrAttempt.Int(j.Attempt)}
	for key, value := range map[attribute.Key]string{attrOrg: j.OrgID, attrType: j.Type, attrDocument: j.DocumentID} {
		if value != "" {
			attrs = append(attrs, key.String(value))
		}
	}
	return attrs
}

// maxLinks bounds the links of a span, as the SDK of OpenTelemetry does.
const maxLinks = 128

// links are those to the traces of jobs, each once.
func links(jobs []store.Job) []trace.Link {
	var all []trace.Link
	seen := map[string]bool{}
	for i := range jobs {
		parent := jobs[i].TraceParent
		if parent == "" || seen[parent] || len(all) == maxLinks {
			continue
		}
		seen[parent] = true
		if c := remote(parent); c.IsValid() {
			all = append(all, trace.Link{SpanContext: c})
		}
	}
	return all
}

// handlers makes a span of each attempt.
type handlers struct {
	engine.Handlers
	kind string
}

// Work implements engine.Handlers. The attempt belongs to the trace that the job was enqueued in,
// and to one of its own otherwise; it links to the activity that it is a part of, which works many
// jobs.
func (h handlers) Work(ctx context.Context, job store.Job, asks *engine.Running) engine.Attempt {
	o := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(about(h.kind, &job)...)}
	if activity := trace.SpanContextFromContext(ctx); activity.IsValid() {
		o = append(o, trace.WithLinks(trace.Link{SpanContext: activity}))
	}
	if parent := remote(job.TraceParent); parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	} else {
		o = append(o, trace.WithNewRoot())
	}
	ctx, s := tracer().Start(ctx, "attempt "+job.Type, o...)
	defer s.End()
	a := h.Handlers.Work(ctx, job, asks)
	finish(s, a.Outcome, a.Code, a.OnRecord())
	if inTx := a.InTx; inTx != nil {
		of := trace.SpanContextFromContext(ctx)
		a.InTx = func(ctx context.Context, tx pgx.Tx) (result []byte, err error) {
			ctx, s := tracer().Start(trace.ContextWithSpanContext(ctx, of), "handler's transaction "+job.Type,
				trace.WithAttributes(about(h.kind, &job)...))
			defer func() {
				if a.Hide != nil && err != nil {
					running{s}.End(span.ErrPrivate)
					return
				}
				running{s}.End(err)
			}()
			return inTx(ctx, tx)
		}
	}
	return a
}

// finish says how an attempt ended. The message is the error that the attempt's record has: it may
// quote what a handler said, so only the code and its beginning are told.
func finish(s trace.Span, outcome models.Outcome, code models.ErrorCode, message string) {
	s.SetAttributes(attrOutcome.String(string(outcome)))
	if code != "" {
		s.SetAttributes(attrCode.String(string(code)))
	}
	switch outcome {
	case models.OutcomeRetried, models.OutcomeFailed, models.OutcomeLost:
		s.SetStatus(codes.Error, clip(message))
	case models.OutcomeCompleted, models.OutcomeRescheduled, models.OutcomeCancelled:
	}
}

// shown is what a span says of an error of jobs.
func shown(err error, jobs ...store.Job) error {
	for i := range jobs {
		if err != nil && encryption.KeyOf(jobs[i].Payload) != "" {
			return span.ErrPrivate
		}
	}
	return err
}

// Prepare implements engine.Handlers: a chunk of jobs, each of a trace of its own, is worked in the
// activity's trace, with links to theirs.
func (h handlers) Prepare(ctx context.Context, workflowRun string, jobs []store.Job) (engine.BulkCommit, error) {
	preparing, s := h.chunk(ctx, "prepare chunk", jobs)
	commit, err := h.Handlers.Prepare(preparing, workflowRun, jobs)
	running{s}.End(shown(err, jobs...))
	if err != nil || commit == nil {
		return commit, err
	}
	return func(ctx context.Context, tx pgx.Tx, jobs []store.Job) (attempts []engine.Attempt, err error) {
		ctx, s := h.chunk(ctx, "work chunk", jobs)
		defer func() { running{s}.End(shown(err, jobs...)) }()
		return commit(ctx, tx, jobs)
	}, nil
}

func (h handlers) chunk(ctx context.Context, name string, jobs []store.Job) (context.Context, trace.Span) {
	return tracer().Start(ctx, name, trace.WithLinks(links(jobs)...),
		trace.WithAttributes(attrKind.String(h.kind), attrJobs.Int(len(jobs))))
}

// completing makes a span, in the trace of each job that has one, of the statement that completes
// it.
type completing struct{ engine.Kind }

// Complete implements engine.Completer.
func (k completing) Complete(ctx context.Context, tx pgx.Tx, turn store.Turn, completions []store.Completion,
	a store.Access,
) (store.Completed, error) {
	began, name := time.Now(), "complete"
	if a.Commit {
		name = "complete and commit"
	}
	done, err := k.Kind.Complete(ctx, tx, turn, completions, a)
	k.tell(ctx, name, turn, completions, began, err)
	return done, err
}

// tell makes the spans. Each links to the span in which it was done, which has many jobs of other
// traces.
func (k completing) tell(ctx context.Context, name string, turn store.Turn, completions []store.Completion,
	began time.Time, err error,
) {
	ended := time.Now()
	within := trace.SpanContextFromContext(ctx)
	for i := range completions {
		c := &completions[i]
		parent := remote(c.Job.TraceParent)
		if !parent.IsValid() {
			continue
		}
		o := []trace.SpanStartOption{
			trace.WithTimestamp(began), trace.WithAttributes(about(k.Name(), &c.Job)...),
			trace.WithAttributes(attrTurn.String(turn.ID), attrJobs.Int(len(completions)),
				attrOutcome.String(string(c.Outcome))),
		}
		if within.IsValid() && within.TraceID() != parent.TraceID() {
			o = append(o, trace.WithLinks(trace.Link{SpanContext: within}))
		}
		_, s := tracer().Start(trace.ContextWithRemoteSpanContext(context.Background(), parent), name, o...)
		if c.Code != "" {
			s.SetAttributes(attrCode.String(string(c.Code)))
		}
		if err != nil {
			s.SetStatus(codes.Error, clip(err.Error()))
		}
		s.End(trace.WithTimestamp(ended))
	}
}
