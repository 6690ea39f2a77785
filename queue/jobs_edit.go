package queue

import (
	"cmp"
	"context"
	"fmt"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// EditOptions say how EditJob edits a job. The zero value gives it the payload, whatever was done
// to it meanwhile, and leaves it as it is otherwise.
type EditOptions struct {
	// By is who edits, for the job's history, 255 bytes at most; empty: the role of the database.
	By string
	// Retry has the job tried again in the same transaction, as RetryJob does it with this mode;
	// empty: a dead letter stays one. RetryReset clears the job's progress as well.
	Retry RetryMode
	// Generation refuses the edit with ErrJobChanged unless the job is still at it: that of the
	// models.Job on which the edit is based. Nil: it is not looked at.
	Generation *int64
	// SkipValidation leaves the check against the type's schema to the worker. The limits are checked
	// all the same.
	SkipValidation bool
	// Encryption and Encrypt are as those of JobOptions. The payload of a job that is encrypted must
	// be encrypted again.
	Encryption *encryption.Cipher
	Encrypt    []string
}

// EditJob gives a dead letter, a cancelled job or one that waits another payload (Edited). Its
// place in its sequence, its attempts and its idempotency key stay; models.Job.Edits keeps the old
// payload, when and by whom it was replaced. With Retry the result is RetryJob's. A job that has
// the payload already is not edited (Unchanged, unless it is tried again).
//
// The key stands for the request that made the job: the same request, with the first payload, still
// leads to this job. A unique job is from now on the only one of its new payload.
//
// Errors: ErrJobNotFound, ErrJobCompleted, ErrJobRunning, ErrJobChanged, ErrJobDuplicate (another
// job that is open has the payload of this unique one, which waits or is to be tried again),
// ErrPayloadTooLarge, ErrPayloadInvalid, ErrNoEncryption, ErrNoSuchMember, those of Encryption,
// ErrInvalidJobType, ErrInvalidRetryMode, ErrInvalidText, ErrQueueNotFound (with Retry: the job's
// named queue was deleted), and an ErrInvalid request if the job has another type, or was edited a
// hundred times. After those that are found in the database a
// transaction of PostgreSQL can only be rolled back.
func EditJob(ctx context.Context, q Querier, jobID string, p Payload, o EditOptions) (Response, error) {
	if store.IsNil(p) {
		return Response{}, errNilPayload
	}
	switch o.Retry {
	case "", RetryNow, RetryLater, RetryReset:
	default:
		return Response{}, fmt.Errorf("%w, not %q", ErrInvalidRetryMode, o.Retry)
	}
	if !models.ValidJobType(p.JobType()) {
		return Response{}, fmt.Errorf("%w, not %q", ErrInvalidJobType, p.JobType())
	}
	if err := cmp.Or(check(q), checkText("job's id", jobID), checkText("name of who edits", o.By)); err != nil {
		return Response{}, err
	}
	raw, err := payloadJSON(p, o.SkipValidation)
	if err == nil {
		err = checkNamed(raw, o.Encrypt)
	}
	if members := membersOf(p, o.Encrypt); err == nil && len(members) > 0 {
		raw, err = encryptedEdit(ctx, q, jobID, p.JobType(), raw, members, o.Encryption)
	}
	if err != nil {
		return Response{}, err
	}
	r, err := store.EditJob(ctx, q, jobID, store.JobEdit{
		Type: p.JobType(), Payload: raw, By: o.By, Retry: string(o.Retry), Generation: o.Generation,
	})
	return response(r), err
}
