package diagnosis

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// Unshared is a type whose jobs share no transactions although their policy says so.
type Unshared struct {
	Type string
	// Does is what a function of a job did, as one worker has it on record.
	Does string
	// Workers is how many live workers say so, Worker the name of one of them.
	Workers int64
	Worker  string
}

// UnsharedTypes returns such types of background jobs, as the workers that live put them on record.
func UnsharedTypes(ctx context.Context, q store.Querier) ([]Unshared, error) {
	const stmt = `
SELECT u.key, min(u.value), count(*), min(w.name)
  FROM daybook.live_job_workers w
 CROSS JOIN LATERAL jsonb_each_text(w.unshared) u
 GROUP BY u.key
 ORDER BY u.key
 LIMIT $1`
	all, err := store.Collect(ctx, q, pgx.RowToStructByPos[Unshared], stmt, Most)
	return all, store.Wrap("look for types that share no transactions", err)
}
