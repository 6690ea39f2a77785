package queue

import (
	"context"
	"log/slog"

	"github.com/daybook-dev/daybook/internal/store"
)

type logKey struct{}

// WithLog returns a context by which each request that enqueues is logged to log, as an info with
// the keys kind, org, type, job, document and outcome (a Result). The line is written when the
// statement has succeeded: the caller's transaction may still be rolled back. Of many requests at
// once each has a line, so use it where requests come one by one.
func WithLog(ctx context.Context, log *slog.Logger) context.Context {
	return context.WithValue(ctx, logKey{}, log)
}

// logOf is the log that the context has; nil: none.
func logOf(ctx context.Context) *slog.Logger {
	log, _ := ctx.Value(logKey{}).(*slog.Logger)
	return log
}

// logEnqueued logs a request. Words that are empty are left out.
func logEnqueued(ctx context.Context, log *slog.Logger, kind, org, jobType, job, document string, result Result) {
	attrs := make([]slog.Attr, 0, 6)
	for _, a := range []slog.Attr{
		slog.String("kind", kind), slog.String("org", org), slog.String("type", jobType), slog.String("job", job),
		slog.String("document", document),
		slog.String("outcome", string(result)),
	} {
		if a.Value.String() != "" {
			attrs = append(attrs, a)
		}
	}
	log.LogAttrs(ctx, slog.LevelInfo, "job enqueued", attrs...)
}

// logDocument logs a request that enqueued a document.
func logDocument(ctx context.Context, org, document string, r store.Requested, err error) {
	if log := logOf(ctx); log != nil && err == nil {
		logEnqueued(ctx, log, "accounting", org, "", r.JobID, document, Result(r.Result))
	}
}
