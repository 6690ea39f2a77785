package workers

import (
	"cmp"
	"context"
	"runtime/debug"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// introduction is what a worker says of itself when it starts.
type introduction struct {
	name                      string
	activities, workflowTasks int
	// namespace is Temporal's; empty: the client does not say which it has, and nothing else does.
	namespace string
	// program is the program's version; empty: it does not say which it has.
	program string
}

// sayStarted says what the worker works, by what limits, and which database it has.
func (w *Worker) sayStarted(ctx context.Context) {
	config := w.pool.Config()
	says := []any{"kind", w.engine.Kind(), "worker", w.name(), "taskQueue", w.taskQueue}
	if w.introduces.namespace != "" {
		says = append(says, "namespace", w.introduces.namespace)
	}
	says = append(says, "activities", w.introduces.activities, "workflowTasks", w.introduces.workflowTasks,
		"database", store.Address(config.ConnConfig), "connections", config.MaxConns)
	// a role that works tasks alone may not read it
	if schema, err := store.SchemaVersion(ctx, cmp.Or(w.schemaPool, w.pool)); err == nil {
		says = append(says, "schema", schema)
	}
	if version := daybookVersion(w.introduces.program); version != "" {
		says = append(says, "version", version)
	}
	w.log.Info("the worker has started", says...)
}

// sayDrains says what the worker has to do until it ends; why is nil when it was told to stop.
func (w *Worker) sayDrains(why error) {
	w.drainsSince, w.interruptedBefore = time.Now(), w.engine.Interrupted()
	says := append(w.who(), "handlers", w.engine.Handling(), "grace", w.engine.Grace().String())
	if why != nil {
		says = append(says, "error", why)
	}
	w.log.Info("the worker stops: it leases nothing more, and handlers that run may go on for the grace period", says...)
}

// sayDrained says that the run is over. Handlers that outlast their turns go on until Close, which
// says then that the worker has stopped.
func (w *Worker) sayDrained() {
	if w.drainsSince.IsZero() {
		return
	}
	if n := w.engine.Handling(); n > 0 {
		w.log.Info("the worker has ended its turns; it has stopped when it is closed, which waits for its handlers until "+
			"the grace period is over", append(w.who(), "handlers", n)...)
		return
	}
	w.sayStopped()
}

// sayStopped says how the worker has drained, once.
func (w *Worker) sayStopped() {
	if w.drainsSince.IsZero() {
		return
	}
	says := append(w.who(), "after", time.Since(w.drainsSince).Round(time.Millisecond).String(),
		"interrupted", w.engine.Interrupted()-w.interruptedBefore, "handlers", w.engine.Handling())
	w.drainsSince = time.Time{}
	w.log.Info("the worker has stopped", says...)
}

func (w *Worker) who() []any { return []any{"kind", w.engine.Kind(), "worker", w.name()} }

// name is the one that leases and attempts have.
func (w *Worker) name() string { return processName(w.introduces.name) }

// processName is what a worker is called: as its options say, or as its process.
func processName(given string) string { return cmp.Or(given, store.ProcessName()) }

// modulePath is Daybook's.
const modulePath = "github.com/daybook-dev/daybook"

// daybookVersion is Daybook's: in a program that embeds it the module's, and in its own program that
// of the program; empty: neither is known.
func daybookVersion(program string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	if info.Main.Path == modulePath {
		return program
	}
	for _, d := range info.Deps {
		if d.Path == modulePath {
			return d.Version
		}
	}
	return ""
}
