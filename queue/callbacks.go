package queue

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/internal/store"
)

// Errors of CompleteCallback; compare with errors.Is.
var (
	// ErrCallbackUnknown: no job has asked for a callback with that token, or the job was purged. Its error code is CALLBACK_UNKNOWN.
	ErrCallbackUnknown = store.ErrCallbackUnknown
	// ErrCallbackExpired: the callback came after its deadline, or its job has ended. Its error code is CALLBACK_EXPIRED.
	ErrCallbackExpired = store.ErrCallbackExpired
	// ErrCallbackUsed: the callback came before, with other data. Its error code is CALLBACK_USED.
	ErrCallbackUsed = store.ErrCallbackUsed
)

// CompleteCallback tells a job what it waits for, in the transaction q: its handler has asked for a callback, and has given the token away
// (jobs.Job.NewCallback). data is written as JSON; it must be an object, within the limits of a payload. The job is due at once, also when its
// handler is still running. The same data may come again (Unchanged).
//
// Errors: ErrCallbackUnknown, ErrCallbackExpired, ErrCallbackUsed, ErrPayloadInvalid, ErrPayloadTooLarge, ErrNoQuerier, ErrNoTransaction.
func CompleteCallback(ctx context.Context, q Querier, token string, data any) (Response, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return Response{}, fmt.Errorf("%w: %w", ErrPayloadInvalid, err)
	}
	if err := payload.Check(raw); err != nil {
		return Response{}, err
	}
	if err := check(q); err != nil {
		return Response{}, err
	}
	r, err := store.CompleteCallback(ctx, q, token, raw)
	return response(r), err
}
