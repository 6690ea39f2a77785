package pgtest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Example is a database for an Example function, which is given no testing.TB, and a TB for what
// wants one.
type Example struct {
	testing.TB

	// DB is the database.
	DB *DB
	// Pool is connected to it.
	Pool *pgxpool.Pool

	ctx      context.Context
	cancel   context.CancelFunc
	cleanups []func()
}

// NewExample returns a database with Daybook's schema. Close it at the end of the example. What
// fails panics, which fails the example.
func NewExample() *Example {
	e := NewExampleTB()
	e.DB = New(e)
	e.Pool = e.DB.Pool
	return e
}

// NewEmptyExample returns a database without any schema.
func NewEmptyExample() *Example {
	e := NewExampleTB()
	e.DB = NewEmpty(e)
	e.Pool = e.DB.Pool
	return e
}

// NewExampleTB returns a TB without a database.
func NewExampleTB() *Example {
	e := &Example{}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e
}

// Close drops the database.
func (e *Example) Close() {
	e.cancel()
	for _, f := range slices.Backward(e.cleanups) {
		f()
	}
}

// Cleanup implements testing.TB.
func (e *Example) Cleanup(f func()) { e.cleanups = append(e.cleanups, f) }

// Context implements testing.TB.
func (e *Example) Context() context.Context { return e.ctx }

// Helper implements testing.TB.
func (*Example) Helper() {}

// Log implements testing.TB; an example's output is its own.
func (*Example) Log(...any) {}

// Output implements testing.TB.
func (*Example) Output() io.Writer { return io.Discard }

// Logf implements testing.TB.
func (*Example) Logf(string, ...any) {}

// Errorf implements testing.TB.
func (e *Example) Errorf(format string, args ...any) { e.Fatalf(format, args...) }

// Fatalf implements testing.TB.
func (*Example) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// FailNow implements testing.TB.
func (*Example) FailNow() { panic("the example failed") }
