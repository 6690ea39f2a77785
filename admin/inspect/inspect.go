package inspect

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
)

// Errors of this package; compare with errors.Is.
var (
	// ErrInvalid: a limit is out of range, a state is none, a cursor is not one of this list, or a
	// text is not UTF-8 or has the character NUL.
	ErrInvalid = store.ErrInvalid
	// ErrJobNotFound: there is no such job, or a cleanup has removed it.
	ErrJobNotFound = store.ErrJobNotFound
	// ErrTaskNotFound: there is no such task; it may be in the archive.
	ErrTaskNotFound = store.ErrTaskNotFound
	// ErrNotMade: a method was called on the zero value of Reader.
	ErrNotMade = failure.New(failure.Misuse, "inspect: the Reader is a zero value: make it by New")
)

const (
	// DefaultLimit is how many rows a page has at most, unless it says otherwise.
	DefaultLimit = 100
	// MaxLimit is how many it may have.
	MaxLimit = 1000
)

// Page says which part of a list to read.
type Page struct {
	// Limit is how many rows are read at most, 1 to MaxLimit; 0: DefaultLimit.
	Limit int
	// Cursor is the Next of the page before, for the same filter; empty: the list is read from its
	// beginning.
	Cursor string
}

// limit is the page's limit, or why there is none.
func (r *Reader) limit(p Page) (int, error) {
	if err := r.made(); err != nil {
		return 0, err
	}
	if p.Limit < 0 || p.Limit > MaxLimit {
		return 0, store.Refuse(ErrInvalid, fmt.Sprintf("the limit is %d", p.Limit),
			fmt.Sprintf("want 1 to %d; 0 is %d", MaxLimit, DefaultLimit))
	}
	return cmp.Or(p.Limit, DefaultLimit), nil
}

// Reader reads jobs. Make it by New: the methods of its zero value return ErrNotMade. It is safe
// for concurrent use.
type Reader struct{ listing *listing.Listing }

// New returns a reader on a pool, which stays the caller's to close. Close the reader first.
func New(pool *pgxpool.Pool) (*Reader, error) {
	if pool == nil {
		return nil, errors.New("inspect: the pool is nil")
	}
	l, err := listing.New(pool)
	if err != nil {
		return nil, err
	}
	return &Reader{l}, nil
}

// made returns ErrNotMade for what New has not made.
func (r *Reader) made() error {
	if r == nil || r.listing == nil {
		return ErrNotMade
	}
	return nil
}

// Close ends the reader; the pool stays open.
func (r *Reader) Close() error {
	if err := r.made(); err != nil {
		return err
	}
	return r.listing.Close()
}
