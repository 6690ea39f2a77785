package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

var (
	// ErrNoSteps: a bulk handler, a function given to Job.InTx, or a handler that has returned has
	// asked for a step.
	ErrNoSteps = failure.New(failure.Invalid,
		"a step belongs to a handler of single jobs, before it returns: what a bulk handler or Job.InTx writes is "+
			"exactly once without steps")
	// ErrStepInvalid: the name of a step is empty or too long, the attempt has asked for it before, or
	// the job has models.MaxSteps steps. The job's code is STEP_INVALID.
	ErrStepInvalid = failure.New(failure.Invalid, "the step cannot be")
	// ErrStepNotStored: the result of a step cannot be written as JSON, or the database cannot hold
	// it. The job's code is STEP_NOT_STORED.
	ErrStepNotStored = failure.New(failure.Invalid, "the result of the step cannot be stored")
	// ErrStepChanged: what an earlier attempt has kept does not fit the type of the result, or was
	// kept by a loop that has not ended. The job's code is STEP_CHANGED.
	ErrStepChanged = failure.New(failure.Invalid, "what was kept of the step does not fit the program any more")
)

// Step runs f and keeps its result, as JSON, with the job. The attempts after this one get the
// result from there, and do not run f again. An error of f is returned, and nothing is kept: the
// handler returns it to have the job tried again.
//
// f runs at least once: if its worker dies after f has ended and before its result is kept, the next
// attempt runs it again. What f does outside of the database should take that (Job.IdempotencyKey).
// For what it writes in the database, StepInTx is exactly once.
//
// The name says which step it is, whatever its order: 64 bytes at most, used once an attempt. A step
// with another name is another step, and is run. A result has models.MaxStepBytes at most, and what
// SetResult says of values holds. The first attempt too gets the result as it is read from JSON. A
// worker that has lost its lease keeps nothing, and gets an error.
//
// Steps are forgotten when the job is tried again as if never tried (mode reset), and when another
// request for a unique job comes.
func Step[T any, P queue.Payload](ctx context.Context, job *Job[P], name string,
	f func(ctx context.Context) (T, error),
) (T, error) {
	return one[T](ctx, job.attempt.steps, name, plainly(func(ctx context.Context, _ T) (T, bool, error) {
		v, err := f(ctx)
		return v, false, err
	}))
}

// StepInTx is Step for what f writes in the database: f's effects and its result commit in one
// transaction, under the fence of the job's lease. So they are there exactly once, whatever dies
// when. f may be called again when its transaction has lost a race, or its connection. The
// transaction's Commit and Rollback are refused; f may begin savepoints.
func StepInTx[T any, P queue.Payload](ctx context.Context, job *Job[P], name string,
	f func(ctx context.Context, tx pgx.Tx) (T, error),
) (T, error) {
	return one[T](ctx, job.attempt.steps, name, inTx(func(ctx context.Context, tx pgx.Tx, _ T) (T, bool, error) {
		v, err := f(ctx, tx)
		return v, false, err
	}))
}

// Loop is a step of many rounds. f is given where the loop stands, at first T's zero value, and
// returns where it stands after one more round, which is kept in the place of the former, and
// whether there is more to do. The attempts after this one go on from there. Loop returns what the
// last round did. A round runs at least once, as a Step does.
func Loop[T any, P queue.Payload](ctx context.Context, job *Job[P], name string,
	f func(ctx context.Context, done T) (now T, more bool, err error),
) (T, error) {
	return rounds[T](ctx, job.attempt.steps, name, plainly(f))
}

// LoopInTx is Loop whose rounds are exactly once: each commits what f writes together with where the
// loop stands, as StepInTx does.
func LoopInTx[T any, P queue.Payload](ctx context.Context, job *Job[P], name string,
	f func(ctx context.Context, tx pgx.Tx, done T) (now T, more bool, err error),
) (T, error) {
	return rounds[T](ctx, job.attempt.steps, name, inTx(f))
}

// round runs one round of a step and keeps it. of is the step as it is to be kept, without its
// result; it returns what was kept.
type round[T any] func(ctx context.Context, s *steps, of store.Step, done T) (store.Step, error)

func plainly[T any](f func(ctx context.Context, done T) (T, bool, error)) round[T] {
	return func(ctx context.Context, s *steps, of store.Step, done T) (store.Step, error) {
		began := time.Now()
		now, more, err := f(ctx, done)
		if err != nil {
			return of, err
		}
		of.Done, of.Took = !more, time.Since(began)
		if of.Result, err = s.resultOf(ctx, of.Name, now); err != nil {
			return of, err
		}
		return of, s.running.KeepStep(ctx, of)
	}
}

func inTx[T any](f func(ctx context.Context, tx pgx.Tx, done T) (T, bool, error)) round[T] {
	return func(ctx context.Context, s *steps, of store.Step, done T) (store.Step, error) {
		began := time.Now()
		var err error
		of.Result, err = s.running.StepInTx(ctx, func(ctx context.Context, tx pgx.Tx) (store.Step, error) {
			now, more, err := f(ctx, tx, done)
			if err != nil {
				return of, err
			}
			of.Done, of.Took = !more, time.Since(began)
			of.Result, err = s.resultOf(ctx, of.Name, now)
			return of, err
		})
		return of, err
	}
}

// one runs a step of one round, unless it is kept.
func one[T any](ctx context.Context, s *steps, name string, run round[T]) (v T, err error) {
	of, err := s.begin(ctx, name)
	if err != nil {
		return v, err
	}
	if of.Times > 0 && !of.Done {
		return v, s.fail(of, changed(of, errors.New("it is a loop that has not ended")))
	}
	return goOn(ctx, s, of, run)
}

// rounds runs the rounds of a loop that are not kept.
func rounds[T any](ctx context.Context, s *steps, name string, run round[T]) (v T, err error) {
	of, err := s.begin(ctx, name)
	if err != nil {
		return v, err
	}
	return goOn(ctx, s, of, run)
}

// goOn runs rounds from where a step stands until it is done.
func goOn[T any](ctx context.Context, s *steps, of store.Step, run round[T]) (v T, err error) {
	for {
		if of.Times > 0 {
			if v, err = stepValue[T](ctx, s, of); err != nil {
				return v, s.fail(of, err)
			}
		}
		if of.Done {
			return v, nil
		}
		if err = ctx.Err(); err != nil {
			return v, s.fail(of, err)
		}
		next := of
		next.Times, next.Attempt = of.Times+1, s.job.Attempt
		kept, err := run(ctx, s, next, v)
		if err != nil {
			return v, s.fail(of, err)
		}
		s.keep(of, kept)
		of = kept
	}
}

// stepValue is the result of a step that is kept.
func stepValue[T any](ctx context.Context, s *steps, of store.Step) (v T, err error) {
	raw, err := s.private.open(ctx, encryption.Step, of.Result)
	if err != nil {
		return v, err
	}
	if err = json.Unmarshal(raw, &v); err != nil {
		var zero T
		return zero, changed(of, fmt.Errorf("it cannot be read as %T: %w", zero, err))
	}
	return v, nil
}

func changed(of store.Step, why error) error {
	return WithCode(models.CodeStepChanged, fmt.Errorf("%w: %q, kept by attempt %d: %w. Give the step another name, "+
		"which runs it, or have the program read both", ErrStepChanged, of.Name, of.Attempt, why))
}

// resultOf is a result as JSON, if the database can hold it.
func (s *steps) resultOf(ctx context.Context, name string, v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err == nil {
		err = payload.CheckResult(raw)
	}
	if err == nil {
		raw, err = s.private.seal(ctx, encryption.Step, raw)
	}
	if err == nil {
		err = s.fits(name, len(raw))
	}
	if err != nil {
		return nil, WithCode(models.CodeStepNotStored, fmt.Errorf("%w: %q: %w", ErrStepNotStored, name, err))
	}
	return raw, nil
}
