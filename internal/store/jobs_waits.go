package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// CheckedWaits is what a call of CheckWaits decided.
type CheckedWaits struct {
	// Decided counts what was decided; Again what is to be tried again, because another transaction has locked a row.
	Decided, Again int
}

// CheckWaits decides a bounded part of what is on record about jobs that wait for their turn, for other jobs or for a callback. A kind whose jobs wait
// for nothing has nothing on record.
func (s *Store) CheckWaits(ctx context.Context) (CheckedWaits, error) {
	const stmt = `SELECT decided, again FROM daybook.check_waits()`
	var c CheckedWaits
	if s.kind != Jobs {
		return c, nil
	}
	err := s.InTx(ctx, func(tx pgx.Tx) error { return tx.QueryRow(ctx, stmt).Scan(&c.Decided, &c.Again) })
	return c, Wrap("look for jobs that need not wait any more", err)
}
