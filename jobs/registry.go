package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/engine/carried"
	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// Policy says how the jobs of a type are worked. The zero value of each field means its default.
type Policy struct {
	// Owner is the team or contact responsible for the type; the log, lists and the API show it.
	Owner string
	// MaxAttempts is how many attempts a job has before it is a dead letter, unless it was enqueued
	// with a number of its own; default 3.
	MaxAttempts int
	// Timeout is how long an attempt may take, and how long what it gives to InTx; default 30 s, at
	// most MaxTimeout, or MaxBulkTimeout with a bulk handler.
	Timeout time.Duration
	// Base is the delay before the second attempt, Factor what each further delay is multiplied by,
	// Cap the longest delay; defaults 30 s, 2 and 6 h. Each delay is changed by up to ±10 %, always
	// the same for the same job and attempt.
	Base   time.Duration
	Factor float64
	Cap    time.Duration
	// Parallel is how many jobs of the type one worker process works side by side; default 30. For a
	// bulk handler it is how many jobs share a call; default 500.
	Parallel int
	// ParallelEverywhere is how many jobs of the type are leased at a time, over all workers;
	// default: any number. Use it to protect something that all workers use, such as a server that
	// allows ten calls at a time; each lease of the type then counts the leased jobs in the database.
	// All workers must have the same number. Each alias is counted separately.
	ParallelEverywhere int
	// Limit bounds the jobs of the type by key, such as those for one customer's account, over all
	// workers; default: none. A worker sets it when it starts.
	Limit Limit
	// SharedTransaction has what handlers give to InTx run in a transaction that up to 32 jobs of the
	// type share, one after another, each behind a savepoint; default: each in one of its own. It is
	// for functions that take a few milliseconds, and makes up to twice as many jobs of them a
	// second. Each function still commits with its job's completion, or not at all, and fails for
	// itself alone. It must not change settings, listen or use Conn(), and sees what those before it
	// have done: docs/jobs.md#shared-transactions. It has no effect on bulk handlers.
	SharedTransaction bool
	// Version is that of the handler; default 0. A job that was enqueued with a MinVersion is worked
	// by handlers of that version or a higher one alone: raise it when a payload says something that
	// the handler before cannot do (docs/deploying.md).
	Version int
	// Aliases are other names under which jobs of the type may be enqueued.
	Aliases []string
	// Secrets are the names of members of payload, result and progress, at any level, whose values
	// the console does not show, besides those whose names say that they are a secret
	// (docs/console.md).
	Secrets []string
}

// Limit bounds the jobs of one type, organization and key, over all workers: queue.Limit.
type Limit = queue.Limit

// The longest Timeout that a policy may have. A longer attempt would rarely end by itself, because
// each deployment of a new version stops it, and a bulk handler would hold its rows and a
// connection for as long.
const (
	MaxTimeout     = 2 * time.Hour
	MaxBulkTimeout = time.Hour
)

// ErrNoHandlers: a worker was started with a registry that is empty.
var ErrNoHandlers = failure.New(failure.Misuse, "jobs: the registry has no handler, so that the worker would lease "+
	"nothing: call jobs.Register before the worker runs")

// Registry holds the handlers of a worker. Register everything before the worker starts. Make one
// with NewRegistry.
type Registry struct {
	handlers
	// types holds each handler under its type and its aliases.
	types map[string]*registered
	// middleware and bulkMiddleware are called around handlers, the outermost first. onError is told
	// of failed attempts; nil: nothing is.
	middleware     []Middleware
	bulkMiddleware []BulkMiddleware
	onError        ErrorHandler
	// encryption is for the types whose payloads name members to encrypt; nil: there is none.
	encryption *encryption.Cipher
	// started: a worker reads all of this, from several goroutines.
	started atomic.Bool
}

// registered is the handler of one type.
type registered struct {
	jobType string
	policy  Policy
	schema  *payload.Schema
	// encrypted are the members that payloads of the type name to be encrypted; empty: none.
	encrypted []string
	registry  *Registry
	// One of them is set.
	work func(ctx context.Context, job store.Job, a *attempt) error
	many func(ctx context.Context, tx pgx.Tx, jobs []store.Job, said []*attempt) ([]error, error)
}

// Registration describes a registered type.
type Registration struct {
	Type string
	// Policy has its defaults filled in.
	Policy Policy
	// Schema is the JSON Schema of the payload.
	Schema json.RawMessage
	// Bulk says that a BulkFunc works the type.
	Bulk bool
	// Encrypted are the members of the payload that are encrypted.
	Encrypted []string
}

// Registrations describes what is registered, in the order of the types' names.
func (r *Registry) Registrations() []Registration {
	var all []Registration
	for _, name := range slices.Sorted(maps.Keys(r.types)) {
		if t := r.types[name]; t.jobType == name {
			all = append(all, Registration{
				Type: name, Policy: t.policy, Schema: t.schema.JSON(),
				Bulk: t.many != nil, Encrypted: t.encrypted,
			})
		}
	}
	return all
}

// Names returns every name under which jobs are handled, aliases included.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.types)) }

// Versions are the versions of the handlers of Names, in their order.
func (r *Registry) Versions() []int32 {
	names := r.Names()
	versions := make([]int32, len(names))
	for i, name := range names {
		versions[i] = int32(min(r.types[name].policy.Version, math.MaxInt32))
	}
	return versions
}

// TypeName returns the type that is registered under a name: the name itself, or, for an alias, the
// type that has it.
func (r *Registry) TypeName(name string) string {
	if t := r.types[name]; t != nil {
		return t.jobType
	}
	return name
}

// Started is for package workers: a worker uses the registry from now on, and nothing more can be
// registered. It returns ErrNoHandlers when the registry is empty, and queue.ErrNoEncryption when a
// payload names members to encrypt and Encrypt was not called.
func (r *Registry) Started() error {
	if len(r.types) == 0 {
		return ErrNoHandlers
	}
	for _, t := range r.types {
		if len(t.encrypted) > 0 && r.encryption == nil {
			return fmt.Errorf("jobs: %s: %w, and call Registry.Encrypt", t.jobType, queue.ErrNoEncryption)
		}
	}
	r.started.Store(true)
	return nil
}

// handlers has a registry carry what package workers has jobs worked by.
type handlers = carried.Value[engine.HandlersFor]

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	r := &Registry{types: map[string]*registered{}}
	carried.Set[engine.HandlersFor](&r.handlers,
		func(pool *pgxpool.Pool, log *slog.Logger) engine.Handlers { return working{r, pool, log} })
	return r
}

// Func works one job. Its result says how the attempt ended: nil completes the job; Snooze, Cancel,
// RetryAfter, Final and WithCode have the effect that they describe; any other error, or a panic,
// is a HANDLER_ERROR and is tried again by the policy. ctx ends at the type's timeout, when another
// worker has reclaimed the job, and twenty seconds after the worker was told to stop. It is called
// in a goroutine of its own.
type Func[P queue.Payload] func(ctx context.Context, job *Job[P]) error

// BulkFunc works many jobs of one type in the transaction that completes them. The first result
// says how each job ended; nil completes all. The second result undoes everything; the jobs are
// then halved, each part in a transaction of its own, until the one to blame stands alone.
type BulkFunc[P queue.Payload] func(ctx context.Context, tx pgx.Tx, jobs []*Job[P]) ([]error, error)

// CheckPayload checks a payload against the schema of its type, for callers that enqueue without
// the struct. A type that is not registered is not checked, nor what is encrypted: the worker checks
// that.
func (r *Registry) CheckPayload(jobType string, raw json.RawMessage) error {
	if t := r.types[jobType]; t != nil && encryption.KeyOf(raw) == "" {
		return t.schema.Validate(raw)
	}
	return nil
}

// Register registers the handler of P's type. It panics, and says what to do, when the registration
// cannot work: the type, or one of the aliases, has a handler already or is not a valid job type, P
// is not a struct, f is nil, the policy has a value out of range, or a worker uses the registry
// already. These are mistakes of the program, and are found when it starts.
func Register[P queue.Payload](r *Registry, policy Policy, f Func[P]) {
	r.check(jobTypeOf[P](), policy, f == nil, MaxTimeout)
	t := newType[P](jobTypeOf[P](), policy)
	t.work = func(ctx context.Context, job store.Job, a *attempt) error {
		j, err := decode[P](t, job, a)
		if err != nil {
			return err
		}
		return f(ctx, j)
	}
	r.add(t)
}

// RegisterBulk registers a handler that works many jobs of P's type in one transaction. Otherwise
// it works as Register does. Policy.Parallel is then how many jobs share a transaction; default
// 500.
func RegisterBulk[P queue.Payload](r *Registry, policy Policy, f BulkFunc[P]) {
	r.check(jobTypeOf[P](), policy, f == nil, MaxBulkTimeout)
	policy.Parallel = cmp.Or(policy.Parallel, 500)
	t := newType[P](jobTypeOf[P](), policy)
	t.many = func(ctx context.Context, tx pgx.Tx, jobs []store.Job, said []*attempt) ([]error, error) {
		errs := make([]error, len(jobs))
		var decoded []*Job[P]
		var places []int
		for i, job := range jobs {
			j, err := decode[P](t, job, said[i])
			if err != nil {
				errs[i] = err
				continue
			}
			decoded, places = append(decoded, j), append(places, i)
		}
		if len(decoded) == 0 {
			return errs, nil
		}
		own, err := f(ctx, tx, decoded)
		if err != nil {
			return nil, err
		}
		if own != nil && len(own) != len(decoded) {
			return nil, fmt.Errorf("the handler of %s returned %d results for %d jobs: return one for each, or nil",
				t.jobType, len(own), len(decoded))
		}
		for i, err := range own {
			errs[places[i]] = err
		}
		return errs, nil
	}
	r.add(t)
}

// RegisterRaw registers the handler of a type that the caller names, and whose payload may be any
// JSON object. It is for handlers that have no struct for it: those that a configuration names, and
// those that pass the payload on. Otherwise it works as Register does.
func RegisterRaw(r *Registry, jobType string, policy Policy, f Func[queue.RawPayload]) {
	r.check(jobType, policy, f == nil, MaxTimeout)
	t := newType[queue.RawPayload](jobType, policy)
	t.work = func(ctx context.Context, job store.Job, a *attempt) error {
		j := newJob[queue.RawPayload](t, job, a)
		j.Payload = queue.RawPayload{Type: job.Type, Data: json.RawMessage(job.Payload)}
		return f(ctx, j)
	}
	r.add(t)
}

// jobTypeOf is the type of P's jobs.
func jobTypeOf[P queue.Payload]() string {
	var zero P
	defer func() {
		if recover() != nil {
			panic(fmt.Sprintf("jobs: JobType of %T panics for its zero value: register a struct type, whose JobType "+
				"returns a constant", zero))
		}
	}()
	return zero.JobType()
}

// check panics when a registration cannot work.
func (r *Registry) check(jobType string, p Policy, noHandler bool, longest time.Duration) {
	switch {
	case r == nil || r.types == nil:
		panic(fmt.Sprintf("jobs: there is no registry for %s: make one with jobs.NewRegistry", jobType))
	case r.started.Load():
		panic(fmt.Sprintf("jobs: %s is registered after the worker has started, which would not see it: register every "+
			"type before Run", jobType))
	case noHandler:
		panic(fmt.Sprintf("jobs: the handler of %s is nil: give the function that works its jobs", jobType))
	case p.MaxAttempts < 0 || p.Timeout < 0 || p.Base < 0 || p.Factor < 0 || p.Cap < 0 || p.Parallel < 0 ||
		p.ParallelEverywhere < 0 || p.Version < 0:
		panic(fmt.Sprintf("jobs: the policy of %s has a negative value: leave a field out for its default", jobType))
	case p.Limit != Limit{} && !models.ValidLimit(p.Limit.By, p.Limit.Parallel, p.Limit.Rate, p.Limit.Per):
		panic(fmt.Sprintf("jobs: Limit of %s cannot be kept: give Parallel or Rate, which are at least 1, Per from a "+
			"millisecond to a year if there is a Rate, and By as org_id or payload.member", jobType))
	case p.MaxAttempts > models.MaxJobAttempts:
		panic(fmt.Sprintf("jobs: MaxAttempts of %s is %d and may be %d", jobType, p.MaxAttempts, models.MaxJobAttempts))
	case !store.ValidText(p.Owner):
		panic(fmt.Sprintf("jobs: Owner of %s is %q: %v", jobType, p.Owner, queue.ErrInvalidText))
	case p.Timeout > longest:
		panic(fmt.Sprintf("jobs: Timeout of %s is %s and may be %s: split its work into several jobs, or store how far "+
			"it has come and return jobs.Snooze",
			jobType, p.Timeout, longest))
	}
	for _, name := range append([]string{jobType}, p.Aliases...) {
		if !models.ValidJobType(name) {
			panic(fmt.Sprintf("jobs: %q can be the name of no type: %v", name, queue.ErrInvalidJobType))
		}
	}
}

func newType[P queue.Payload](jobType string, policy Policy) *registered {
	schema, err := payload.SchemaFor(reflect.TypeFor[P]())
	if err != nil {
		panic(fmt.Sprintf("jobs: the payload of %s: %v", jobType, err))
	}
	var zero P
	t := &registered{jobType: jobType, policy: policy.withDefaults(), schema: schema}
	if p, ok := any(zero).(queue.EncryptedPayload); ok {
		t.encrypted = p.EncryptedMembers()
		t.checkEncrypted()
		t.checkLimitedBy()
	}
	return t
}

func (r *Registry) add(t *registered) {
	t.registry = r
	for _, name := range append([]string{t.jobType}, t.policy.Aliases...) {
		if r.types[name] != nil {
			panic(fmt.Sprintf("jobs: %s has a handler already: register each type, and each alias, once", name))
		}
		r.types[name] = t
	}
}

func (p Policy) withDefaults() Policy {
	p.MaxAttempts = cmp.Or(p.MaxAttempts, 3)
	p.Timeout = cmp.Or(p.Timeout, 30*time.Second)
	p.Base = cmp.Or(p.Base, 30*time.Second)
	p.Factor = cmp.Or(p.Factor, 2)
	p.Cap = cmp.Or(p.Cap, 6*time.Hour)
	p.Parallel = cmp.Or(p.Parallel, 30)
	if p.Limit.Rate > 0 {
		p.Limit.Per = cmp.Or(p.Limit.Per, time.Second)
	}
	return p
}
