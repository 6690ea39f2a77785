package engine

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

// unanswered is a Kind that reclaims, and whose first answer is lost with the connection.
type unanswered struct {
	Kind
	tries int
}

func (k *unanswered) ReclaimTurns(ctx context.Context, turn store.Turn, from []string,
	crashed bool,
) (store.ReclaimedTurns, error) {
	taken, err := k.Kind.ReclaimTurns(ctx, turn, from, crashed)
	if k.tries++; k.tries == 1 && err == nil {
		return store.ReclaimedTurns{}, io.ErrUnexpectedEOF
	}
	return taken, err
}

// TestReclaimWhoseAnswerIsLost: what a turn has reclaimed without knowing it is worked by it, and
// charged once.
func TestReclaimWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	e, _ := picking(t, db, 5, done)
	e.kind = &unanswered{Kind: e.kind}
	enqueueNamed(t, db, 1)
	turn := store.Turn{ID: "run/0/1", Begins: true}
	var err error
	turn.Fence, err = e.kind.NextFence(t.Context())
	require.NoError(t, err)
	leased, err := e.kind.LeaseFor(t.Context(), turn, 10, pgtest.Unbounded())
	require.NoError(t, err)
	require.Len(t, leased.Jobs, 1)

	report, err := e.Process(t.Context(),
		TurnRequest{Turn: store.Turn{ID: "run/0/1"}, Batch: 50, Length: time.Minute, Crashed: true})
	require.NoError(t, err)
	assert.Equal(t, 1, report.Completed)
	var attempts []string
	require.NoError(t, db.Pool.QueryRow(t.Context(),
		`SELECT array_agg(attempt || ' ' || outcome ORDER BY attempt) FROM daybook.attempts`).Scan(&attempts))
	assert.Equal(t, []string{"1 lost", "2 completed"}, attempts)
}
