package tasks_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/tasks"
)

func TestRegistry(t *testing.T) {
	t.Parallel()
	r := tasks.NewRegistry()
	tasks.Register(r, "letter", tasks.Policy{Owner: "mailroom", Timeout: time.Minute}, posts)
	assert.Equal(t, []string{"db_function", "letter"}, r.Names())
	assert.Equal(t, []tasks.Registration{
		{Type: "db_function", Policy: tasks.Policy{
			Timeout: 30 * time.Second, FunctionTimeout: 30 * time.Second,
			Parallel: 8,
		}},
		{Type: "letter", Policy: tasks.Policy{
			Owner: "mailroom", Timeout: time.Minute, FunctionTimeout: 30 * time.Second,
			Parallel: 30,
		}},
	}, r.Registrations())
}

// TestRegisterRefuses: what cannot work panics when the program starts, and says what to do.
func TestRegisterRefuses(t *testing.T) {
	t.Parallel()
	process := func(context.Context, *tasks.Task[letter]) (posted, error) { return posted{}, nil }
	for name, c := range map[string]struct {
		register func(r *tasks.Registry)
		want     string
	}{
		"no registry": {
			func(*tasks.Registry) { tasks.Register(nil, "letter", tasks.Policy{}, process) },
			"make one with tasks.NewRegistry",
		},
		"a built-in type": {
			func(r *tasks.Registry) { tasks.Register(r, "db_function", tasks.Policy{}, process) },
			"has a processor already",
		},
		"a name with space": {
			func(r *tasks.Registry) { tasks.Register(r, "a letter", tasks.Policy{}, process) },
			"can be the name of no type",
		},
		"no processor": {
			func(r *tasks.Registry) { tasks.Register[letter, posted](r, "letter", tasks.Policy{}, nil) },
			"is nil",
		},
		"a negative value": {
			func(r *tasks.Registry) { tasks.Register(r, "letter", tasks.Policy{Parallel: -1}, process) },
			"negative",
		},
		"a shared transaction of a processor": {
			func(r *tasks.Registry) { tasks.Register(r, "letter", tasks.Policy{SharedTransaction: true}, process) },
			"for db_function alone",
		},
		"no text": {
			func(r *tasks.Registry) { tasks.Register(r, "letter", tasks.Policy{Owner: "a\x00b"}, process) },
			"must be UTF-8",
		},
		"too long": {
			func(r *tasks.Registry) { r.SetDBFunctionPolicy(tasks.Policy{FunctionTimeout: 3 * time.Hour}) },
			"may be 2h0m0s",
		},
		"too late": {func(r *tasks.Registry) {
			r.Started()
			tasks.Register(r, "letter", tasks.Policy{}, process)
		}, "before workers.NewTasks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() { assert.Contains(t, recover(), c.want) }()
			c.register(tasks.NewRegistry())
		})
	}
}
