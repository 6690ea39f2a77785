package figures_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/figures"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// attempts are n attempts of 30 ms each that ended after a wait.
func attempts(o figures.Outcome, n int, waited time.Duration) figures.Attempts {
	a := figures.Attempts{Outcome: o, Count: int64(n)}
	for range n {
		a.Waited.Observe(waited)
		a.Took.Observe(30 * time.Millisecond)
	}
	return a
}

// TestGauges reads back what was written, replaced by the next sample.
func TestGauges(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	g, err := figures.ReadGauges(t.Context(), db.Pool)
	require.NoError(t, err)
	assert.False(t, g.Fresh(), "there is no sample yet")

	due := time.Now().Add(-time.Minute).UTC().Truncate(time.Microsecond)
	up := true
	write := figures.Gauges{
		Holder: "w/1",
		Kinds: []figures.Kind{
			{
				Kind: "jobs", Counts: figures.Counts{Due: 3, Failed: 1}, Estimated: []string{figures.Due}, OldestDueAt: &due,
				OldestDueAge: time.Minute, Unhandled: 2, Figures: figures.Figures{
					Types: []figures.Type{{
						Type: "email", Counts: figures.Counts{Due: 3}, OldestDueAt: &due,
						Owner: "shop",
					}},
					DeadLetters: []figures.DeadLetters{{Type: "email", Code: "TIMEOUT", Count: 1}},
					HeldBack:    figures.HeldBack{Paused: 1, Capped: 2},
					Workflow:    &figures.Workflow{ID: "job-queue", Running: true, Workers: 2},
				},
			},
			{Kind: "accounting"},
		},
		Database: figures.Database{
			TemporalUp: &up, Tables: []figures.Table{{Name: "daybook.jobs", Rows: 4, Dead: 1}},
			TookSeconds: 0.1,
		},
	}
	for range 2 {
		require.NoError(t, figures.WriteGauges(t.Context(), db.Pool, write))
	}
	g, err = figures.ReadGauges(t.Context(), db.Pool)
	require.NoError(t, err)
	assert.True(t, g.Fresh())
	assert.Equal(t, "w/1", g.Holder)
	require.Len(t, g.Kinds, 2)
	assert.Equal(t, "accounting", g.Kinds[0].Kind, "in the order of the queues")
	jobs := g.Kind("jobs")
	assert.EqualValues(t, 3, jobs.HeldBackJobs())
	assert.InDelta(t, time.Minute, jobs.OldestDueAge, float64(30*time.Second))
	jobs.OldestDueAge = time.Minute
	assert.True(t, due.Equal(*jobs.OldestDueAt))
	jobs.OldestDueAt, jobs.Types[0].OldestDueAt = &due, &due
	assert.Equal(t, write.Kinds[0], jobs)
	assert.Equal(t, write.Database, g.Database)
	assert.Equal(t, "tasks", g.Kind("tasks").Kind)

	depths, err := figures.Depths(t.Context(), db.Pool,
		figures.Filter{Since: time.Now().Add(-time.Hour), Step: 10 * time.Minute, Kind: "jobs"})
	require.NoError(t, err)
	require.NotEmpty(t, depths)
	assert.Equal(t, figures.Counts{Due: 3, Failed: 1}, depths[0].Counts)
	assert.Equal(t, time.Minute, depths[0].OldestDue)
}

// TestHistory adds reports of two workers, and reads them by steps of each length.
func TestHistory(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	completed := figures.Outcome{Kind: "jobs", Type: "email", Outcome: "completed"}
	failed := figures.Outcome{Kind: "jobs", Type: "email", Outcome: "failed", Code: "TIMEOUT"}
	other := figures.Outcome{Kind: "jobs", Type: "sms", Outcome: "completed"}
	require.NoError(t, figures.AddHistory(t.Context(), db.Pool, nil))
	require.NoError(t, figures.AddHistory(t.Context(), db.Pool,
		[]figures.Attempts{attempts(completed, 9, time.Second), attempts(failed, 1, time.Hour)}))
	require.NoError(t, figures.AddHistory(t.Context(), db.Pool,
		[]figures.Attempts{attempts(completed, 1, 2*time.Hour), attempts(other, 5, time.Second)}))

	for _, step := range []time.Duration{time.Minute, 10 * time.Minute, time.Hour, 24 * time.Hour, 0} {
		bars, err := figures.History(t.Context(), db.Pool,
			figures.Filter{Since: time.Now().Add(-30 * time.Hour), Step: step, Kind: "jobs", ByCode: true})
		require.NoError(t, err, step)
		var n, lost int64
		var waited figures.Distribution
		for _, b := range bars {
			n += b.Count
			assert.Empty(t, b.Type, step)
			if b.Outcome.Outcome == "completed" {
				waited.Add(b.Waited)
			}
			if b.Code == "TIMEOUT" {
				lost += b.Count
			}
		}
		assert.EqualValues(t, 16, n, step)
		assert.EqualValues(t, 1, lost, step)
		assert.EqualValues(t, 15, waited.Count(), step)
		assert.InDelta(t, 14+7200, waited.Seconds, 1e-6, step)
		assert.LessOrEqual(t, waited.Quantile(0.5), time.Second, step)
		assert.Equal(t, time.Hour, waited.Quantile(0.99), step)
	}
	bars, err := figures.History(t.Context(), db.Pool,
		figures.Filter{Since: time.Now().Add(-time.Hour), ByType: true, Outcome: "completed"})
	require.NoError(t, err)
	require.Len(t, bars, 2, "one a type")
	assert.Equal(t, completed, bars[0].Outcome)
	assert.EqualValues(t, 10, bars[0].Count)
	_, err = figures.History(t.Context(), db.Pool, figures.Filter{Since: time.Now(), Step: time.Second})
	assert.ErrorIs(t, err, store.ErrInvalid)
}

// TestPrune keeps an hour's figures when those of its minutes are gone.
func TestPrune(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	o := figures.Outcome{Kind: "accounting", Outcome: "completed"}
	require.NoError(t, figures.AddHistory(t.Context(), db.Pool, []figures.Attempts{attempts(o, 3, 0)}))
	require.NoError(t, figures.WriteGauges(t.Context(), db.Pool,
		figures.Gauges{Kinds: []figures.Kind{{Kind: "accounting"}}}))
	age := func(d string) {
		_, err := db.Pool.Exec(t.Context(), `UPDATE daybook.history SET at = at - $1::interval`, d)
		require.NoError(t, err)
		_, err = db.Pool.Exec(t.Context(), `UPDATE daybook.depths SET at = at - $1::interval`, d)
		require.NoError(t, err)
	}
	gone, err := figures.Prune(t.Context(), db.Pool)
	require.NoError(t, err)
	assert.Zero(t, gone)
	for _, d := range []string{"3 days", "6 days", "23 days"} {
		age(d)
		gone, err = figures.Prune(t.Context(), db.Pool)
		require.NoError(t, err)
		assert.EqualValues(t, 2, gone, d)
		if d == "6 days" {
			bars, err := figures.History(t.Context(), db.Pool,
				figures.Filter{Since: time.Now().Add(-10 * 24 * time.Hour), Step: time.Minute})
			require.NoError(t, err)
			require.Len(t, bars, 1)
			assert.EqualValues(t, 3, bars[0].Count)
		}
	}
}

// TestPruneReadsWhatIsOld, however many rows are kept.
func TestPruneReadsWhatIsOld(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `
INSERT INTO daybook.history (seconds, at, kind, type, outcome, code, count, waited_seconds, took_seconds, waited, took)
SELECT 60, date_bin('1 minute', now(), '2000-01-01 00:00:00+00') - make_interval(mins => n), 'jobs', 'mail', 'completed', '', 1, 1, 1, '{1}', '{1}' FROM generate_series(1, 2000) n`)
	require.NoError(t, err)
	_, err = db.Pool.Exec(t.Context(), `ANALYZE daybook.history`)
	require.NoError(t, err)
	pool, reads := fixture.Reads(t, db.Pool)
	before, _ := reads("daybook.history")
	gone, err := figures.Prune(t.Context(), pool)
	require.NoError(t, err)
	assert.Zero(t, gone)
	after, _ := reads("daybook.history")
	assert.Less(t, after-before, int64(50), "rows read")
}

// TestQuantile reads shares off a distribution.
func TestQuantile(t *testing.T) {
	t.Parallel()
	var d figures.Distribution
	assert.Zero(t, d.Quantile(0.5))
	for range 100 {
		d.Observe(70 * time.Millisecond)
	}
	assert.InDelta(t, 75*time.Millisecond, d.Quantile(0.5), float64(time.Millisecond), "in the middle of its bucket")
	assert.InDelta(t, 7, d.Seconds, 0.001)
	d.Observe(-time.Second)
	assert.EqualValues(t, 101, d.Count())
}

// TestAddHistoryBesideAnother adds to a row that another process is adding to, in a database whose
// transactions are stricter by default.
func TestAddHistoryBesideAnother(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const strict = `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = ''repeatable read''', current_database()); END $$`
	_, err := db.Pool.Exec(t.Context(), strict)
	require.NoError(t, err)
	db.Pool.Reset()
	some := []figures.Attempts{attempts(figures.Outcome{Kind: "jobs", Type: "email", Outcome: "completed"}, 1,
		time.Second)}
	added := make(chan error, 1)
	require.NoError(t, store.Begin(t.Context(), db.Pool, func(tx pgx.Tx) error {
		// Of this minute and the next one, should that begin meanwhile.
		_, err := tx.Exec(t.Context(), `
INSERT INTO daybook.history (seconds, at, kind, type, outcome, code, org_id, count, waited_seconds, took_seconds, waited, took)
SELECT s, date_bin(make_interval(secs => s), statement_timestamp() + make_interval(secs => d), '2000-01-01 00:00:00+00'), 'jobs', 'email', 'completed', '', '', 1, 0, 0,
       array_fill(0, ARRAY[17]), array_fill(0, ARRAY[17])
  FROM unnest(ARRAY[60, 600, 3600]) AS s, generate_series(0, 60, 60) AS d
ON CONFLICT DO NOTHING`)
		if err != nil {
			return err
		}
		go func() { added <- figures.AddHistory(t.Context(), db.Pool, some) }()
		assert.Eventually(t, func() bool {
			var n int
			err := db.Pool.QueryRow(t.Context(),
				`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)
			return err == nil && n > 0
		}, time.Minute, 10*time.Millisecond)
		return nil
	}))
	require.NoError(t, <-added)
}
