package queue

import (
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
)

// Errors of requests for background jobs; compare with errors.Is.
var (
	// ErrKeyReused: the idempotency key was used before, in the same organization, with another type
	// or payload.
	ErrKeyReused = store.ErrKeyReused
	// ErrJobRunning: a job that is to be edited is being worked. ErrJobChanged: it was changed after
	// it was read. ErrJobDuplicate: it is to be unique, and another open job has its payload.
	ErrJobRunning   = store.ErrJobRunning
	ErrJobChanged   = store.ErrJobChanged
	ErrJobDuplicate = store.ErrJobDuplicate
	// ErrPayloadTooLarge: the payload has more than models.MaxPayloadBytes. Its error code is
	// PAYLOAD_TOO_LARGE.
	ErrPayloadTooLarge = store.ErrPayloadTooLarge
	// ErrPayloadInvalid: the payload is not a JSON object, is nested too deep, has too many keys, or
	// does not match the schema of its type; the error names the field. Its error code is
	// PAYLOAD_INVALID.
	ErrPayloadInvalid = store.ErrPayloadInvalid

	// ErrInvalidJobType: a type is empty, longer than models.MaxJobTypeBytes, or has other characters
	// than letters, digits and "_.:-" after a letter.
	ErrInvalidJobType = failure.New(failure.Invalid,
		"a job's type must be a letter and then letters, digits, '_', '.', ':' or '-', 64 bytes at most")
	// ErrKeyTooLong: an idempotency key is longer than models.MaxIdempotencyKeyBytes.
	ErrKeyTooLong = failure.New(failure.Invalid, "the idempotency key must not be longer than 255 bytes")
	// ErrInvalidMaxAttempts: MaxAttempts is negative or more than models.MaxJobAttempts.
	ErrInvalidMaxAttempts = failure.New(failure.Invalid,
		"MaxAttempts must be from 1 to 1000, or 0 for the policy of the type's handler")
	// ErrInvalidMinVersion: MinVersion is negative, or more than an integer of 32 bits holds.
	ErrInvalidMinVersion = failure.New(failure.Invalid,
		"MinVersion must be at least 1, or 0 for any version of the type's handler")
	// ErrInvalidLink: a link lacks its kind or id, one of them is too long, or there are more than
	// models.MaxJobLinks.
	ErrInvalidLink = failure.New(failure.Invalid,
		"a job may have 32 links, each with a kind of 64 and an id of 255 bytes at most, neither of them empty")
	// ErrInvalidQueue: the name of a queue has other characters than letters, digits and "_.:-" after
	// a letter, or is longer than models.MaxQueueNameBytes.
	ErrInvalidQueue = failure.New(failure.Invalid,
		"a queue's name must be a letter and then letters, digits, '_', '.', ':' or '-', 64 bytes at most")
	// ErrQueueNotFound: there is no named queue of that name: make it with SetQueue. ErrQueueNotEmpty:
	// a queue that is to be deleted has open jobs.
	ErrQueueNotFound = store.ErrQueueNotFound
	ErrQueueNotEmpty = store.ErrQueueNotEmpty
	// ErrSequenceTooLong: the key of a sequence is longer than models.MaxSequenceBytes.
	ErrSequenceTooLong = failure.New(failure.Invalid, "the key of a sequence must not be longer than 255 bytes")
	// ErrLimitKeyTooLong: the key of a limit is longer than models.MaxLimitKeyBytes.
	ErrLimitKeyTooLong = failure.New(failure.Invalid, "the key of a limit must not be longer than 255 bytes")
	// ErrInvalidAfter: After has more ids than models.MaxAwaited, or an empty one.
	ErrInvalidAfter = failure.New(failure.Invalid, "a job may wait for 100 others, and each must have an id: let a job "+
		"of its own wait for some of them, and this one for that")
	// ErrInvalidRetryMode: a mode is none of RetryNow, RetryLater and RetryReset.
	ErrInvalidRetryMode = failure.New(failure.Invalid,
		"the mode must be queue.RetryNow, queue.RetryLater or queue.RetryReset")
)
