package adopt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
)

var (
	// ErrRefused: the plan has problems that keep everything from being adopted.
	ErrRefused = failure.New(failure.AdoptionRefused, "the legacy queue cannot be adopted")
	// ErrDiffers: the verification found differences.
	ErrDiffers = failure.New(failure.NotAsExpected, "the legacy queue and Daybook differ")
)

// BatchRows is how many legacy rows one transaction of an adoption holds at most.
const BatchRows = 200

// Adopter adopts one legacy queue. Its methods may be called again at any time, also after a call
// that was killed.
type Adopter interface {
	// Look says what is there and what would be done, and changes nothing.
	Look(ctx context.Context) (Plan, error)
	// Prepare does once what must be so before the first row is adopted, such as a trigger on the
	// legacy table. It says what it did.
	Prepare(ctx context.Context) (notes []string, err error)
	// Take adopts the next rows behind the one that after names, in one transaction.
	Take(ctx context.Context, after string) (Step, error)
	// Verify compares both sides in one snapshot.
	Verify(ctx context.Context) (Verification, error)
	// GiveBack gives the next adopted rows behind the one that after names back to the legacy queue,
	// in one transaction: those that Daybook has not worked.
	GiveBack(ctx context.Context, after string) (Step, error)
	// Finish does once what follows the last row that was given back. It says what it did.
	Finish(ctx context.Context) (notes []string, err error)
}

// Step is what one transaction did.
type Step struct {
	// Next names the last row that was read; empty: there are no more.
	Next       string
	Done, Left Groups
	Problems   Problems
}

// Apply adopts every row that can be. progress is called after each transaction with what is done
// so far.
func Apply(ctx context.Context, a Adopter, progress func(Report)) (Report, error) {
	plan, err := a.Look(ctx)
	if err != nil {
		return Report{}, err
	}
	r := Report{Table: plan.Table}
	for _, one := range plan.Problems {
		if one.Rows == 0 {
			r.Problems = append(r.Problems, one)
		}
	}
	if blocking := plan.Problems.Blocking(); len(blocking) > 0 {
		return r, Refusal(blocking)
	}
	if r.Notes, err = a.Prepare(ctx); err != nil {
		return r, err
	}
	return r, r.each(ctx, a.Take, progress)
}

// GiveBack gives back every row that Daybook has not worked.
func GiveBack(ctx context.Context, a Adopter, progress func(Report)) (Report, error) {
	plan, err := a.Look(ctx)
	if err != nil {
		return Report{}, err
	}
	r := Report{Table: plan.Table}
	if err := r.each(ctx, a.GiveBack, progress); err != nil {
		return r, err
	}
	r.Notes, err = a.Finish(ctx)
	return r, err
}

// Check verifies, and fails with ErrDiffers when something differs.
func Check(ctx context.Context, a Adopter) (Verification, error) {
	v, err := a.Verify(ctx)
	if err != nil {
		return v, err
	}
	v.Sound = len(v.Problems) == 0
	for _, c := range v.Compared {
		v.Sound = v.Sound && c.Same
	}
	if !v.Sound {
		return v, ErrDiffers
	}
	return v, nil
}

// Refusal says in one error what blocks.
func Refusal(blocking Problems) error {
	said := make([]string, len(blocking))
	for i, one := range blocking {
		said[i] = one.Code + ": " + one.Detail
	}
	return fmt.Errorf("%w: %s", ErrRefused, strings.Join(said, "; "))
}

// tries is how often a transaction is tried that PostgreSQL ended in favour of another one.
const tries = 5

// each calls step until there are no more rows, and adds up what it did.
func (r *Report) each(ctx context.Context, step func(context.Context, string) (Step, error),
	progress func(Report),
) error {
	for after := ""; ; {
		s, err := again(ctx, func() (Step, error) { return step(ctx, after) })
		if err != nil {
			return err
		}
		r.Done.Merge(s.Done)
		r.Left.Merge(s.Left)
		r.Problems.Merge(s.Problems)
		if progress != nil {
			progress(*r)
		}
		if s.Next == "" {
			return nil
		}
		after = s.Next
	}
}

// again calls a transaction again that met a deadlock, a serialization failure, a lock timeout, or
// the plan of a table that was changed since.
func again[T any](ctx context.Context, f func() (T, error)) (T, error) {
	for n := 1; ; n++ {
		v, err := f()
		if !store.IsConflict(err) && !store.IsLockTimeout(err) && store.FaultOf(err) != store.Stale || n == tries {
			return v, err
		}
		select {
		case <-time.After(time.Duration(n) * 100 * time.Millisecond):
		case <-ctx.Done():
			return v, errors.Join(ctx.Err(), err)
		}
	}
}
