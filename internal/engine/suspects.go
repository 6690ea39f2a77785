package engine

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// suspicious reports whether a job may have ended its worker: it was reclaimed since its last completion, or a transaction that had picked it
// was lost.
func suspicious(j store.Job) bool { return j.Reclaims > 0 || j.Dropped }

// leaseSuspects leases the suspicious ones of picked jobs in the transaction that has picked them, and returns them, also with an error. They
// are charged from when they begin.
//
// Their neighbours stay unsuspicious: once this is committed, no transaction that was lost is on record in the neighbours' rows.
func (r *runner) leaseSuspects(ctx context.Context, tx pgx.Tx, picked []store.Job) (suspects []store.Job, err error) {
	for _, j := range picked {
		if suspicious(j) {
			j.Waiting = true
			suspects = append(suspects, j)
		}
	}
	if len(suspects) == 0 {
		return nil, nil
	}
	return suspects, r.leasePicked(ctx, tx, suspects)
}

// leasePicked leases picked jobs in the transaction that has picked them.
func (r *runner) leasePicked(ctx context.Context, tx pgx.Tx, picked []store.Job) error {
	leased, err := r.engine.kind.LeasePicked(ctx, tx, r.holder.turn(), picked, true)
	if err == nil && len(leased) < len(picked) {
		err = store.ErrLeaseLost
	}
	return err
}

// tellSuspects tells the engine's sink that suspects are leased, unless their transaction failed.
func (r *runner) tellSuspects(suspects []store.Job, err error) {
	if err == nil {
		r.engine.observer.leased(r.holder.turn(), suspects)
	}
}
