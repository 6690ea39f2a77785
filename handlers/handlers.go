package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/tasks"
)

// environmentPrefix begins the name of each variable.
const environmentPrefix = "DAYBOOK_"

// DefaultOwner is the owner of the built-in types when no other is named.
const DefaultOwner = "daybook"

// Config is what the built-in types have in common. Their other settings come from the environment.
type Config struct {
	// Pool is required; it stays the caller's to close.
	Pool *pgxpool.Pool
	// Owner is the team or contact responsible for the built-in types; default DAYBOOK_JOBS_OWNER, or
	// else DefaultOwner.
	Owner string
	// Environment holds the variables by their whole names; nil: those of the process.
	Environment map[string]string
	// Temporal starts the workflows that the file of DAYBOOK_FUNCTIONS_FILE names. It stays the
	// caller's to close. Nil: their types are left out (Builtin.Missing).
	Temporal client.Client
}

// Builtin is what Register registered.
type Builtin struct {
	// Types are the names of the types that are worked, in their order.
	Types []string
	// Missing says for each other type what it needs, such as the variables to set.
	Missing map[string]string

	closers []func() error
}

// Close closes what the types have open: connections and buckets. Call it after the worker has
// ended.
func (b *Builtin) Close() error {
	var errs []error
	for _, f := range slices.Backward(b.closers) {
		errs = append(errs, f())
	}
	b.closers = nil
	return errors.Join(errs...)
}

// builtin is a type that the environment may configure.
type builtin struct {
	name string
	// register adds the type to a registry, or returns notConfiguredError.
	register func(r *jobs.Registry, s *environment) error
	// process does the same for tasks; nil: there are no tasks of the type.
	process func(r *tasks.Registry, s *environment) error
}

// builtins are all of them. Each file of a type appends its own.
var builtins []builtin

// notConfiguredError says which variables a type needs.
type notConfiguredError string

func (e notConfiguredError) Error() string { return string(e) }

// environment is what a type's register may use.
type environment struct {
	Config
	secrets Secrets
	builtin *Builtin
	// functionTimeout is that of the functions which tasks name.
	functionTimeout time.Duration
	// temporal is one of the handlers that a Temporal workflow or activity stands behind; nil: there
	// is none.
	temporal *TemporalHandler
}

// beside calls f in a goroutine of its own, whose context ends when the built-in types are closed.
// An error before that is logged as what.
func (s *environment) beside(what string, f func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := f(ctx); err != nil {
			slog.Default().Error(what, "error", err)
		}
	}()
	s.onClose(func() error {
		cancel()
		<-ended
		return nil
	})
}

// onClose calls f when the built-in types are closed.
func (s *environment) onClose(f func() error) { s.builtin.closers = append(s.builtin.closers, f) }

// policy is p with the owner of the built-in types.
func (s *environment) policy(p jobs.Policy) jobs.Policy {
	p.Owner = s.Owner
	return p
}

// parse reads a type's configuration from the environment.
func parse[T any](s *environment) (T, error) {
	return env.ParseAsWithOptions[T](env.Options{Environment: s.Environment, Prefix: environmentPrefix})
}

// Register adds to r each built-in type that is configured, and the types of the file that
// DAYBOOK_FUNCTIONS_FILE names. A wrong configuration is an error that names the variable. A type
// without configuration is left out and listed in Builtin.Missing: its jobs wait, and become dead
// letters (HANDLER_MISSING), until a worker has a handler for it.
func Register(r *jobs.Registry, c Config) (*Builtin, error) {
	if c.Pool == nil {
		return nil, errors.New("built-in job types: Config.Pool is required")
	}
	s := c.environment()
	b, err := s.configured(builtins, "job type", func(t builtin) error { return t.register(r, s) })
	if err != nil {
		return nil, err
	}
	if err := s.functions(r); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	slices.Sort(b.Types)
	return b, nil
}

// environment fills in what c leaves to the environment.
func (c Config) environment() *environment {
	if c.Environment == nil {
		c.Environment = env.ToMap(os.Environ())
	}
	c.Owner = cmp.Or(c.Owner, c.Environment[environmentPrefix+"JOBS_OWNER"], DefaultOwner)
	return &environment{
		Config: c, builtin: &Builtin{Missing: map[string]string{}},
		secrets: environmentSecrets(c.Environment),
	}
}

// configured registers each type that is configured.
func (s *environment) configured(types []builtin, what string, register func(t builtin) error) (*Builtin, error) {
	b := s.builtin
	for _, t := range slices.SortedFunc(slices.Values(types),
		func(x, y builtin) int { return strings.Compare(x.name, y.name) }) {
		err := register(t)
		if missing, ok := errors.AsType[notConfiguredError](err); ok {
			b.Missing[t.name] = string(missing)
			continue
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s %s: %w", what, t.name, err), b.Close())
		}
		b.Types = append(b.Types, t.name)
	}
	return b, nil
}
