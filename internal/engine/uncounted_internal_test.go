package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// TestWhatLooksLikeAnOutageEachTimeIsCounted has each attempt at a job end as if the database were
// gone, while it answers.
func TestWhatLooksLikeAnOutageEachTimeIsCounted(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	e, _ := picking(t, db, 5, func(context.Context) Attempt {
		return Attempt{
			Outcome: models.OutcomeRetried, Code: models.CodeTimeout, Message: "no answer", Delay: time.Hour,
			Unavailable: true,
		}
	})
	enqueueNamed(t, db, 1)
	for range maxUncounted + 1 {
		_, err := e.Process(t.Context(), TurnRequest{Turn: store.Turn{ID: "run/0/1"}, Batch: 50, Length: time.Minute})
		require.NoError(t, err)
		_, err = db.Pool.Exec(t.Context(), `UPDATE daybook.jobs SET ready_at = clock_timestamp()`)
		require.NoError(t, err)
	}
	var attempts []string
	require.NoError(t, db.Pool.QueryRow(t.Context(), `
SELECT array_agg(concat_ws(' ', attempt, outcome, error_code, times, error) ORDER BY id) FROM daybook.attempts`).Scan(&attempts))
	assert.Equal(t, []string{
		"1 rescheduled DATABASE_ERROR 10 no answer",
		"1 retried DATABASE_ERROR 1 the attempt was put off 10 times because of the database, the last time with: no answer",
	}, attempts)
}

// TestWhoIsToBlameForACompletionThatFailed says which failures of a completing transaction count as
// an attempt.
func TestWhoIsToBlameForACompletionThatFailed(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	e, _ := picking(t, db, 5, done)
	enqueueNamed(t, db, 1)
	var j store.Job
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT id FROM daybook.jobs`).Scan(&j.ID))
	r := e.newRunner(TurnRequest{Turn: store.Turn{ID: "run/0/1"}}, e.waker.Subscribe(), nil)
	for err, want := range map[error]models.Outcome{
		store.ErrRowHeld:   models.OutcomeRescheduled,
		store.ErrLeaseLost: models.OutcomeRescheduled,
		&notCompletedError{cause: store.ErrRowHeld}: models.OutcomeRetried,
		errors.New("its own"):                       models.OutcomeRetried,
	} {
		assert.Equal(t, want, r.notCompleted(t.Context(), j, err).Outcome, "%v", err)
	}
}
