package engine

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/models"
)

// elsewhere is a Kind whose first answers about the job come from a server that does not know the
// lease, such as a primary that was replaced and still answers on a connection of the pool. The
// others say that the turn holds the job, and that it is not to be cancelled.
type elsewhere struct {
	Kind
	// lost is how often the lease is lost.
	lost      int
	completed []store.Completion
}

func (*elsewhere) InTx(_ context.Context, f func(tx pgx.Tx) error) error { return f(nil) }

func (*elsewhere) LockChunk(_ context.Context, _ pgx.Tx, _ store.Turn, ids []string) ([]store.Job, error) {
	return []store.Job{{ID: ids[0]}}, nil
}

func (k *elsewhere) Complete(_ context.Context, _ pgx.Tx, _ store.Turn, completions []store.Completion,
	a store.Access,
) (store.Completed, error) {
	if a.Commit && k.lost > 0 {
		k.lost--
		return nil, store.ErrLeaseLost
	}
	k.completed = append(k.completed, completions...)
	return store.Completed{completions[0].Outcome: 1}, nil
}

// TestACompletionThatMeetsAnotherServer: a completion that met ErrLeaseLost, of a job that the turn
// holds after all, is tried again. The job does not end as cancelled.
func TestACompletionThatMeetsAnotherServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lost int
		ends []models.Outcome
	}{"once": {1, []models.Outcome{models.OutcomeCompleted}}, "each time": {100, nil}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind := &elsewhere{lost: c.lost}
			e := &Engine{kind: kind}
			e.observer = &observer{kind: "jobs", handlers: ownedTypes{}, sink: observing(func([]events.Event) {})}
			h := newLeases(e, store.Turn{ID: "run/0/1"}, nil, nil)
			done := &completion{
				turn: &turn{engine: e, leases: h, calls: &calls{all: map[*call]bool{}}, tally: &tally{}},
				call: &call{}, timeout: time.Minute, job: store.Job{ID: "1"}, attempt: Attempt{
					Outcome: models.OutcomeCompleted, InTx: func(context.Context, pgx.Tx) ([]byte, error) { return nil, nil },
				},
			}
			err := done.run(t.Context())
			var ends []models.Outcome
			for _, one := range kind.completed {
				ends = append(ends, one.Outcome)
			}
			assert.Equal(t, c.ends, ends)
			if c.ends == nil {
				require.ErrorContains(t, err, "another server that still answers")
			} else {
				require.NoError(t, err)
			}
		})
	}
}
