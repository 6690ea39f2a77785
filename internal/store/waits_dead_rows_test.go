package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
)

// TestNoWaitWalksDeadRows: beside an old snapshot stays what jobs waited for since, and ANALYZE
// finds hardly any that waits. Then every way to a row seems to cost the same, and one that leads
// through all that died is as good to the planner as a look by key.
func TestNoWaitWalksDeadRows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const enqueue = `SELECT daybook.enqueue_job('acme', 'mail', '{}') FROM generate_series(1, 10000)`
	b.exec(enqueue)
	b.exec(`INSERT INTO daybook.job_waits (job_id, awaits) SELECT id, 'first' || id FROM daybook.jobs ORDER BY random()`)
	b.exec(`INSERT INTO daybook.job_wait_checks (awaits) SELECT id FROM daybook.jobs ORDER BY random()`)
	b.exec(`INSERT INTO daybook.job_callbacks (token_hash, job_id, name, deadline) SELECT sha256(id::bytea), id, 'paid', now() FROM daybook.jobs ORDER BY random()`)
	b.exec(`INSERT INTO daybook.job_sequences (org_id, key, holder) SELECT 'acme', id, id FROM daybook.jobs ORDER BY random()`)
	b.holdSnapshot()
	b.exec(`DELETE FROM daybook.job_waits`)
	b.exec(`DELETE FROM daybook.job_wait_checks`)
	b.exec(`DELETE FROM daybook.job_callbacks`)
	b.exec(`DELETE FROM daybook.job_sequences`)
	b.exec(`ANALYZE daybook.job_waits, daybook.job_wait_checks, daybook.job_callbacks, daybook.job_sequences`)
	var first, after, turn string
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`SELECT job_id FROM daybook.enqueue_job('acme', 'mail', '{}')`).Scan(&first))
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`SELECT job_id FROM daybook.enqueue_job('acme', 'mail', '{}', after => ARRAY[$1])`, first).Scan(&after))
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`SELECT job_id FROM daybook.enqueue_job('acme', 'mail', '{}', sequence => 's')`).Scan(&turn))
	b.exec(`SELECT daybook.enqueue_job('acme', 'mail', '{}', sequence => 's')`)
	b.exec(`SELECT daybook.check_waits()`)

	conn, err := b.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	for call, args := range map[string][]any{
		`daybook.enqueue_job('acme', 'mail', '{}', after => ARRAY[$1])`: {first},
		`daybook.enqueue_job('acme', 'mail', '{}', sequence => 's')`:    nil,
		`daybook.check_waits()`:                           nil,
		`daybook.check_awaited($1, 100)`:                  {first},
		`daybook.tell_waiting_jobs($1, 'completed', 100)`: {first},
		`daybook.tell_waiting_jobs($1, 'failed', 100)`:    {first},
		`daybook.check_sequence('acme', 's')`:             nil,
		`daybook.check_waiting_job($1)`:                   {after},
		`daybook.release_jobs(ARRAY[$1])`:                 {after},
		`daybook.must_wait($1, 'acme', 's')`:              {turn},
		`daybook.note_waiting(ARRAY[$1])`:                 {after},
		`daybook.tell_of_ended_job((SELECT j FROM daybook.jobs j WHERE j.id = $1), 'completed')`:  {first},
		`daybook.tell_of_ended_job((SELECT j FROM daybook.jobs j WHERE j.id = $1), 'completed') `: {turn},
		`daybook.find_callback($1)`: {after},
	} {
		assert.Less(t, b.mostPages(conn, "", call, args...), 1000, call)
	}
}

// TestDecidedWaitsAreNotWalked: what was decided is not read again, beside an old snapshot either,
// and what commits late with a low number is found all the same.
func TestDecidedWaitsAreNotWalked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pool, reads := fixture.Reads(t, b.Pool)
	s := store.NewQueue(pool, store.Jobs)
	b.holdSnapshot()
	note := func(n int) {
		b.exec(`INSERT INTO daybook.job_wait_checks (job_id) SELECT 'job-' || i FROM generate_series(1, $1::int) i`, n)
	}
	// check decides what it finds, and returns how much that was, and how many entries were read.
	check := func() (decided int, read int64) {
		before, _ := reads("daybook.job_wait_checks")
		c, err := s.CheckWaits(t.Context())
		require.NoError(t, err)
		after, _ := reads("daybook.job_wait_checks")
		return c.Decided, after - before
	}
	drain := func(want int) {
		for decided := 0; decided < want; {
			n, _ := check()
			require.Positive(t, n)
			decided += n
		}
		n, _ := check()
		require.Zero(t, n)
	}
	note(3000)
	drain(3000)
	_, read := check()
	assert.GreaterOrEqual(t, read, int64(3000), "what was decided a moment ago is read again")
	// The next work comes before the last is old: a busy worker never finds nothing.
	for range 3 {
		s.AgeWaits(70 * time.Second)
		note(2)
		check() // everything
	}
	_, read = check()
	assert.Less(t, read, int64(10))

	note(1)
	n, read := check()
	assert.Equal(t, 1, n)
	assert.Less(t, read, int64(20))

	b.exec(`INSERT INTO daybook.job_wait_checks (id, job_id) OVERRIDING SYSTEM VALUE SELECT i, 'job-' || i FROM generate_series(1, 700) i`)
	n, _ = check()
	assert.Zero(t, n, "they are below what is looked at")
	s.AgeWaits(70 * time.Second)
	drain(700)
}

// TestLookedAtRatesAreNotWalked: the rows of keys that were at rest are not read again, beside an old
// snapshot either, and a look at everything finds all that were due long ago.
func TestLookedAtRatesAreNotWalked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pool, reads := fixture.Reads(t, b.Pool)
	s := store.NewQueue(pool, store.Jobs)
	b.exec(`SELECT daybook.set_job_limit('noop', rate => 1); SELECT daybook.check_waits()`)
	b.holdSnapshot()
	b.exec(`INSERT INTO daybook.job_limit_rates SELECT 'noop', 'acme', 'key ' || i, now() - interval '1 hour', now() - interval '1 hour' FROM generate_series(1, 2700) i`)
	for range 5 {
		_, err := s.CheckWaits(t.Context())
		require.NoError(t, err)
	}
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.job_limit_rates`))
	before, _ := reads("daybook.job_limit_rates")
	_, err := s.CheckWaits(t.Context())
	require.NoError(t, err)
	after, _ := reads("daybook.job_limit_rates")
	assert.Less(t, after-before, int64(10))
}

// TestNoLookWalksWhatIsDueTomorrow: what looks for due jobs ends where the jobs begin that are not due,
// however many these are.
func TestNoLookWalksWhatIsDueTomorrow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.set_job_limit('limited', parallel => 1), daybook.start_job_worker('w', '{noop, limited}')`)
	const tomorrow = `
SELECT daybook.enqueue_job('acme', $1, '{}', ready_at => now() + interval '1 day', limit_key => $2) FROM generate_series(1, 4000)`
	b.exec(tomorrow, "noop", nil)
	b.exec(tomorrow, "limited", "k")
	b.exec(`INSERT INTO daybook.job_limit_rates SELECT 'limited', 'acme', i, now() + interval '1 day', now() + interval '1 day' FROM generate_series(1, 4000) i`)
	b.exec(`SELECT daybook.enqueue_job('acme', 'noop', '{}'), daybook.enqueue_job('acme', 'limited', '{}', limit_key => 'other')`)
	conn, err := b.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	for _, call := range []string{`daybook.check_waits()`, `daybook.claim_jobs('w', 3)`} {
		assert.Less(t, b.mostPages(conn, "", call), 2000, call) // the first call reads the catalog, too
	}
}
