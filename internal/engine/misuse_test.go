package engine_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
)

// refusal is a processor's own error. A function whose result is a *refusal returns a nil one as an
// error that is not nil.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

// TestErrorWhoseTextPanics: a processor's error that panics when it is asked for its text fails the
// attempt. It does not end the worker.
func TestErrorWhoseTextPanics(t *testing.T) {
	t.Parallel()
	var none *refusal
	for name, p := range map[string]failing{
		"Prepare": {prepare: func(context.Context, []engine.Job) error { return none }},
		"Commit":  {commit: func(context.Context, pgx.Tx, []engine.Job) ([]error, error) { return nil, none }},
		"Result":  {commit: func(context.Context, pgx.Tx, []engine.Job) ([]error, error) { return []error{none}, nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupWith(t, p, engine.Options{})
			fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
			assert.Equal(t, 1, b.work(1).Retried)
		})
	}
}
