package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/engine/carried"
	"github.com/daybook-dev/daybook/internal/store"
)

// DBFunction is the type whose tasks call a function of the database. Every registry has it.
const DBFunction = "db_function"

// Registry holds what a worker does for each type of task. Register everything before a worker is
// made with it. Make one with NewRegistry.
type Registry struct {
	handlers
	types map[string]*registered
	// started: a worker reads types, from several goroutines.
	started atomic.Bool
}

// registered is a type.
type registered struct {
	policy Policy
	// process reads the provider's payload, calls the provider and returns what the provider said;
	// nil: the type is db_function.
	process func(ctx context.Context, job store.Job, id int64, provider json.RawMessage) (any, error)
}

// Registration describes a registered type.
type Registration struct {
	Type string
	// Policy has its defaults filled in.
	Policy Policy
}

// NewRegistry returns a registry of the type db_function.
func NewRegistry() *Registry {
	r := &Registry{types: map[string]*registered{DBFunction: {policy: Policy{}.withDefaults(functionsParallel)}}}
	carried.Set[engine.HandlersFor](&r.handlers,
		func(pool *pgxpool.Pool, log *slog.Logger) engine.Handlers { return &working{r, pool, log} })
	return r
}

// handlers has a registry carry what package workers has tasks worked by.
type handlers = carried.Value[engine.HandlersFor]

// functionsParallel is how many functions of the database a process calls side by side, and
// sharedParallel how many tasks it has under way whose calls share transactions: two of them.
const (
	functionsParallel = 8
	sharedParallel    = 64
)

// Registrations describes what is registered, in the order of the types' names.
func (r *Registry) Registrations() []Registration {
	var all []Registration
	for _, name := range r.Names() {
		all = append(all, Registration{Type: name, Policy: r.types[name].policy})
	}
	return all
}

// Names returns the types that are worked, in their order.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.types)) }

// Started is for package workers: a worker uses the registry from now on, and nothing more can be
// registered.
func (r *Registry) Started() { r.started.Store(true) }

// SetDBFunctionPolicy replaces the policy of the type db_function. It panics where Register does.
func (r *Registry) SetDBFunctionPolicy(p Policy) {
	r.check(DBFunction, p)
	parallel := functionsParallel
	if p.SharedTransaction {
		parallel = sharedParallel
	}
	r.types[DBFunction].policy = p.withDefaults(parallel)
}

// Register registers the processor of a type of task. It panics, and says what to do, when that
// cannot work: the type has a processor already or can be the name of no type, f is nil, the policy
// has a value out of range, or a worker uses the registry already. These are mistakes of the
// program, and are found when it starts.
func Register[P, R any](r *Registry, taskType string, policy Policy, f Func[P, R]) {
	r.check(taskType, policy)
	switch {
	case policy.SharedTransaction:
		panic(fmt.Sprintf("tasks: the policy of %s has SharedTransaction, which is for db_function alone: leave it out",
			taskType))
	case f == nil:
		panic(fmt.Sprintf("tasks: the processor of %s is nil: give the function that works its tasks", taskType))
	case r.types[taskType] != nil:
		panic(fmt.Sprintf("tasks: %s has a processor already: register each type once", taskType))
	}
	r.types[taskType] = &registered{
		policy: policy.withDefaults(processorsParallel),
		process: func(ctx context.Context, job store.Job, id int64, provider json.RawMessage) (any, error) {
			t := &Task[P]{
				ID: id, Type: job.Type, Original: job.Payload, HandedOut: job.Attempt,
				IdempotencyKey: idempotencyKey(id, job.EnqueuedAt), EnqueuedAt: job.EnqueuedAt,
			}
			if err := decode(provider, &t.Payload); err != nil {
				return nil, err
			}
			return f(ctx, t)
		},
	}
}

// idempotencyKey is a task's own, also where another database has a task of the same number.
func idempotencyKey(id int64, enqueued time.Time) string {
	return fmt.Sprintf("task-%d-%x", id, enqueued.UnixMicro())
}

// processorsParallel is how many tasks of a type a process works side by side.
const processorsParallel = 30

// typeName is what the database takes as the name of a type.
var typeName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// check panics when a registration cannot work.
func (r *Registry) check(taskType string, p Policy) {
	switch {
	case r == nil || r.types == nil:
		panic(fmt.Sprintf("tasks: there is no registry for %s: make one with tasks.NewRegistry", taskType))
	case r.started.Load():
		panic(fmt.Sprintf("tasks: %s is registered after a worker was made with the registry, which would not see it: "+
			"register every type before workers.NewTasks", taskType))
	case !typeName.MatchString(taskType):
		panic(fmt.Sprintf("tasks: %q can be the name of no type: it must be a small letter and then small letters, "+
			"digits or _, 63 at most", taskType))
	case p.Timeout < 0 || p.FunctionTimeout < 0 || p.Parallel < 0:
		panic(fmt.Sprintf("tasks: the policy of %s has a negative value: leave a field out for its default", taskType))
	case !store.ValidText(p.Owner):
		panic(fmt.Sprintf("tasks: Owner of %s is %q: a text must be UTF-8 and must not have the character NUL", taskType,
			p.Owner))
	case p.Timeout > MaxTimeout || p.FunctionTimeout > MaxTimeout:
		panic(fmt.Sprintf("tasks: Timeout and FunctionTimeout of %s may be %s: split its work into several tasks", taskType,
			MaxTimeout))
	}
}
