package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// UnavailableError is the failure of a query of Daybook's own, within a handler, that found the
// database unavailable: it is not the handler's.
type UnavailableError struct{ cause error }

func (e *UnavailableError) Error() string { return e.cause.Error() }
func (e *UnavailableError) Unwrap() error { return e.cause }

// Unavailable marks err, which a query of Daybook's own within a handler failed with, if it says
// that the database is unavailable. When ctx has ended it leaves err alone: the handler's time was
// over.
func Unavailable(ctx context.Context, err error) error {
	if !IsTransient(err) || ctx.Err() != nil {
		return err
	}
	return &UnavailableError{err}
}

// OutageLimit is how long an outage of the database may last before what runs is given up, and how
// long a query of Daybook's own within a handler may take that has no limit of its own.
const OutageLimit = 5 * time.Minute

// heldUp is how long a query of Daybook's own takes that something holds up: a lock on its table, a
// commit that waits for a standby.
const heldUp = time.Second

// Await is Unavailable for one short query of Daybook's own, which f makes. It may take limit. When
// it was held up, the time for which the handler has waited is not the handler's, even if ctx ended
// meanwhile.
func Await(ctx context.Context, limit time.Duration, f func(ctx context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	err := f(within)
	if errors.Is(err, context.DeadlineExceeded) && time.Since(began) > heldUp {
		return &UnavailableError{err}
	}
	return Unavailable(ctx, err)
}

// IsUnavailable reports whether err was marked by Unavailable.
func IsUnavailable(err error) bool {
	_, ok := errors.AsType[*UnavailableError](err)
	return ok
}

// notedError is why an attempt failed, and what its end is to write.
type notedError struct {
	error
	write func(ctx context.Context, tx pgx.Tx) error
}

func (e *notedError) Unwrap() error { return e.error }

// Noting has the transaction that ends the attempt which fails with err write what its handler of
// Daybook's own knows, and the database has not taken.
func Noting(err error, write func(ctx context.Context, tx pgx.Tx) error) error {
	return &notedError{err, write}
}

// NoteOf is what Noting was given with err; nil: nothing.
func NoteOf(err error) func(ctx context.Context, tx pgx.Tx) error {
	if noted, ok := errors.AsType[*notedError](err); ok {
		return noted.write
	}
	return nil
}
