package engine

import "sync/atomic"

// handlersOf is set by package jobs, whose registry keeps what the engine asks of it out of the public API.
var handlersOf atomic.Pointer[func(registry any) Handlers]

// SetHandlersOf says how the handlers of a *jobs.Registry are got. Package jobs calls it once, when it is initialized.
func SetHandlersOf(f func(registry any) Handlers) { handlersOf.Store(&f) }

// HandlersOf are the handlers of a *jobs.Registry.
func HandlersOf(registry any) Handlers { return (*handlersOf.Load())(registry) }
