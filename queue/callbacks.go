package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/internal/store"
)

// Errors of CompleteCallback; compare with errors.Is.
var (
	// ErrCallbackNotFound: no job has asked for a callback with that token, or the job was purged. Its
	// error code is CALLBACK_NOT_FOUND.
	ErrCallbackNotFound = store.ErrCallbackNotFound
	// ErrCallbackExpired: the callback came after its deadline, or its job has ended. Its error code
	// is CALLBACK_EXPIRED.
	ErrCallbackExpired = store.ErrCallbackExpired
	// ErrCallbackUsed: the callback came before, with other data. Its error code is CALLBACK_USED.
	ErrCallbackUsed = store.ErrCallbackUsed
)

// ErrInvalidCallback: a job that is to wait for a callback has options that say otherwise when it
// is due, or its callback has no name or no time.
var ErrInvalidCallback = failure.New(failure.Invalid,
	"a job that waits for a callback needs a name of 1 to 64 bytes and a time to come, 10 years at most, and has no "+
		"RunAt, Unique, Sequence, After or Debounce")

// maxCallback is the longest time that a callback may have: 10 years.
const maxCallback = 10 * 365 * 24 * time.Hour

// CallbackOptions say which callback a job waits for.
type CallbackOptions struct {
	// Name is the one by which the handler reads it (jobs.Job.Callback), 64 bytes at most.
	Name string
	// Within is how long it may take to come, 10 years at most.
	Within time.Duration
}

// EnqueuedJobWithCallback is the job that a request led to, with the token of its callback.
type EnqueuedJobWithCallback struct {
	EnqueuedJob
	// Token is for the other side, which sends it back with its answer (CompleteCallback, POST
	// /api/callbacks/{token}). It is returned this once: the database has its hash alone. It is empty
	// when the job existed before (Duplicate).
	Token string
}

// EnqueueJobWithCallback enqueues a job that waits for an answer from outside, in the transaction
// q. Its first attempt begins when the callback comes, or at its deadline, and reads it by
// job.Callback. Give the token away after the commit. RunAt, Unique, Sequence, After and
// Debounce of the options must not be set.
//
// Errors: ErrInvalidCallback, and those of EnqueueJob.
func EnqueueJobWithCallback(ctx context.Context, q Querier, orgID string, p Payload, c CallbackOptions,
	o JobOptions,
) (EnqueuedJobWithCallback, error) {
	if c.Name == "" || len(c.Name) > 64 || c.Within <= 0 || c.Within > maxCallback || !o.RunAt.IsZero() || o.Unique ||
		o.Sequence != "" || len(o.After) > 0 || o.Debounce != (Debounce{}) {
		return EnqueuedJobWithCallback{}, ErrInvalidCallback
	}
	row, err := encryptedRow(ctx, NewJob{OrgID: orgID, Payload: p, Options: o})
	if err == nil {
		err = cmp.Or(check(q), checkText("callback's name", c.Name))
	}
	if err != nil {
		return EnqueuedJobWithCallback{}, err
	}
	r, token, err := store.EnqueueJobWithCallback(ctx, q, row, c.Name, c.Within)
	done := EnqueuedJobWithCallback{EnqueuedJob: enqueuedJob(r), Token: token}
	if log := logOf(ctx); log != nil && err == nil {
		logEnqueued(ctx, log, "jobs", row.OrgID, row.Type, done.ID, "", done.Result)
	}
	return done, err
}

// CompleteCallback tells a job what it waits for, in the transaction q: its handler has asked for a
// callback, and has given the token away (jobs.Job.NewCallback). data is written as JSON; it must
// be an object, within the limits of a payload. A []byte, such as the body of a request, is JSON
// already. The job is due at once, also when its handler is still running. The same data may come
// again (Unchanged).
//
// Errors: ErrCallbackNotFound, ErrCallbackExpired, ErrCallbackUsed, ErrPayloadInvalid,
// ErrPayloadTooLarge, ErrInvalidText, ErrNoQuerier, ErrNoTransaction.
func CompleteCallback(ctx context.Context, q Querier, token string, data any) (Response, error) {
	if text, ok := data.([]byte); ok {
		data = json.RawMessage(text)
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return Response{}, fmt.Errorf("%w: %w", ErrPayloadInvalid, err)
	}
	if err := payload.CheckAnswer(raw); err != nil {
		return Response{}, err
	}
	if err := cmp.Or(check(q), checkText("callback's token", token)); err != nil {
		return Response{}, err
	}
	r, err := store.CompleteCallback(ctx, q, token, raw)
	return response(r), err
}
