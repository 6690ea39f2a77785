package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/disposition"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/span"
	"github.com/daybook-dev/daybook/models"
)

// working is a registry as the engine asks it. It implements the engine's Handlers.
type working struct {
	*Registry
	// pool is the worker's: a before_handler is called by it, in a transaction of its own.
	pool *pgxpool.Pool
	log  *slog.Logger
}

// Handling says how tasks of a type are worked.
func (w *working) Handling(taskType string) (engine.Handling, bool) {
	t := w.types[taskType]
	if t == nil {
		return engine.Handling{}, false
	}
	return engine.Handling{
		Owner: t.policy.Owner, Parallel: t.policy.Parallel, Timeout: t.policy.longest(),
		Charged: true, Shared: t.policy.SharedTransaction,
	}, true
}

// Work works one task. Whatever happens, the task is completed: what went wrong is recorded. Only
// an outage of the database, and the end of the worker, leave it open.
func (w *working) Work(ctx context.Context, job store.Job, _ *engine.Running) (ended engine.Attempt) {
	r := &run{working: w, registered: w.types[job.Type], job: job, log: w.log.With("task", job.ID, "type", job.Type)}
	defer func() {
		if p := recover(); p != nil {
			ended = recorded(panicked(p))
		}
	}()
	id, err := strconv.ParseInt(job.ID, 10, 64)
	if err != nil {
		return recorded(err)
	}
	r.id, r.orders = id, readOrders(job.Payload)
	if r.process == nil {
		return r.function(ctx)
	}
	return r.channel(ctx)
}

// Prepare is not called: no type of tasks is worked in bulk.
func (w *working) Prepare(context.Context, string, []store.Job) (engine.BulkCommit, error) {
	return nil, errors.New("tasks are worked one by one")
}

// Failed says how a task ends whose transaction failed with err.
func (w *working) Failed(job store.Job, err error) engine.Attempt {
	var pg *pgconn.PgError
	// The server refused what would be refused for any task: its disk is full, or it only reads. Or
	// the worker was stopped.
	outage := errors.As(err, &pg) && isOutage(err) && !conflicts(err)
	switch code := engine.CodeOf(err); {
	case outage && code != models.CodeDatabaseError && job.Type != DBFunction:
		// The provider has been asked, and is asked again each time. What looks like an outage may be
		// the handler's own doing: it must end.
		ended := recorded(err)
		ended.Unavailable = true
		return ended
	case outage && code != models.CodeDatabaseError, code == models.CodeWorkerLost:
		return rescheduled(err)
	}
	return recorded(err)
}

// recorded is the end of a task of which err is noted with it.
func recorded(err error) engine.Attempt {
	return engine.Attempt{Outcome: models.OutcomeFailed, Code: engine.CodeOf(err), Message: errorText(err)}
}

// rescheduled puts a task off which is not to blame.
func rescheduled(err error) engine.Attempt {
	return engine.Attempt{
		Outcome: models.OutcomeRescheduled, Code: models.CodeDatabaseError, Message: plainText(err),
		Delay: time.Second,
	}
}

// unavailable puts a task off for as long as the database may be the cause of err.
func unavailable(err error) engine.Attempt {
	ended := rescheduled(err)
	ended.Outcome, ended.Unavailable = models.OutcomeFailed, true
	return ended
}

// run is one task under way.
type run struct {
	*working
	*registered
	orders orders
	job    store.Job
	id     int64
	log    *slog.Logger
	// conflicts is how often the functions of the completing transaction met a conflict.
	conflicts int
}

// function works a task of the type db_function: its function is called in the transaction that
// completes the task.
func (r *run) function(ctx context.Context) engine.Attempt {
	name := r.orders.function
	switch {
	case r.orders.err != nil:
		return recorded(r.orders.err)
	case name == "":
		return recorded(invalid("the task's payload names no db_function: name it as schema.name"))
	}
	call := &engine.Call{
		Function:     name,
		FunctionCall: store.FunctionCall{Payload: r.job.Payload, TraceParent: span.Parent(ctx)},
		Returned: func(ctx context.Context, tx pgx.Tx, result json.RawMessage) error {
			return r.note(ctx, tx, name, readAnswer(result))
		},
	}
	return engine.Attempt{
		Outcome: models.OutcomeCompleted, Call: call,
		InTx: func(ctx context.Context, tx pgx.Tx) ([]byte, error) {
			began := time.Now()
			result, err := store.CallTaskFunction(ctx, tx, name, r.job.Payload, r.policy.FunctionTimeout, false)
			if err != nil {
				if err = r.raised(name, err, time.Since(began)); !isOutage(err) {
					r.log.Warn("a function of the database failed", "function", name, "error", err)
				}
				return nil, err
			}
			return nil, call.Returned(ctx, tx, result)
		},
	}
}

// note records and logs an answer that is no success. What the function has written stays.
func (r *run) note(ctx context.Context, tx pgx.Tx, function string, a answer) error {
	switch {
	case a.problem == "":
		return nil
	case a.outcome:
		r.log.Info("a function of the database ended with another status", "function", function, "outcome", a.problem)
		return nil
	}
	return r.record(ctx, tx, a.failure(function))
}

// record notes with the task, in the transaction that completes it, what went wrong.
func (r *run) record(ctx context.Context, tx pgx.Tx, err error) error {
	text := errorText(err)
	r.log.Warn("a task failed", "error", text)
	return store.FailTask(ctx, tx, r.id, text)
}

// raised is the error of a call of a function that took so long. What is an outage, or a conflict,
// stays one. A statement that was ended before the policy's time was ended by another limit, or by
// a person.
func (r *run) raised(function string, err error, took time.Duration) error {
	var pg *pgconn.PgError
	switch {
	case !errors.As(err, &pg) || isOutage(err):
		return fmt.Errorf("%s: %w", function, err)
	case pg.Code == "57014" && took >= r.policy.FunctionTimeout:
		return &raisedError{
			cause: err,
			failure: failure{
				code: models.CodeTimeout,
				text: fmt.Sprintf("%s "+disposition.NotReturned+" %s", function, r.policy.FunctionTimeout),
			},
		}
	}
	return &raisedError{
		cause: err,
		failure: failure{
			code: models.CodeHandlerError,
			text: fmt.Sprintf("%s: %s (SQLSTATE %s)", function, pg.Message, pg.Code),
		},
	}
}

// raisedError is an error that a function has raised. It is still the database's, so that the
// engine knows a conflict.
type raisedError struct {
	failure
	cause error
}

func (e *raisedError) Unwrap() error { return e.cause }

// conflicts reports whether a transaction lost against another one, and may be tried again.
func conflicts(err error) bool {
	return store.IsConflict(err)
}

// isOutage reports whether err says that the database is unavailable, or asks to try again, and not
// that a function says so: one that raises such an SQLSTATE itself would be called for ever.
func isOutage(err error) bool {
	return store.IsTransient(err) && !store.IsRaised(err)
}

// errorText is an error as it is recorded, and as an error_handler is told: its code, and its text.
func errorText(err error) string {
	return storable(string(engine.CodeOf(err)) + ": " + protectedText(err))
}

// plainText is an error's text without its code.
func plainText(err error) string { return storable(protectedText(err)) }

// protectedText is an error's text, whatever its Error method does.
func protectedText(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("%T, whose Error method panics", err)
		}
	}()
	return err.Error()
}

func panicked(p any) error {
	return &failure{code: models.CodeHandlerError, text: fmt.Sprintf("panic: %v", p), stack: string(debug.Stack())}
}

// marshal is what a processor returned as JSON. Of what is no JSON, or cannot be stored, the error
// says why.
func marshal(v any) (raw json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			raw, err = nil, unstored(fmt.Errorf("panic: %v", p))
		}
	}()
	if raw, err = json.Marshal(v); err == nil {
		err = payload.CheckResult(raw)
	}
	if err != nil {
		return nil, unstored(err)
	}
	return raw, nil
}

func unstored(why error) error {
	return &failure{
		code: models.CodeResultNotStored,
		text: "the provider has succeeded, and what the processor returned is not stored: " + plainText(why),
	}
}
