package jobs_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/jobs"
)

type word string

func (word) JobType() string { return "word" }

type misnamed struct{}

func (misnamed) JobType() string { return "has blanks" }

type panicking struct{ name *string }

func (p panicking) JobType() string { return *p.name }

func nothing(context.Context, *jobs.Job[greet]) error { return nil }

func nothingInBulk(context.Context, pgx.Tx, []*jobs.Job[greet]) ([]error, error) { return nil, nil }

// A registration that cannot work says what is wrong, and what to do.
func TestRegistrationsThatCannotWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		register  func(r *jobs.Registry)
		says, how string
	}{
		"nil handler": {
			func(r *jobs.Registry) { jobs.Register[greet](r, jobs.Policy{}, nil) },
			"the handler of greet is nil", "give the function",
		},
		"nil bulk handler": {
			func(r *jobs.Registry) { jobs.RegisterBulk[greet](r, jobs.Policy{}, nil) },
			"the handler of greet is nil", "give the function",
		},
		"twice": {func(r *jobs.Registry) {
			jobs.Register(r, jobs.Policy{}, nothing)
			jobs.Register(r, jobs.Policy{}, nothing)
		}, "greet has a handler already", "once"},
		"after the start": {func(r *jobs.Registry) {
			jobs.Register(r, jobs.Policy{Aliases: []string{"other"}},
				func(context.Context, *jobs.Job[phone]) error { return nil })
			require.NoError(t, r.Started())
			jobs.Register(r, jobs.Policy{}, nothing)
		}, "greet is registered after the worker has started", "before Run"},
		"six hours": {
			func(r *jobs.Registry) { jobs.Register(r, jobs.Policy{Timeout: 6 * time.Hour}, nothing) },
			"Timeout of greet is 6h0m0s and may be 2h0m0s", "split its work",
		},
		"two hours in bulk": {func(r *jobs.Registry) {
			jobs.RegisterBulk(r, jobs.Policy{Timeout: 2 * time.Hour},
				nothingInBulk)
		}, "may be 1h0m0s", "split its work"},
		"negative": {
			func(r *jobs.Registry) { jobs.Register(r, jobs.Policy{Timeout: -1}, nothing) },
			"the policy of greet has a negative value", "leave a field out",
		},
		"too many attempts": {
			func(r *jobs.Registry) { jobs.Register(r, jobs.Policy{MaxAttempts: 1001}, nothing) },
			"MaxAttempts of greet is 1001", "may be 1000",
		},
		"an owner of no text": {
			func(r *jobs.Registry) { jobs.Register(r, jobs.Policy{Owner: "a\x00b"}, nothing) },
			"Owner of greet is", "must be UTF-8",
		},
		"an alias of no type": {
			func(r *jobs.Registry) { jobs.Register(r, jobs.Policy{Aliases: []string{"7 up"}}, nothing) },
			`"7 up" can be the name of no type`, "must be a letter",
		},
		"a type with blanks": {
			func(r *jobs.Registry) {
				jobs.Register(r, jobs.Policy{}, func(context.Context, *jobs.Job[misnamed]) error { return nil })
			}, `"has blanks" can be the name of no type`, "must be a letter",
		},
		"a type that depends on its value": {
			func(r *jobs.Registry) {
				jobs.Register(r, jobs.Policy{}, func(context.Context, *jobs.Job[panicking]) error { return nil })
			}, "panics for its zero value", "returns a constant",
		},
		"no registry": {
			func(*jobs.Registry) { jobs.Register(nil, jobs.Policy{}, nothing) },
			"there is no registry for greet", "jobs.NewRegistry",
		},
		"an unmade registry": {
			func(*jobs.Registry) { jobs.Register(&jobs.Registry{}, jobs.Policy{}, nothing) },
			"there is no registry for greet", "jobs.NewRegistry",
		},
		"a payload of one word": {func(r *jobs.Registry) {
			jobs.Register(r, jobs.Policy{}, func(context.Context, *jobs.Job[word]) error { return nil })
		}, "the payload of word", "struct"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said any
			func() {
				defer func() { said = recover() }()
				c.register(jobs.NewRegistry())
			}()
			require.IsType(t, "", said)
			assert.Contains(t, said, c.says)
			assert.Contains(t, said, c.how)
		})
	}
}

type phone struct{}

func (phone) JobType() string { return "phone" }

// A worker with an empty registry does not start: it would make dead letters of what others can
// work.
func TestAnEmptyRegistryDoesNotStart(t *testing.T) {
	t.Parallel()
	err := jobs.NewRegistry().Started()
	require.ErrorIs(t, err, jobs.ErrNoHandlers)
	assert.ErrorContains(t, err, "call jobs.Register before")
}
