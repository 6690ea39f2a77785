package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"runtime/debug"
	"time"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/telemetry/span"
	"github.com/daybook-dev/daybook/server/internal/entry"
)

// noted is what the log says of a request, gathered while it is answered. Bodies, queries and
// headers are never in it.
type noted struct {
	id, code, trace string
	cause           error
	entry.Entry
}

type notedKey struct{}

func note(ctx context.Context) *noted {
	if n, ok := ctx.Value(notedKey{}).(*noted); ok {
		return n
	}
	return &noted{}
}

// requestIDPattern is what a caller's own request id may look like; any other is replaced.
var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9._:/+=-]{1,100}$`)

func requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); requestIDPattern.MatchString(id) {
		return id
	}
	random := make([]byte, 12)
	_, _ = rand.Read(random) // it never fails
	return hex.EncodeToString(random)
}

// answer is a ResponseWriter that knows what was answered.
type answer struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(data []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(data)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// watch gives each request an id and a line in the log, and answers with status 500 when a handler
// panics.
func (s *server) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		n := &noted{id: requestID(r), Entry: entry.Entry{Count: s.limits.request}}
		a := &answer{ResponseWriter: w}
		a.Header().Set("X-Request-Id", n.id)
		a.Header().Set("Cache-Control", "no-store")
		a.Header().Set("X-Content-Type-Options", "nosniff")
		ctx, answering := span.Start(span.Inherit(entry.With(context.WithValue(r.Context(), notedKey{}, n), &n.Entry),
			r.Header.Get("Traceparent")), span.Span{
			Name: r.Method, Kind: span.Server,
			Attrs: []span.Attr{
				{Key: "http.request.method", Value: r.Method},
				{Key: "url.path", Value: loggedPath(r.URL.Path)},
			},
		})
		r = r.WithContext(ctx)
		n.trace = span.TraceID(span.Parent(ctx))
		defer func() {
			if p := recover(); p != nil {
				s.panicked(a, r, n, p)
			}
			s.logRequest(r, a, n, time.Since(begun))
			s.tellRequest(r, a)
			answered(answering, r, a, n)
		}()
		next.ServeHTTP(a, r)
	})
}

// answered ends the span of a request.
func answered(answering span.Running, r *http.Request, a *answer, n *noted) {
	if r.Pattern != "" {
		answering.Rename(r.Pattern)
	}
	answering.Set(span.Attr{Key: "http.response.status_code", Value: a.status})
	if n.code != "" {
		answering.Set(span.Attr{Key: "daybook.code", Value: n.code})
	}
	if a.status < http.StatusInternalServerError {
		answering.End(nil)
		return
	}
	answering.End(fmt.Errorf("answered with status %d", a.status))
}

func (s *server) panicked(a *answer, r *http.Request, n *noted, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	s.log.LogAttrs(r.Context(), slog.LevelError, "panic while a request was answered",
		slog.String("request", n.id), slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
	if a.status == 0 {
		writeProblem(a, n, problemOfClass(failure.Internal, nil))
	}
}

func (s *server) logRequest(r *http.Request, a *answer, n *noted, took time.Duration) {
	level := slog.LevelInfo
	switch {
	case a.status >= http.StatusInternalServerError:
		level = slog.LevelError
	case r.Pattern == "GET /healthz" || r.Pattern == "GET /readyz":
		level = slog.LevelDebug
	}
	attrs := []slog.Attr{
		slog.String("request", n.id), slog.String("method", r.Method), slog.String("path", loggedPath(r.URL.Path)),
		slog.Int("status", a.status), slog.Float64("milliseconds", float64(took.Microseconds())/1000),
		slog.String("remote", r.RemoteAddr),
	}
	if n.Token != "" {
		attrs = append(attrs, slog.String("token", n.Token))
	}
	if n.code != "" {
		attrs = append(attrs, slog.String("code", n.code))
	}
	if n.trace != "" {
		attrs = append(attrs, slog.String("trace", n.trace))
	}
	if n.cause != nil {
		attrs = append(attrs, slog.String("error", n.cause.Error()))
	}
	s.log.LogAttrs(r.Context(), level, "request", attrs...)
}

// writeProblem answers with a problem where huma is not in charge.
func writeProblem(w http.ResponseWriter, n *noted, p *Problem) {
	p.RequestID, n.code, n.cause = n.id, p.Code, p.cause
	maps.Copy(w.Header(), p.header)
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}
