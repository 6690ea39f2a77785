package listing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/models"
)

// counted is a listing on one connection of its own, by whose statistics the rows are counted that
// it reads.
type counted struct {
	*jobsBundle
	reads func(table string) (all, sequential int64)
}

func setupCounted(t *testing.T) *counted {
	t.Helper()
	b := setupJobs(t)
	pool, reads := fixture.Reads(t, b.Pool)
	l, err := listing.New(pool)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	b.listing = l
	return &counted{b, reads}
}

// A page reads a bounded number of rows of a large table, and never all of it, however few rows
// match the filter.
func TestPagesReadABoundedNumberOfRows(t *testing.T) {
	t.Parallel()
	const jobs, scan, limit = 20_000, 500, 20
	c := setupCounted(t)
	c.exec(fmt.Sprintf(`
SELECT count(*) FROM daybook.enqueue_jobs(array_fill('o'::text, ARRAY[%[1]d]), array_fill('mail'::text, ARRAY[%[1]d]), array_fill('{}'::jsonb, ARRAY[%[1]d]))`, jobs))
	c.exec(`
UPDATE daybook.jobs j
   SET state = CASE WHEN x.n <= 300 THEN 'pending' WHEN x.n % 10 = 0 THEN 'failed' ELSE 'completed' END::daybook.job_state,
       finished_at = CASE WHEN x.n > 300 THEN clock_timestamp() END, org_id = CASE x.n % 3 WHEN 0 THEN 'p' ELSE 'o' END, idempotency_key = 'k-' || x.n, input_hash = sha256(j.id::bytea),
       last_error = 'e', last_error_code = CASE x.n % 20 WHEN 0 THEN 'TIMEOUT' ELSE 'NOT_FOUND' END
  FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM daybook.jobs) x
 WHERE x.id = j.id`)
	c.exec(`INSERT INTO daybook.job_links (job_id, kind, id) SELECT id, CASE WHEN idempotency_key = 'k-7' THEN 'rare' ELSE 'order' END, idempotency_key FROM daybook.jobs`)
	c.exec(`VACUUM ANALYZE daybook.jobs, daybook.job_links`)
	c.listing.SetScan(scan)

	read := func(name string, most int64, f func() error) {
		t.Helper()
		before, whole := c.reads("daybook.jobs")
		require.NoError(t, f(), name)
		after, scanned := c.reads("daybook.jobs")
		assert.LessOrEqual(t, after-before, most, "%s: rows read", name)
		assert.Equal(t, whole, scanned, "%s reads the whole table", name)
	}
	for name, filter := range map[string]listing.JobFilter{
		"all": {}, "a type that no job has": {Type: "rare"}, "an organization without jobs": {OrgID: "q"},
		"pending": {State: models.JobPending}, "leased": {State: models.JobLeased},
		"cancelled": {State: models.JobCancelled}, "pending of a type": {State: models.JobPending, Type: "rare"},
		"failed":                             {State: models.JobFailed},
		"failed of an organization":          {State: models.JobFailed, OrgID: "p"},
		"failed with a rare code":            {State: models.JobFailed, Code: "RARE"},
		"failed of an organization and type": {State: models.JobFailed, OrgID: "p", Type: "rare"}, "a code": {Code: "RARE"},
		"a key": {Key: "k-77"}, "a key of an organization": {Key: "k-77", OrgID: "o"},
		"a kind of link": {Link: models.JobLink{Kind: "rare"}}, "a linked id": {Link: models.JobLink{ID: "k-7"}},
		"since":        {Type: "rare", Since: time.Now().Add(-time.Hour)},
		"failed since": {State: models.JobFailed, Type: "rare", Since: time.Now().Add(-time.Hour)},
	} {
		read(name, 5*scan, func() error {
			_, err := c.listing.FindJobs(t.Context(), filter, limit, "")
			return err
		})
	}
	read("search", 100, func() error {
		found, err := c.listing.Find(t.Context(), "", "k-77", true)
		assert.Len(t, found.Jobs, 1)
		return err
	})
	read("dead letters", 2*jobs/10, func() error {
		groups, err := c.listing.DeadLetters(t.Context(), "", true)
		assert.Len(t, groups.Groups, 2)
		return err
	})
	read("dead letters of an organization", 5*scan, func() error {
		_, err := c.listing.DeadLetters(t.Context(), "o", false)
		return err
	})
	read("what keeps a job", 5*scan, func() error {
		_, err := c.listing.Hindrance(t.Context(), "jobs", "o", "mail", "", 0)
		return err
	})
	read("a dry run of a group", 2*jobs/10, func() error {
		_, err := c.listing.StartRetry(t.Context(),
			listing.BulkJobs{Filter: listing.JobFilter{Type: "mail", Code: models.CodeTimeout}, DryRun: true}, "now", 0)
		return err
	})
}
