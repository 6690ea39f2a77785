package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/disposition"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// channel works a task that needs something outside of the database: the before_handler makes the
// provider's payload, in a transaction of its own; then the provider is called, outside of any
// transaction; then the success_handler or the error_handler is called in the transaction that
// completes the task.
func (r *run) channel(ctx context.Context) engine.Attempt {
	if r.orders.err != nil {
		return r.unsuccessful(problem{recorded: r.orders.err, told: errorText(r.orders.err)})
	}
	if r.job.Reclaims > 0 && r.job.Attempt >= store.TaskAttempts {
		// Perhaps the provider ends its worker each time. The process learns that before the task is
		// given up.
		return r.unsuccessful(failedWith(&failure{
			code: models.CodeWorkerLost,
			text: fmt.Sprintf("the worker ended in each of %d attempts", r.job.Attempt-1),
		}))
	}
	provider := json.RawMessage(r.job.Payload)
	if r.orders.before != "" {
		a, err := r.before(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return rescheduled(err)
		case err != nil && isOutage(err):
			return unavailable(err)
		case err != nil:
			return r.unsuccessful(failedWith(err))
		case a.problem != "":
			return r.unsuccessful(r.refused(a))
		}
		provider = a.payload
	}
	said, unstored, err := r.ask(ctx, provider)
	switch {
	case err != nil && ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return rescheduled(err) // the worker stops, or the task is another worker's
	case err != nil && ctx.Err() == nil && store.IsNotAsked(err):
		return unavailable(err)
	case err != nil:
		return r.unsuccessful(failedWith(err))
	case r.orders.success == "" && unstored == nil:
		return engine.Attempt{Outcome: models.OutcomeCompleted}
	}
	return engine.Attempt{Outcome: models.OutcomeCompleted, InTx: func(ctx context.Context, tx pgx.Tx) ([]byte, error) {
		if unstored != nil {
			if err := r.record(ctx, tx, unstored); err != nil || r.orders.success == "" {
				return nil, err
			}
		}
		return nil, r.succeed(ctx, tx, said)
	}}
}

// problem is why a task did not succeed.
type problem struct {
	// recorded is what is noted with the task; nil: nothing, because it is an outcome of the process.
	recorded error
	// told is what the error_handler is told.
	told string
}

func failedWith(err error) problem {
	var f *failure
	if errors.As(err, &f) && f.stack != "" {
		return problem{recorded: err, told: errorText(&failure{code: f.code, text: f.text})}
	}
	return problem{recorded: err, told: errorText(err)}
}

// refused is the answer of a before_handler that is no success: there is nothing to ask the
// provider for.
func (r *run) refused(a answer) problem {
	switch {
	case a.outcome:
		r.log.Info("a before_handler ended with another status: the provider is not called", "function", r.orders.before,
			"outcome", a.problem)
		return problem{told: r.orders.before + ": " + a.problem}
	case a.validation:
		return problem{recorded: a.failure(r.orders.before), told: a.problem}
	}
	return failedWith(a.failure(r.orders.before))
}

// conflictTries is how often a function is called that ends with a conflict (40001, 40P01). Then it
// has failed.
const conflictTries = 5

// networkSlack is how much longer than its function a call may take. Then the way to the database
// is broken.
const networkSlack = 10 * time.Second

// before calls the before_handler, and commits what it has written.
func (r *run) before(ctx context.Context) (answer, error) {
	for tries := 1; ; tries++ {
		began := time.Now()
		var raw json.RawMessage
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, r.policy.FunctionTimeout+networkSlack)
			defer cancel()
			return store.Begin(ctx, r.pool, func(tx pgx.Tx) (err error) {
				raw, err = store.CallTaskFunction(ctx, tx, r.orders.before, r.job.Payload, r.policy.FunctionTimeout, false)
				return err
			})
		}()
		switch {
		case err == nil:
			return readAnswer(raw), nil
		case conflicts(err) && tries < conflictTries && ctx.Err() == nil:
			continue
		case conflicts(err):
			return answer{}, &failure{
				code: models.CodeHandlerError,
				text: fmt.Sprintf("%s ended with a conflict, also when it was called again (%d calls): %v", r.orders.before,
					tries, err),
			}
		}
		return answer{}, r.raised(r.orders.before, err, time.Since(began))
	}
}

// ask calls the processor, which reads the provider's payload and calls the provider, and returns
// what the provider said as JSON. unstored is why the database cannot hold that: the provider has
// succeeded all the same.
func (r *run) ask(ctx context.Context, provider json.RawMessage) (said json.RawMessage, unstored, err error) {
	within, cancel := context.WithTimeout(ctx, r.policy.Timeout)
	defer cancel()
	result, err := func() (result any, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = panicked(p)
			}
		}()
		return r.process(within, r.job, r.id, provider)
	}()
	switch {
	case err == nil:
		said, unstored = marshal(result)
		return said, unstored, nil
	case errors.Is(within.Err(), context.DeadlineExceeded):
		return nil, nil, &failure{
			code: models.CodeTimeout,
			text: fmt.Sprintf(disposition.NotFinished+" within %s: %s", r.policy.Timeout, plainText(err)),
		}
	}
	return nil, nil, err
}

// succeed calls the success_handler. If that raises an error, what it has written is undone and the
// error_handler is called: otherwise the process would wait for ever for an attempt of which
// nothing is on record.
func (r *run) succeed(ctx context.Context, tx pgx.Tx, said json.RawMessage) error {
	argument, err := body(successBody{OriginalPayload: r.job.Payload, WorkerPayload: said})
	if err != nil {
		return err
	}
	a, err := r.handle(ctx, tx, r.orders.success, argument)
	switch {
	case err == nil:
		return r.note(ctx, tx, r.orders.success, a)
	case isOutage(err):
		return err
	}
	return r.tell(ctx, tx, failedWith(fmt.Errorf("the provider succeeded, and the success_handler failed: %w", err)))
}

// unsuccessful ends a task that did not succeed.
func (r *run) unsuccessful(p problem) engine.Attempt {
	switch {
	case r.orders.onError != "":
		return engine.Attempt{Outcome: models.OutcomeCompleted, InTx: func(ctx context.Context, tx pgx.Tx) ([]byte, error) {
			return nil, r.tell(ctx, tx, p)
		}}
	case p.recorded == nil:
		return engine.Attempt{Outcome: models.OutcomeCompleted}
	}
	return recorded(p.recorded)
}

// tell records a problem and calls the error_handler with it. An error that this one raises is
// recorded as well; what it has written is undone.
func (r *run) tell(ctx context.Context, tx pgx.Tx, p problem) error {
	if p.recorded != nil {
		if err := r.record(ctx, tx, p.recorded); err != nil {
			return err
		}
	}
	if r.orders.onError == "" {
		return nil
	}
	argument, err := body(errorBody{OriginalPayload: r.job.Payload, Error: storable(p.told)})
	if err != nil {
		return err
	}
	a, err := r.handle(ctx, tx, r.orders.onError, argument)
	switch {
	case err == nil:
		return r.note(ctx, tx, r.orders.onError, a)
	case isOutage(err):
		return err
	}
	return r.record(ctx, tx, fmt.Errorf("the error_handler failed: %w", err))
}

// handle calls a handler in the transaction that completes the task. What it writes is undone if it
// raises an error, and the transaction goes on. A conflict, and an outage, are the transaction's:
// it is tried again, but a conflict that always comes back is the handler's own.
func (r *run) handle(ctx context.Context, tx pgx.Tx, function string, argument json.RawMessage) (answer, error) {
	began := time.Now()
	var raw json.RawMessage
	err := pgx.BeginFunc(ctx, tx, func(point pgx.Tx) (err error) {
		raw, err = store.CallTaskFunction(ctx, point, function, argument, r.policy.FunctionTimeout, true)
		return err
	})
	if err == nil {
		return readAnswer(raw), nil
	}
	if conflicts(err) && !tx.Conn().IsClosed() {
		if r.conflicts++; r.conflicts >= conflictTries {
			return answer{}, &failure{
				code: models.CodeHandlerError,
				text: fmt.Sprintf("%s ended with a conflict, also when it was called again: %v", function, err),
			}
		}
	}
	return answer{}, r.raised(function, err, time.Since(began))
}
