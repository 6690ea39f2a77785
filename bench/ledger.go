package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// createLedger makes the table that jobs write to which do not post by rules: the peers' jobs, and
// background jobs.
const createLedger = `CREATE TABLE ledger (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, job bigint NOT NULL, account text NOT NULL, amount bigint NOT NULL, currency text NOT NULL)`

// postedOnce counts the jobs that have three rows in the ledger, which balance.
func postedOnce(ctx context.Context, pool *pgxpool.Pool) (int, error) {
	n, err := one[int](ctx, pool,
		`SELECT count(*) FROM (SELECT FROM ledger GROUP BY job HAVING count(*) = 3 AND sum(amount) = 0) l`)
	if err != nil {
		return 0, fmt.Errorf("count the jobs that are posted exactly once: %w", err)
	}
	return n, nil
}
