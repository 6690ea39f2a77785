// Package dispatch hands the processors of tasks to the engine. What makes them of a registry takes types of internal packages, so that it is
// no part of what package tasks exports.
package dispatch

import (
	"log/slog"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/engine"
)

// Options say what the handlers of tasks are made of.
type Options struct {
	// Registry is a *tasks.Registry.
	Registry any
	// Pool is connected to the database as the worker of tasks: a before_handler is called by it, in a transaction of its own.
	Pool *pgxpool.Pool
	// Log is where outcomes are logged; default slog.Default().
	Log *slog.Logger
}

var handlers atomic.Pointer[func(o Options) engine.Handlers]

// SetHandlers says how the handlers are made. Package tasks calls it once, when it is initialized.
func SetHandlers(f func(o Options) engine.Handlers) { handlers.Store(&f) }

// Handlers makes the handlers of a worker of tasks.
func Handlers(o Options) engine.Handlers { return (*handlers.Load())(o) }
