// Package eventlog writes what happens to jobs as structured log lines, one a job and event, all
// with the same keys.
package eventlog

import (
	"context"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/internal/text/redact"
)

// Mode says what is logged.
type Mode string

// The modes, which are the values of DAYBOOK_LOG_JOBS.
const (
	// Problems is the default: dead letters and lost attempts are warnings, retries and cancellations
	// are infos, all else is for debugging.
	Problems Mode = ""
	// All logs every end of an attempt as an info at least.
	All Mode = "1"
	// None logs nothing of jobs.
	None Mode = "0"
)

// Modes lists the modes.
func Modes() []Mode { return []Mode{Problems, All, None} }

// New returns a sink that logs to log; nil when there is nothing to log.
func New(log *slog.Logger, mode Mode) events.Sink {
	if mode == None || log == nil {
		return nil
	}
	return &sink{log: log, all: mode == All}
}

type sink struct {
	log *slog.Logger
	all bool
}

// level is at which an event is logged.
func (s *sink) level(e *events.Event) slog.Level {
	switch e.Name {
	case events.Failed:
		return slog.LevelWarn
	case events.Reclaimed:
		if e.Counted {
			return slog.LevelWarn
		}
		return slog.LevelInfo
	case events.Retried, events.Cancelled:
		return slog.LevelInfo
	case events.Completed, events.Rescheduled:
		if s.all {
			return slog.LevelInfo
		}
	case events.Leased, events.GivenBack:
	}
	return slog.LevelDebug
}

// Observe implements events.Sink.
func (s *sink) Observe(batch []events.Event) {
	ctx := context.Background()
	handler := s.log.Handler()
	var enabled, asked [16]bool // of the levels from Debug on
	for i := range batch {
		e := &batch[i]
		level := s.level(e)
		at := int(level - slog.LevelDebug)
		if !asked[at] {
			asked[at], enabled[at] = true, handler.Enabled(ctx, level)
		}
		if !enabled[at] {
			continue
		}
		r := slog.NewRecord(e.At, level, message(e), 0)
		r.AddAttrs(Attrs(e)...)
		_ = handler.Handle(ctx, r)
	}
}

// messages are what the lines say.
var messages = map[events.Name]string{
	events.Leased: "job leased", events.Completed: "job completed", events.Retried: "job failed, and is tried again",
	events.Rescheduled: "job put off",
	events.Failed:      "job failed for good: it is a dead letter", events.Cancelled: "job cancelled",
	events.Reclaimed: "lease reclaimed",
	events.GivenBack: "job given back",
}

// message is what the line of an event says. A task that failed is completed, and is no dead
// letter.
func message(e *events.Event) string {
	if e.Kind == "tasks" && e.Name == events.Failed {
		return "task failed: it is completed, and its error is noted with it"
	}
	return messages[e.Name]
}

// Attrs are an event's attributes: kind, org, type, job, document, attempt, outcome, code, error,
// duration_ms, waited_ms, owner, worker, turn and trace. Those that an event lacks are left out.
// Secrets are taken out of the error.
func Attrs(e *events.Event) []slog.Attr {
	attrs := make([]slog.Attr, 0, 15)
	text := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	text("kind", e.Kind)
	text("org", e.OrgID)
	text("type", e.Type)
	text("job", e.JobID)
	text("document", e.DocumentID)
	if e.Attempt > 0 {
		attrs = append(attrs, slog.Int("attempt", e.Attempt))
	}
	text("outcome", string(e.Name))
	text("code", e.Code)
	text("error", clip(redact.Text(e.Error)))
	if e.Took > 0 {
		attrs = append(attrs, slog.Float64("duration_ms", milliseconds(e.Took)))
	}
	if e.Waited > 0 {
		attrs = append(attrs, slog.Float64("waited_ms", milliseconds(e.Waited)))
	}
	text("owner", e.Owner)
	text("worker", e.Worker)
	text("turn", e.Turn)
	text("trace", e.Trace)
	return attrs
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// longest is how many bytes of an error a line has; the attempt on record has all.
const longest = 2000

func clip(s string) string {
	if len(s) <= longest {
		return s
	}
	cut := longest
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
