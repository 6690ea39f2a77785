package listing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/models"
)

// jobsBundle is a database with a listing.
type jobsBundle struct {
	*pgtest.DB
	t       *testing.T
	listing *listing.Listing
}

func setupJobs(t *testing.T) *jobsBundle {
	t.Helper()
	db := pgtest.New(t)
	l, err := listing.New(db.Pool)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return &jobsBundle{DB: db, t: t, listing: l}
}

func (b *jobsBundle) exec(stmt string, args ...any) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), stmt, args...)
	require.NoError(b.t, err)
}

func (b *jobsBundle) enqueue(j store.NewJob) string {
	b.t.Helper()
	r, err := store.EnqueueJob(b.t.Context(), b.Pool, j)
	require.NoError(b.t, err)
	return r.JobID
}

// fail makes the job a dead letter that failed so long ago.
func (b *jobsBundle) fail(id string, code models.ErrorCode, ago time.Duration) {
	b.t.Helper()
	b.exec(`
UPDATE daybook.jobs SET state = 'failed', run_count = 3, last_error = 'e', last_error_code = $2, finished_at = clock_timestamp() - make_interval(secs => $3)
 WHERE id = $1`, id, string(code), ago.Seconds())
}

// all reads every page of a list.
func (b *jobsBundle) all(f listing.JobFilter, limit int) (ids []string, pages int) {
	b.t.Helper()
	cursor := ""
	for {
		page, err := b.listing.Jobs(b.t.Context(), f, limit, cursor)
		require.NoError(b.t, err)
		pages++
		assert.LessOrEqual(b.t, len(page.Jobs), limit)
		for _, j := range page.Jobs {
			ids = append(ids, j.ID)
		}
		if page.Next == "" {
			return ids, pages
		}
		cursor = page.Next
	}
}

func TestQueuedJobsPageByPage(t *testing.T) {
	t.Parallel()
	b := setupJobs(t)
	const n = 7
	for i := range n {
		b.enqueue(store.NewJob{OrgID: "o", Type: "mail", Payload: fmt.Appendf(nil, `{"n": %d}`, i)})
	}
	// Ids of the same millisecond are in no order of their own, but always in the same.
	want, pages := b.all(listing.JobFilter{}, 100)
	assert.Len(t, want, n)
	assert.Equal(t, 1, pages)
	assert.IsDecreasing(t, want)
	for limit, parts := range map[int]int{1: 7, 3: 3, 7: 1, 8: 1} {
		have, pages := b.all(listing.JobFilter{}, limit)
		assert.Equal(t, want, have)
		assert.Equal(t, parts, pages, "pages of %d", limit)
	}

	// Dead letters come by the time of their failure; those of one moment, by their ids.
	for i, id := range want {
		b.fail(id, models.CodeTimeout, time.Duration(10+i%3)*time.Minute)
	}
	b.exec(`UPDATE daybook.jobs SET finished_at = date_trunc('minute', finished_at)`)
	failed := listing.JobFilter{State: models.JobFailed}
	want, _ = b.all(failed, 100)
	assert.Len(t, want, n)
	for limit := range n {
		have, _ := b.all(failed, limit+1)
		assert.Equal(t, want, have)
	}

	first, err := b.listing.Jobs(t.Context(), failed, 1, "")
	require.NoError(t, err)
	for _, c := range []struct {
		f      listing.JobFilter
		cursor string
	}{{listing.JobFilter{}, first.Next}, {failed, "nonsense"}, {failed, "ä"}, {failed, "ZiB4IHk"}} {
		_, err := b.listing.Jobs(t.Context(), c.f, 1, c.cursor)
		assert.ErrorIs(t, err, store.ErrInvalid, c.cursor)
	}
}

func TestQueuedJobFilters(t *testing.T) {
	t.Parallel()
	b := setupJobs(t)
	payload := []byte(`{}`)
	mail := b.enqueue(store.NewJob{OrgID: "o", Type: "mail", Payload: payload, IdempotencyKey: "k"})
	linked := b.enqueue(store.NewJob{
		OrgID: "o", Type: "report", Payload: payload,
		Links: []byte(`[{"kind": "order", "id": "1"}, {"kind": "form", "id": "2"}]`),
	})
	other := b.enqueue(store.NewJob{
		OrgID: "p", Type: "mail", Payload: payload,
		Links: []byte(`[{"kind": "order", "id": "2"}]`),
	})
	dead := b.enqueue(store.NewJob{OrgID: "o", Type: "mail", Payload: payload})
	b.fail(dead, models.CodeNotFound, time.Hour)
	late := b.enqueue(store.NewJob{OrgID: "p", Type: "report", Payload: payload})
	b.fail(late, models.CodeTimeout, 0)
	now := time.Now()

	for name, c := range map[string]struct {
		f    listing.JobFilter
		want []string
	}{
		"all":          {listing.JobFilter{}, []string{mail, linked, other, dead, late}},
		"organization": {listing.JobFilter{OrgID: "p"}, []string{other, late}},
		"state":        {listing.JobFilter{State: models.JobPending}, []string{mail, linked, other}},
		"type":         {listing.JobFilter{Type: "report"}, []string{linked, late}},
		"code":         {listing.JobFilter{Code: models.CodeNotFound}, []string{dead}},
		"key":          {listing.JobFilter{Key: "k"}, []string{mail}},
		"link":         {listing.JobFilter{Link: models.JobLink{Kind: "order", ID: "2"}}, []string{other}},
		"kind of link": {listing.JobFilter{Link: models.JobLink{Kind: "order"}}, []string{linked, other}},
		"id of a link": {listing.JobFilter{Link: models.JobLink{ID: "2"}}, []string{linked, other}},
		"enqueued since": {
			listing.JobFilter{Since: now.Add(-time.Minute)},
			[]string{mail, linked, other, dead, late},
		},
		"enqueued since later": {listing.JobFilter{Since: now.Add(time.Hour)}, nil},
		"enqueued until":       {listing.JobFilter{Until: now.Add(-time.Hour)}, nil},
		"failed since": {
			listing.JobFilter{State: models.JobFailed, Since: now.Add(-time.Minute)},
			[]string{late},
		},
		"failed until": {
			listing.JobFilter{State: models.JobFailed, Until: now.Add(-time.Minute)},
			[]string{dead},
		},
		"failed, everything": {listing.JobFilter{
			OrgID: "o", State: models.JobFailed, Type: "mail",
			Code: models.CodeNotFound, Since: now.Add(-2 * time.Hour), Until: now,
		}, []string{dead}},
		"failed, one too many": {listing.JobFilter{
			OrgID: "o", State: models.JobFailed, Type: "mail",
			Code: models.CodeTimeout,
		}, nil},
		"an unknown organization": {listing.JobFilter{OrgID: "q"}, nil},
	} {
		have, _ := b.all(c.f, 100)
		assert.ElementsMatch(t, c.want, have, name)
	}

	page, err := b.listing.Jobs(t.Context(), listing.JobFilter{Type: "report"}, 0, "")
	require.NoError(t, err)
	assert.Equal(t, map[string][]models.JobLink{linked: {
		{JobID: linked, Kind: "form", ID: "2"},
		{JobID: linked, Kind: "order", ID: "1"},
	}}, page.Links)
	assert.Nil(t, page.Jobs[0].Payload, "lists are without payloads")
}

func TestQueuedJobWithAllThatIsKnown(t *testing.T) {
	t.Parallel()
	b := setupJobs(t)
	id := b.enqueue(store.NewJob{
		OrgID: "o", Type: "mail", Payload: []byte(`{"to": "a"}`),
		Links: []byte(`[{"kind": "order", "id": "1"}]`),
	})
	b.exec(`
INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, attempt, outcome, error_code, error, started_at, worker, turn_id, fence)
VALUES ($1, 'o', 'jobs', 'mail', 1, 'retried', 'TIMEOUT', 'e', now(), 'w', 't', 1), ($1, 'o', 'jobs', 'mail', 2, 'completed', NULL, NULL, now(), 'w', 't', 2)`, id)
	for _, org := range []string{"o", ""} {
		d, err := b.listing.Job(t.Context(), org, id, listing.HistoryPage{})
		require.NoError(t, err)
		assert.JSONEq(t, `{"to": "a"}`, string(d.Payload))
		assert.Equal(t, []models.JobLink{{JobID: id, Kind: "order", ID: "1"}}, d.Links)
		require.Len(t, d.Attempts, 2)
		assert.Equal(t, models.CodeTimeout, *d.Attempts[1].ErrorCode, "the newest first")
		assert.Equal(t, "mail", d.Attempts[0].Type)
		assert.EqualValues(t, 2, d.AttemptRows)
		assert.Zero(t, d.Older)
	}
	_, err := b.listing.Job(t.Context(), "p", id, listing.HistoryPage{})
	require.ErrorIs(t, err, store.ErrJobNotFound, "another organization's")
	_, err = b.listing.Job(t.Context(), "", "unknown", listing.HistoryPage{})
	require.ErrorIs(t, err, store.ErrJobNotFound)
}

func TestQueuedJobStats(t *testing.T) {
	t.Parallel()
	b := setupJobs(t)
	for i := range 3 {
		b.enqueue(store.NewJob{OrgID: fmt.Sprint("o", i%2), Type: "mail", Payload: []byte(`{}`)})
	}
	b.fail(b.enqueue(store.NewJob{OrgID: "o0", Type: "mail", Payload: []byte(`{}`)}), models.CodeTimeout, 0)
	type row struct {
		Type     string
		State    models.JobState
		Count    int64
		Attempts float64
	}
	for org, want := range map[string][]row{
		"":   {{"mail", models.JobPending, 3, 0}, {"mail", models.JobFailed, 1, 3}},
		"o1": {{"mail", models.JobPending, 1, 0}},
		"o2": {},
	} {
		stats, err := b.listing.JobStats(t.Context(), org)
		require.NoError(t, err)
		have := []row{}
		for _, s := range stats {
			have = append(have, row{s.Type, s.State, s.Count, s.AverageAttempts})
			assert.False(t, s.Oldest.IsZero() || s.Newest.Before(s.Oldest))
		}
		assert.Equal(t, want, have, org)
	}
}

// However many jobs have ended, their counts by type come from a part of them, and say so; those of
// one organization are counted. The rows have a page each.
func TestJobStatsReadAPartOfWhatHasEnded(t *testing.T) {
	t.Parallel()
	const completed, most = 8000, 4096
	c := setupCounted(t)
	c.exec(`ALTER TABLE daybook.jobs SET (autovacuum_enabled = false)`)
	c.exec(`ALTER TABLE daybook.jobs ALTER payload SET STORAGE PLAIN`)
	c.exec(`INSERT INTO daybook.jobs (org_id, type, payload, state, run_count, finished_at)
SELECT 'o', 'mail', jsonb_build_object('a', repeat('x', 5500)), 'completed', 2, now() FROM generate_series(1, $1) g`,
		completed)
	c.enqueue(store.NewJob{OrgID: "o", Type: "mail", Payload: []byte(`{}`)})
	c.exec(`ANALYZE daybook.jobs`)
	before, _ := c.reads("daybook.jobs")
	stats, err := c.listing.JobStats(t.Context(), "")
	require.NoError(t, err)
	after, _ := c.reads("daybook.jobs")
	assert.Less(t, after-before, int64(most*5/4), "rows read")
	require.Len(t, stats, 2)
	assert.Equal(t, listing.JobStat{
		Type: "mail", State: models.JobPending, Count: 1, Oldest: stats[0].Oldest,
		Newest: stats[0].Newest,
	}, stats[0])
	assert.True(t, stats[1].Estimated)
	assert.InEpsilon(t, completed, stats[1].Count, 0.2)
	assert.InDelta(t, 2, stats[1].AverageAttempts, 0.001)

	own, err := c.listing.JobStats(t.Context(), "o")
	require.NoError(t, err)
	require.Len(t, own, 2)
	assert.False(t, own[1].Estimated)
	assert.Equal(t, int64(completed), own[1].Count)
}

// A retry or cancellation in bulk does to each job what the single one does, and says how many
// there were.
func TestBulkRequests(t *testing.T) {
	t.Parallel()
	b := setupJobs(t)
	ctx := t.Context()
	const n = 1203
	b.exec(`SELECT count(*) FROM daybook.enqueue_jobs(array_fill('o'::text, ARRAY[$1::int]), array_fill('mail'::text, ARRAY[$1::int]), array_fill('{}'::jsonb, ARRAY[$1::int]))`, n)
	b.exec(`UPDATE daybook.jobs SET state = 'failed', run_count = 3, last_error = 'e', last_error_code = 'TIMEOUT', finished_at = clock_timestamp()`)
	kept := b.enqueue(store.NewJob{OrgID: "o", Type: "report", Payload: []byte(`{}`)})
	b.fail(kept, models.CodeNotFound, 0)
	count := func(where string) int {
		return fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs WHERE `+where)
	}
	mails := listing.BulkJobs{Filter: listing.JobFilter{Type: "mail", Code: models.CodeTimeout}}

	dry := mails
	dry.DryRun = true
	done, err := b.listing.RetryJobs(ctx, b.Pool, dry, "reset", 0)
	require.NoError(t, err)
	assert.Equal(t, bulkCounts{Matched: n}, countsOf(&done))
	assert.Equal(t, n+1, count(`state = 'failed'`), "a dry run changes nothing")

	// A row that another transaction holds is left out.
	tx, err := b.Pool.Begin(ctx)
	require.NoError(t, err)
	_, err = tx.Exec(ctx, `SELECT 1 FROM daybook.jobs WHERE id = (SELECT min(id) FROM daybook.jobs WHERE type = 'mail') FOR UPDATE`)
	require.NoError(t, err)
	done, err = b.listing.RetryJobs(ctx, b.Pool, mails, "reset", 0)
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(ctx))
	assert.Equal(t, bulkCounts{Matched: n, Changed: n - 1, Left: 1}, countsOf(&done))
	assert.Equal(t, n-1, count(`state = 'pending' AND run_count = 0 AND last_error IS NULL`))
	assert.Equal(t, 2, count(`state = 'failed'`))

	done, err = b.listing.RetryJobs(ctx, b.Pool, mails, "later", time.Hour)
	require.NoError(t, err)
	assert.Equal(t, bulkCounts{Matched: 1, Changed: 1}, countsOf(&done))
	assert.Equal(t, 1, count(`state = 'pending' AND run_count = 3 AND ready_at > now() + interval '59 minutes'`))

	done, err = b.listing.CancelJobs(ctx, b.Pool,
		listing.BulkJobs{Filter: listing.JobFilter{OrgID: "o", State: models.JobPending}})
	require.NoError(t, err)
	assert.Equal(t, bulkCounts{Matched: n, Changed: n}, countsOf(&done))
	done, err = b.listing.RetryJobs(ctx, b.Pool,
		listing.BulkJobs{Filter: listing.JobFilter{State: models.JobCancelled}, All: true}, "now", 0)
	require.NoError(t, err)
	assert.Equal(t, bulkCounts{Matched: n, Changed: n}, countsOf(&done))
	done, err = b.listing.CancelJobs(ctx, b.Pool, listing.BulkJobs{All: true})
	require.NoError(t, err)
	assert.Equal(t, bulkCounts{Matched: n + 1, Changed: n + 1}, countsOf(&done), "dead letters, too")
	assert.Equal(t, n+1, count(`state = 'cancelled'`))
}

// Two dead letters with the same payload that are to be unique: one of them comes back.
func TestBulkRetryOfUniqueJobs(t *testing.T) {
	t.Parallel()
	b := setupJobs(t)
	for range 2 {
		b.fail(b.enqueue(store.NewJob{OrgID: "o", Type: "mail", Payload: []byte(`{}`), Unique: true}), models.CodeTimeout,
			0)
	}
	done, err := b.listing.RetryJobs(t.Context(), b.Pool, listing.BulkJobs{All: true}, "now", 0)
	require.NoError(t, err)
	assert.Equal(t, bulkCounts{Matched: 2, Changed: 1, Left: 1}, countsOf(&done))
}

func TestBulkRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	b := setupJobs(t)
	for name, c := range map[string]struct {
		f    listing.JobFilter
		all  bool
		says string
	}{
		"everything, unsaid":        {listing.JobFilter{}, false, "say that all are meant"},
		"every dead letter, unsaid": {listing.JobFilter{State: models.JobFailed}, false, "say that all are meant"},
		"completed jobs of an org": {
			listing.JobFilter{OrgID: "o", State: models.JobCompleted},
			false,
			"not completed",
		},
		"all that were completed, said": {listing.JobFilter{State: models.JobCompleted}, true, "not completed"},
	} {
		_, err := b.listing.RetryJobs(t.Context(), b.Pool, listing.BulkJobs{Filter: c.f, All: c.all}, "now", 0)
		assert.ErrorIs(t, err, store.ErrInvalid, name)
		assert.ErrorContains(t, err, c.says, name)
		_, err = b.listing.CancelJobs(t.Context(), b.Pool, listing.BulkJobs{Filter: c.f, All: c.all})
		assert.ErrorIs(t, err, store.ErrInvalid, name)
	}
	_, err := b.listing.RetryJobs(t.Context(), b.Pool,
		listing.BulkJobs{Filter: listing.JobFilter{OrgID: "o", State: models.JobLeased}}, "now", 0)
	require.ErrorIs(t, err, store.ErrInvalid, "running jobs are not retried")
}

// The rows that a search looks at are found by an index, whatever else the table holds.
func TestSearchesUseIndexes(t *testing.T) {
	t.Parallel()
	b := setupJobs(t)
	b.exec(`SELECT count(*) FROM daybook.enqueue_jobs(array_fill('o'::text, ARRAY[5000]), array_fill('mail'::text, ARRAY[5000]), array_fill('{}'::jsonb, ARRAY[5000]))`)
	b.exec(`UPDATE daybook.jobs SET state = 'completed', finished_at = clock_timestamp()`)
	b.fail(b.enqueue(store.NewJob{
		OrgID: "o", Type: "mail", Payload: []byte(`{}`),
		Links: []byte(`[{"kind": "order", "id": "1"}]`),
	}), models.CodeTimeout, 0)
	b.exec(`ANALYZE daybook.jobs, daybook.job_links`)
	for stmt, index := range map[string]string{
		`SELECT id FROM daybook.jobs WHERE org_id = 'o' AND state = 'failed' ORDER BY finished_at DESC, id LIMIT 10`:                                "jobs_failed",
		`SELECT id FROM daybook.jobs WHERE state = 'failed' AND last_error_code = 'TIMEOUT' AND type = 'mail'`:                                      "jobs_failed",
		`SELECT id FROM daybook.jobs ORDER BY id DESC LIMIT 10`:                                                                                     "jobs_pkey",
		`SELECT id FROM daybook.jobs WHERE org_id = 'o' AND idempotency_key = 'k'`:                                                                  "jobs_key",
		`SELECT id FROM daybook.jobs WHERE idempotency_key = 'k'`:                                                                                   "jobs_key",
		`SELECT id FROM daybook.jobs WHERE id IN (SELECT l.job_id FROM daybook.job_links l WHERE l.kind = 'order' AND l.id = '1') ORDER BY id DESC`: "jobs_pkey",
	} {
		var plan string
		require.NoError(t, b.Pool.QueryRow(t.Context(), `EXPLAIN (FORMAT JSON) `+stmt).Scan(&plan))
		assert.Contains(t, plan, index, stmt)
	}
}

// bulkCounts are how many jobs a bulk operation meant, changed and left alone.
type bulkCounts struct{ Matched, Changed, Left int }

func countsOf(op *models.BulkOperation) bulkCounts {
	return bulkCounts{op.Matched, op.Changed, op.LeftAlone}
}
