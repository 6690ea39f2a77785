package kindtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// tables is what the kinds share whose rows are updated in place: the columns of a lease, in a
// table of the kind's own.
type tables struct {
	db    *pgtest.DB
	kind  *store.Kind
	table string
}

func (q tables) open() engine.Kind { return engine.Tables(store.NewQueue(q.db.Pool, q.kind)) }

func (q tables) openOn(t *testing.T, conns int32) (engine.Kind, *pgxpool.Pool) {
	pool := sized(t, q.db.Pool, conns)
	return engine.Tables(store.NewQueue(pool, q.kind)), pool
}

// lacks implements queue: these kinds have everything that the port knows.
func (tables) lacks() map[notion]string { return nil }

func (tables) filledID(org string, priority, n int) string {
	return fmt.Sprintf("%s_%d_%08d", org, priority, n)
}

func (q tables) exec(ctx context.Context, stmt string, args ...any) error {
	_, err := q.db.Pool.Exec(ctx, fmt.Sprintf(stmt, q.table), args...)
	return err
}

func (q tables) due(ctx context.Context, id string, in time.Duration) error {
	return q.exec(ctx, `UPDATE %s SET ready_at = clock_timestamp() + make_interval(secs => $2) WHERE id = $1 AND state = 'pending'`, id, in.Seconds())
}

func (q tables) expire(ctx context.Context, turn string) error {
	return q.exec(ctx, `UPDATE %s SET last_attempted_at = clock_timestamp() - interval '1 hour' WHERE turn_id = $1 AND state = 'leased'`, turn)
}

func (q tables) ahead(ctx context.Context) error {
	return q.exec(ctx, `
UPDATE %s SET ready_at = ready_at + interval '1 day', first_ready_at = first_ready_at + interval '1 day', updated_at = updated_at + interval '1 day',
              attempt_started_at = attempt_started_at + interval '1 day', last_attempted_at = last_attempted_at + interval '1 day' WHERE state = 'leased'`)
}

func (q tables) lock(ctx context.Context, tx pgx.Tx, ids ...string) error {
	_, err := tx.Exec(ctx, fmt.Sprintf(`SELECT 1 FROM %s WHERE id = ANY ($1) FOR UPDATE`, q.table), ids)
	return err
}

func (q tables) job(ctx context.Context, id string) (job, error) {
	const stmt = `
SELECT state::text, run_count, extract(epoch FROM ready_at - clock_timestamp())::float8,
       coalesce(extract(epoch FROM clock_timestamp() - last_attempted_at), 0)::float8, coalesce(turn_id, ''), coalesce(fence, 0), working,
       coalesce(last_error_code, ''), coalesce(last_error, ''), cancel_requested
  FROM %s WHERE id = $1`
	rows, err := q.db.Pool.Query(ctx, fmt.Sprintf(stmt, q.table), id)
	if err != nil {
		return job{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[job])
}

func (q tables) count(ctx context.Context, state models.JobState) (n int, err error) {
	err = q.db.Pool.QueryRow(ctx, fmt.Sprintf(`SELECT count(*) FROM %s WHERE state::text = $1`, q.table),
		string(state)).Scan(&n)
	return n, err
}

func (q tables) attempts(ctx context.Context, id string) ([]attempt, error) {
	rows, err := q.db.Pool.Query(ctx, `
SELECT attempt, outcome::text, coalesce(error_code, ''), coalesce(error, ''), times, turn_id, fence, coalesce(first_started_at < started_at, false)
  FROM daybook.attempts WHERE job_id = $1 ORDER BY id`, id)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[attempt])
}
