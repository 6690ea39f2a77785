package engine

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/models"
)

// committing is a Kind whose transactions commit.
type committing struct{ Kind }

func (committing) InTx(_ context.Context, f func(tx pgx.Tx) error) error { return f(nil) }

func (committing) Complete(context.Context, pgx.Tx, store.Turn, []store.Completion,
	store.Access,
) (store.Completed, error) {
	return store.Completed{models.OutcomeCompleted: 1}, nil
}

// observing calls itself for each batch.
type observing func(batch []events.Event)

func (f observing) Observe(batch []events.Event) { f(batch) }

// TestSinksAreCalledOutsideOfThePin: a sink that is slow does not keep the jobs of the turn from
// being handed over.
func TestSinksAreCalledOutsideOfThePin(t *testing.T) {
	t.Parallel()
	e := &Engine{kind: committing{}}
	h := newLeases(e, store.Turn{ID: "run/0/1"}, nil, nil)
	told := 0
	e.observer = &observer{kind: "jobs", handlers: ownedTypes{}, sink: observing(func(batch []events.Event) {
		told += len(batch)
		if assert.True(t, h.moving.TryLock(), "who holds the job is pinned") {
			h.moving.Unlock()
		}
	})}
	c := &completion{
		turn: &turn{engine: e, leases: h, calls: &calls{}, tally: &tally{}}, call: &call{},
		job: store.Job{ID: "1"}, attempt: Attempt{
			Outcome: models.OutcomeCompleted, InTx: func(context.Context, pgx.Tx) ([]byte, error) { return nil, nil },
		},
	}
	err := c.try(t.Context(), &tryContext{Context: t.Context()})
	require.NoError(t, err)
	assert.Equal(t, 1, told)
}
