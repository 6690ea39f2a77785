package kindtest

import (
	"context"
	"testing"
	"time"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

func TestJobs(t *testing.T) {
	t.Parallel()
	run(t, func(_ *testing.T, db *pgtest.DB) queue { return jobs{tables{db, store.Jobs, "daybook.jobs"}} })
}

// jobs is the queue of jobs with a type and a payload. Those of the suite are unique by their
// payload, so that a job which is being worked can be asked for anew.
type jobs struct{ tables }

func (q jobs) enqueue(ctx context.Context, db store.Querier, org, key string, priority models.Priority,
	in time.Duration,
) (id string, err error) {
	err = db.QueryRow(ctx, `
SELECT job_id FROM daybook.enqueue_job($1, 'test', jsonb_build_object('key', $2::text), ready_at => clock_timestamp() + make_interval(secs => $3),
                                       priority => $4, unique_payload => true)`, org, key, in.Seconds(),
		priority).Scan(&id)
	return id, err
}

func (q jobs) cancel(ctx context.Context, db store.Querier, id string) error {
	var job string
	return db.QueryRow(ctx, `SELECT job_id FROM daybook.cancel_job($1)`, id).Scan(&job)
}

func (q jobs) fill(ctx context.Context, org string, priority, n int) error {
	return q.exec(ctx, `
INSERT INTO %s (id, org_id, type, payload, input_hash, unique_hash, priority, ready_at, first_ready_at, max_attempts)
SELECT key, $1, 'test', p, h, h, $2::int, at, at, 10
  FROM generate_series(1, $3::int) i, LATERAL (SELECT clock_timestamp() - interval '10 s' + i * interval '1 us', $1 || '_' || $2::int || '_' || lpad(i::text, 8, '0')) t (at, key),
       LATERAL (SELECT jsonb_build_object('key', key)) j (p), LATERAL (SELECT daybook.job_input_hash('test', p::text)) s (h)`, org, priority, n)
}

// notUnique has the filled jobs be as most are.
func (q jobs) notUnique(ctx context.Context) error {
	return q.exec(ctx, `UPDATE %s SET unique_hash = NULL WHERE id <> $1`, "")
}

func (q jobs) last(ctx context.Context, id string) error {
	return q.exec(ctx, `UPDATE %s SET run_count = max_attempts - 1 WHERE id = $1`, id)
}
