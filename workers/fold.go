package workers

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// FoldRepeats returns a handler that passes log records on to next, and lowers repetitions to the
// level debug. A repetition is a warning with the same message, or an error with the same message
// and cause, as one that was passed on less than a minute ago. The next line that is passed on says
// how many were lowered. While Temporal or the database is unavailable, Temporal's SDK logs a line
// at each try of each poller or activity; one line a minute is enough.
//
// Use it for the logger of the Temporal client that you pass to a worker.
func FoldRepeats(next slog.Handler) slog.Handler {
	return &folding{next: next, seen: &folds{of: map[string]*fold{}}}
}

// foldFor is for how long a message is folded.
const foldFor = time.Minute

type folding struct {
	next slog.Handler
	seen *folds
}

// folds are the messages that were passed on.
type folds struct {
	mu sync.Mutex
	of map[string]*fold
}

type fold struct {
	since time.Time
	more  int
}

// take reports whether a message is to be passed on, and how many like it were not since the last
// one that was.
func (f *folds) take(message string, at time.Time) (pass bool, more int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.of[message]
	if one != nil && at.Sub(one.since) < foldFor {
		one.more++
		return false, 0
	}
	if one != nil {
		more = one.more
	}
	if len(f.of) >= maxFolds {
		clear(f.of)
	}
	f.of[message] = &fold{since: at}
	return true, more
}

// maxFolds bounds how many messages are remembered.
const maxFolds = 1000

// Enabled implements slog.Handler.
func (h *folding) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *folding) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		pass, more := h.seen.take(sameAs(r), r.Time)
		switch {
		case !pass && !h.next.Enabled(ctx, slog.LevelDebug):
			return nil
		case !pass:
			r = r.Clone()
			r.Level = slog.LevelDebug
		case more > 0:
			r = r.Clone()
			r.AddAttrs(slog.Int("repeated", more))
		}
	}
	return h.next.Handle(ctx, r)
}

// sameAs is what is the same of a record and of those that repeat it: of a warning its message, of
// an error what it says was wrong as well.
func sameAs(r slog.Record) string {
	same := r.Message
	if r.Level < slog.LevelError {
		return same
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "Error" {
			same += "\n" + a.Value.String()
		}
		return true
	})
	return same
}

// WithAttrs implements slog.Handler.
func (h *folding) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &folding{next: h.next.WithAttrs(attrs), seen: h.seen}
}

// WithGroup implements slog.Handler.
func (h *folding) WithGroup(name string) slog.Handler {
	return &folding{next: h.next.WithGroup(name), seen: h.seen}
}
