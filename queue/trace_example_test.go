package queue_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/queue"
)

// What is enqueued in the context belongs to the trace, and so does what its handler enqueues and
// sends.
func ExampleWithTraceParent() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx := queue.WithTraceParent(e.Context(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")

	if _, err := queue.EnqueueJob(ctx, e.Pool, "acme", Receipt{OrderID: "order-7"}, queue.JobOptions{}); err != nil {
		panic(err)
	}
	var kept string
	if err := e.Pool.QueryRow(ctx, `SELECT traceparent FROM daybook.jobs`).Scan(&kept); err != nil {
		panic(err)
	}
	fmt.Println(kept)
	// Output: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
}

// A text that is no traceparent is dropped.
func ExampleTraceParent() {
	ctx := queue.WithTraceParent(context.Background(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	fmt.Println(queue.TraceParent(ctx))
	fmt.Println(queue.TraceParent(queue.WithTraceParent(context.Background(), "yesterday")) == "")
	// Output:
	// 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
	// true
}

// traceKey is the key under which a program's own tracing keeps its header.
type traceKey struct{}

// A program that traces with a library of its own says once how a context's trace is written.
func ExampleSetTraceSource() {
	queue.SetTraceSource(func(ctx context.Context) string {
		header, _ := ctx.Value(traceKey{}).(string)
		return header
	})
	defer queue.SetTraceSource(nil)

	ctx := context.WithValue(context.Background(), traceKey{}, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	fmt.Println(queue.TraceParent(ctx))
	// Output: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
}

// Each request has a line; the job's id and the time are left out here.
func ExampleWithLog() {
	e := pgtest.NewExample()
	defer e.Close()
	log := slog.New(slog.NewTextHandler(os.Stdout,
		&slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "job" {
				return slog.Attr{}
			}
			return a
		}}))

	ctx := queue.WithLog(e.Context(), log)
	if _, err := queue.EnqueueJob(ctx, e.Pool, "acme", Receipt{OrderID: "order-7"}, queue.JobOptions{}); err != nil {
		panic(err)
	}
	// Output: level=INFO msg="job enqueued" kind=jobs org=acme type=receipt outcome=enqueued
}
