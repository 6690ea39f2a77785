package tasks_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
)

// TestFunctionsPassTheirTraceOn: what a function asks for belongs to the trace of its own task.
func TestFunctionsPassTheirTraceOn(t *testing.T) {
	t.Parallel()
	const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	b := setup(t)
	b.function("supervise", `
    IF _payload ->> 'round' IS NULL THEN
        PERFORM queues.enqueue('db_function', _payload || '{"round": 2}');
    END IF;
    RETURN '{"status": "succeeded"}';`)
	require.NoError(t, pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `SELECT set_config('daybook.traceparent', $1, true)`, traceparent)
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `SELECT queues.enqueue('db_function', $1)`, supervise)
		return err
	}))
	b.enqueue("db_function", supervise)
	e := engine.NewOn(engine.Tasks(store.NewTaskQueue(b.worker, "db_function")), b.handlers, engine.Options{})
	t.Cleanup(e.Close)
	for range 2 {
		_, err := e.Process(t.Context(),
			engine.TurnRequest{Turn: store.Turn{ID: "turn", Worker: "test"}, Batch: 10, Length: time.Minute})
		require.NoError(t, err)
	}
	rows, err := b.Pool.Query(t.Context(), `SELECT coalesce(traceparent, '') FROM queues.task`)
	require.NoError(t, err)
	traces, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{traceparent, "", traceparent, ""}, traces)
}
