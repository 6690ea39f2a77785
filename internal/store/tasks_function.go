package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/telemetry/span"
)

// CallTaskFunction calls the function that a task names, by internal.run_function and so with the
// rights of the caller, and returns what it returns: nil for SQL's null. It ends after timeout
// (SQLSTATE 57014). With check, constraints that are deferred to the end of the transaction are
// checked at once, so that an error of theirs is one of this call. What the function enqueues
// belongs to the trace of the context.
//
// The name is a parameter: run_function quotes it, and refuses what the caller was not granted.
func CallTaskFunction(ctx context.Context, tx pgx.Tx, name string, payload json.RawMessage, timeout time.Duration,
	check bool,
) (json.RawMessage, error) {
	const limit = `SELECT set_config('statement_timeout', $1, true)`
	batch := &pgx.Batch{}
	if trace := span.Parent(ctx); trace != "" {
		batch.Queue(`SELECT set_config('daybook.traceparent', $1, true)`, trace)
	}
	batch.Queue(limit, strconv.FormatInt(max(timeout.Milliseconds(), 1), 10))
	before := batch.Len()
	batch.Queue(`SELECT internal.run_function($1, $2)`, name, payload)
	if check {
		batch.Queue(`SET CONSTRAINTS ALL IMMEDIATE`)
	}
	batch.Queue(limit, "0")
	results := tx.SendBatch(ctx, batch)
	var result json.RawMessage
	var err error
	for range before {
		if _, failed := results.Exec(); err == nil {
			err = failed
		}
	}
	if err == nil {
		err = results.QueryRow().Scan(&result)
	}
	// The first error of the batch is the one that counts: every statement after it fails because of
	// it.
	if closed := results.Close(); err == nil {
		err = closed
	}
	return result, err
}

// FunctionCall is one of several calls of a function.
type FunctionCall struct {
	Payload json.RawMessage
	// TraceParent is the trace that belongs to what the function enqueues; empty: none.
	TraceParent string
}

// FunctionCalled is how such a call has ended.
type FunctionCalled struct {
	// Result is what the function has returned, nil for SQL's null; State is the SQLSTATE of what has
	// undone the call.
	Result json.RawMessage
	State  string
}

// Kept reports whether what the function has done is kept.
func (c FunctionCalled) Kept() bool { return c.State == "" }

// Late reports whether the call was cancelled, as calls are that take too long for their neighbours.
func (c FunctionCalled) Late() bool { return c.State == stateCanceled }

// CallTogether calls one function several times in tx, a transaction of InTx, by
// internal.run_functions, and begins no call after so long. It returns how those calls have ended
// that it has begun. With an error, or when not same, because a call has changed a setting, or left
// a temporary table or an open cursor, nothing can be committed. All calls may take limit together,
// which is lifted in the end.
func CallTogether(ctx context.Context, tx pgx.Tx, limit, begin time.Duration, name string,
	calls []FunctionCall,
) (called []FunctionCalled, same bool, err error) {
	const run = `SELECT result, coalesce(undone_by, '') FROM internal.run_functions($1, $2, $3, $4)`
	payloads, traces := make([]json.RawMessage, len(calls)), make([]string, len(calls))
	for i, c := range calls {
		payloads[i], traces[i] = c.Payload, c.TraceParent
	}
	var before, after string
	batch := &pgx.Batch{}
	batch.Queue(share, nil, milliseconds(limit))
	batch.Queue(callSettings).QueryRow(func(row pgx.Row) error { return row.Scan(&before) })
	batch.Queue(run, name, payloads, traces, begin).Query(func(rows pgx.Rows) error {
		called, err = pgx.CollectRows(rows, pgx.RowToStructByPos[FunctionCalled])
		return err
	})
	batch.Queue(callSettings).QueryRow(func(row pgx.Row) error { return row.Scan(&after) })
	batch.Queue(unlimited)
	err = tx.SendBatch(ctx, batch).Close()
	return called, before == after, Wrap("call a function for several tasks", err)
}

// FailTask notes what went wrong with a task, in the caller's transaction.
func FailTask(ctx context.Context, tx pgx.Tx, id int64, message string) error {
	_, err := tx.Exec(ctx, `SELECT queues.fail_task($1, $2)`, id, message)
	return Wrap("note what went wrong with a task", err)
}

// IsForbidden reports whether the database refused a statement to the session's role.
func IsForbidden(err error) bool { return SQLState(err) == "42501" }

// VerifyTasks says whether the functions that a worker of tasks calls are there, and whether the
// role of its sessions may call them. It changes nothing.
func VerifyTasks(ctx context.Context, q DB) error {
	const stmt = `SELECT queues.turns_with_tasks('{}')`
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	_, err := q.Exec(ctx, stmt)
	switch state := SQLState(err); {
	case IsForbidden(err):
		return fmt.Errorf("the worker of tasks is refused what it needs: connect as worker_service_user or a member of it, after "+
			"`daybook migrate up --roles`: %w", err)
	case state == "3F000", state == "42883": // schema, function
		return fmt.Errorf("%w (%w)", ErrNotMigrated, err)
	}
	return Wrap("look for the functions of tasks", err)
}
