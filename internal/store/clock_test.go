package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
)

// TestClockSetBack: what the past left on record a day ahead of the database's clock counts from
// now on. Claims by SQL last for their five minutes.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.setQueue(store.NamedQueue{Name: "q", Rate: 1, RateSeconds: 1})
	b.exec(`
INSERT INTO daybook.job_workers (id, name, types, first_seen, last_seen) SELECT 'w', 'w', '{}', at, at FROM (SELECT clock_timestamp() + interval '1 day' AS at) x;
INSERT INTO daybook.queue_rates (queue, starts, at) VALUES ('q', 0, clock_timestamp() + interval '1 day');
SELECT daybook.set_job_limit('w', rate => 1), daybook.set_job_limit('rare', rate => 1, rate_seconds => 7200);
INSERT INTO daybook.job_limit_rates (scope, org_id, limit_key, next_at, look_at)
SELECT scope, 'o', 'k', at, at FROM (VALUES ('w', interval '1 day'), ('rare', '1 hour')) x (scope, by), LATERAL (SELECT clock_timestamp() + x.by AS at) t;
INSERT INTO daybook.job_workflows (job_id, namespace, grace_seconds, asked_at, due_at, cancelled_at)
SELECT x.id, 'n', x.grace, at, at, CASE x.id WHEN 'ahead' THEN at END FROM (VALUES ('ahead', 60, interval '1 day'), ('due', 3600, '50 minutes')) x (id, grace, by),
       LATERAL (SELECT clock_timestamp() + x.by AS at) t;
UPDATE daybook.job_workflows SET asked_at = clock_timestamp() WHERE job_id = 'due';
INSERT INTO daybook.bulk_operations (id, action, mode, states, updated_at) VALUES ('bulk', 'retry', 'now', '{failed}', clock_timestamp() + interval '1 day');
SELECT daybook.lease_async_operation(daybook.enqueue_async_operation('claimed', '{}')) FROM generate_series(1, 2);
UPDATE daybook.jobs SET last_attempted_at = last_attempted_at + interval '1 day' WHERE id = (SELECT min(id) FROM daybook.jobs)`)

	const claims = `SELECT count(*) FROM daybook.jobs WHERE last_attempted_at NOT BETWEEN clock_timestamp() + interval '200 seconds' AND clock_timestamp() + interval '290 seconds'`
	_, _, err := store.NewQueue(b.Pool, store.Jobs).NewReclaimer().Check(t.Context())
	require.NoError(t, err)
	for name, ahead := range map[string]string{
		"workers":   `SELECT count(*) FROM daybook.job_workers WHERE greatest(first_seen, last_seen) > clock_timestamp()`,
		"rates":     `SELECT count(*) FROM daybook.queue_rates WHERE at > clock_timestamp()`,
		"keys":      `SELECT count(*) FROM daybook.job_limit_rates WHERE scope = 'w' AND look_at > clock_timestamp()`,
		"workflows": `SELECT count(*) FROM daybook.job_workflows WHERE job_id = 'ahead' AND greatest(asked_at, due_at, cancelled_at) > clock_timestamp()`,
		"claims":    claims,
	} {
		assert.Zero(t, fixture.Count(t, b.Pool, ahead), name)
	}
	assert.Equal(t, 1, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.job_workflows WHERE due_at > clock_timestamp() + interval '49 minutes'`),
		"it may wait for as long as its grace")
	assert.Equal(t, 1, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.job_limit_rates WHERE scope = 'rare' AND look_at > clock_timestamp() + interval '59 minutes'`),
		"its next job may begin in so long")
	b.exec(`UPDATE daybook.jobs SET last_attempted_at = last_attempted_at + interval '1 day' WHERE id = (SELECT min(id) FROM daybook.jobs)`)
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT daybook.reset_stuck_async_operations()`))
	assert.Zero(t, fixture.Count(t, b.Pool, claims), "also without workers")
	open, err := store.OpenBulkOperations(t.Context(), b.Pool, time.Minute)
	require.NoError(t, err)
	assert.Equal(t, []string{"bulk"}, open)
}
