package kindtest

import (
	"context"
	"testing"
	"time"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

func TestAccounting(t *testing.T) {
	t.Parallel()
	run(t, func(_ *testing.T, db *pgtest.DB) queue {
		return accounting{tables{db, store.Accounting, "daybook.accounting_work_queue"}}
	})
}

// accounting is the queue of documents: each has one job, and a newer version asks for it anew.
type accounting struct{ tables }

func (q accounting) enqueue(ctx context.Context, db store.Querier, org, key string, priority models.Priority,
	in time.Duration,
) (id string, err error) {
	// Each request is of a newer version than the one before.
	err = db.QueryRow(ctx, `
SELECT job_id FROM daybook.enqueue_accounting_job($1, $2, nextval('daybook.fence_seq'), clock_timestamp() + make_interval(secs => $3), $4)`,
		org, key, in.Seconds(), priority).Scan(&id)
	return id, err
}

func (q accounting) cancel(ctx context.Context, db store.Querier, id string) (err error) {
	var job string
	return db.QueryRow(ctx, `
SELECT c.job_id FROM daybook.accounting_work_queue q, daybook.cancel_accounting_job(q.org_id, q.document_id) c WHERE q.id = $1`, id).Scan(&job)
}

func (q accounting) fill(ctx context.Context, org string, priority, n int) error {
	return q.exec(ctx, `
INSERT INTO %s (id, org_id, document_id, version_hint, priority, ready_at, first_ready_at)
SELECT key, $1, key, 1, $2::int, at, at
  FROM generate_series(1, $3::int) i, LATERAL (SELECT clock_timestamp() - interval '10 s' + i * interval '1 us', $1 || '_' || $2::int || '_' || lpad(i::text, 8, '0')) t (at, key)`,
		org, priority, n)
}

func (q accounting) last(ctx context.Context, id string) error {
	return q.exec(ctx, `UPDATE %s SET run_count = $2 WHERE id = $1`, id, models.MaxAttempts-1)
}
