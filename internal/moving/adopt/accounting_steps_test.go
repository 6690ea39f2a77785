package adopt_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/moving/adopt"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/models"
)

// childEnv names the database that a child process adopts until it is killed.
const childEnv = "DAYBOOK_TEST_ADOPT_CHILD"

// TestChild is the process that TestAdoptionIsKilled kills.
func TestChild(t *testing.T) {
	address := os.Getenv(childEnv)
	if address == "" {
		t.Skip("it runs only as a child of TestAdoptionIsKilled")
	}
	pool, err := pgxpool.New(t.Context(), address)
	require.NoError(t, err)
	defer pool.Close()
	a, err := adopt.NewAccounting(t.Context(), pool, options())
	require.NoError(t, err)
	_, err = adopt.Apply(t.Context(), a, nil)
	require.NoError(t, err)
}

// TestAdoptionIsKilled in the middle: each row is held by one of both systems, and the next call
// goes on.
func TestAdoptionIsKilled(t *testing.T) {
	t.Parallel()
	const n = 1000
	l := newLegacy(t, n)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$")
	child.Env = append(os.Environ(), childEnv+"="+l.URL)
	require.NoError(t, child.Start())
	require.Eventually(t, func() bool {
		return fixture.Count(t, l.Pool,
			`SELECT count(*) FROM daybook.adopted_rows`) > 0
	}, time.Minute, time.Millisecond)
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()

	held := fixture.Count(t, l.Pool, `SELECT count(*) FROM daybook.adopted_rows`)
	require.Equal(t, held, fixture.Count(t, l.Pool, `SELECT count(*) FROM daybook.accounting_work_queue`))
	require.Zero(t, fixture.Count(t, l.app, `
SELECT count(*) FROM accounting_work_queue q
 WHERE EXISTS (SELECT FROM daybook.adopted_rows h WHERE h.legacy_id = q.id) AND q.state IN ('pending', 'leased', 'failed')`), "held by both")
	r := l.apply(options())
	assert.GreaterOrEqual(t, r.Done.Rows(), int64(0))
	assert.Empty(t, r.Left)
	assert.Equal(t, n, fixture.Count(t, l.Pool, `SELECT count(*) FROM daybook.adopted_rows`))
	_, err := adopt.Check(t.Context(), l.adopter(options()))
	require.NoError(t, err)
	l.drain()
}

// TestWhatIsAdopted compares jobs, attempts and what is posted elsewhere with the rows that they
// come from.
func TestWhatIsAdopted(t *testing.T) {
	t.Parallel()
	l := newLegacy(t, 40)
	plan, err := l.adopter(adopt.AccountingOptions{Entries: "public.legacy_entries"}).Look(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 40, plan.Take.Rows())
	codes := map[string]bool{}
	for _, p := range plan.Problems {
		codes[p.Code] = true
	}
	assert.True(t, codes["SOURCE_NOT_SET"], "%+v", plan.Problems)
	assert.Zero(t, fixture.Count(t, l.Pool, `SELECT count(*) FROM daybook.adopted_rows`), "a plan changes nothing")

	r := l.apply(options())
	assert.Equal(t, plan.Take, r.Done)
	failed := fixture.Job(t, l.Pool, "org_a", "doc-15")
	assert.Equal(t, models.JobFailed, failed.State)
	assert.Equal(t, 6, failed.RunCount)
	assert.Equal(t, models.CodeFailedElsewhere, *failed.LastErrorCode)
	assert.Equal(t, "connection reset", *failed.LastError)
	assert.WithinDuration(t, time.Now().Add(-2*time.Hour), *failed.FinishedAt, time.Minute,
		"a time without a zone is UTC")
	assert.Len(t, fixture.Attempts(t, l.Pool, "org_a", "doc-15"), 1)
	assert.Equal(t, 6, fixture.Count(t, l.Pool, `SELECT times FROM daybook.attempts WHERE document_id = 'doc-15'`))
	retried := fixture.Job(t, l.Pool, "org_c", "doc-14")
	assert.Equal(t, models.JobPending, retried.State)
	assert.Equal(t, 2, retried.RunCount)
	assert.Equal(t, models.JobCancelled, fixture.Job(t, l.Pool, "org_b", "doc-16").State)
	for document, want := range map[string]string{
		"doc-1": "1 difference", "doc-13": "1 difference",
		"doc-18": "0 difference", "doc-19": "1 wait",
	} {
		var have string
		require.NoError(t, l.Pool.QueryRow(t.Context(),
			`SELECT document_version || ' ' || next FROM daybook.posted_elsewhere WHERE document_id = $1`,
			document).Scan(&have))
		assert.Equal(t, want, have, document)
	}
	assert.Zero(t, fixture.Count(t, l.Pool,
		`SELECT count(*) FROM daybook.posted_elsewhere WHERE document_id IN ('doc-8', 'doc-15', 'doc-17')`))
	again := l.apply(options())
	assert.Empty(t, again.Done)
}

// TestWithoutEntries whatever may be posted already waits for a person, until the entries are
// known.
func TestWithoutEntries(t *testing.T) {
	t.Parallel()
	l := newLegacy(t, 40)
	o := options()
	o.Entries = ""
	l.apply(o)
	assert.Zero(t, fixture.Count(t, l.Pool, `SELECT count(*) FROM daybook.posted_elsewhere WHERE next <> 'wait'`))
	l.drain()
	assert.Equal(t, map[string]int{"FAILED_ELSEWHERE": 2, "POSTED_ELSEWHERE": 4}, l.failures(),
		"doc-13, 18, 33 and 38 have an earlier posting")
	l.apply(options())
	l.drain()
	assert.Equal(t, map[string]int{"FAILED_ELSEWHERE": 2}, l.failures())
}

// TestUndo gives back what Daybook has not posted, as it was or as it was asked for since, and says
// what stays.
func TestUndo(t *testing.T) {
	t.Parallel()
	l := newLegacy(t, 40)
	const rows = `SELECT md5(string_agg(q::text, '/' ORDER BY id)) FROM accounting_work_queue q WHERE document_id NOT IN ('doc-1', 'doc-8', 'doc-17', 'doc-18', 'doc-37', 'doc-38')`
	var before, after string
	require.NoError(t, l.app.QueryRow(t.Context(), rows).Scan(&before))
	l.apply(options())
	// doc-1 is asked for again by old code; doc-8 is posted by Daybook.
	require.NoError(t, legacyEnqueue(t.Context(), l.app, "org_b", "doc-1", 700))
	l.exec(`UPDATE daybook.accounting_work_queue SET ready_at = clock_timestamp() + interval '1 hour' WHERE state = 'pending' AND document_id <> 'doc-8'`)
	l.workOnce()

	r, err := adopt.GiveBack(t.Context(), l.adopter(options()), nil)
	require.NoError(t, err)
	assert.EqualValues(t, 39, r.Done.Rows())
	require.Len(t, r.Problems, 1)
	assert.Equal(t, "POSTED_HERE", r.Problems[0].Code)
	require.NoError(t, l.app.QueryRow(t.Context(), rows).Scan(&after))
	assert.Equal(t, before, after)
	assert.Equal(t, 1, fixture.Count(t, l.app,
		`SELECT count(*) FROM accounting_work_queue WHERE document_id = 'doc-1' AND state = 'pending' AND version_hint = 2`))
	assert.Equal(t, 1, fixture.Count(t, l.Pool, `SELECT count(*) FROM daybook.accounting_work_queue`))

	// What Daybook has posted goes on to it.
	require.NoError(t, legacyEnqueue(t.Context(), l.app, "org_c", "doc-8", 900))
	assert.EqualValues(t, 2, fixture.Job(t, l.Pool, "org_c", "doc-8").VersionHint)
	assert.Equal(t, "cancelled", l.state("doc-8"))
}

// TestLegacyWorkerIsLate completes a row whose lease had counted as abandoned: its document waits
// for a person, until the entries are read.
func TestLegacyWorkerIsLate(t *testing.T) {
	t.Parallel()
	l := newLegacy(t, 40)
	l.apply(options())
	require.NoError(t, legacyPost(t.Context(), l.app, "org_c", "doc-17", 1800))
	l.exec(`UPDATE accounting_work_queue SET state = 'completed' WHERE document_id = 'doc-17'`)
	v, err := adopt.Check(t.Context(), l.adopter(options()))
	require.ErrorIs(t, err, adopt.ErrDiffers)
	require.NotEmpty(t, v.Problems)
	assert.Equal(t, "COMPLETED_LATE", v.Problems[0].Code)

	l.apply(options())
	l.drain()
	_, err = adopt.Check(t.Context(), l.adopter(options()))
	require.NoError(t, err)
	assert.Empty(t, fixture.Impacts(t, l.Pool, "org_c", "doc-17"), "the legacy worker has posted it")
}

// TestTablesThatDoNotFit are refused with what is missing.
func TestTablesThatDoNotFit(t *testing.T) {
	t.Parallel()
	l := newLegacy(t, 1)
	l.exec(`CREATE TABLE lean (id bigint PRIMARY KEY, org_id text, document_id text, version_hint bigint, state text, colour text);
INSERT INTO lean VALUES (1, 'org_a', 'x', 1, 'pending', 'red'), (2, '', 'y', 1, 'pending', ''), (3, 'org_a', 'z', -1, 'failed', ''), (4, 'org_a', 'v', 1, 'odd', '')`)
	_, err := adopt.NewAccounting(t.Context(), l.Pool, adopt.AccountingOptions{Table: "public.nowhere"})
	require.ErrorIs(t, err, adopt.ErrNoTable)
	assert.NotContains(t, err.Error(), "accounting_work_queue", "the error names no table but the one that was asked for")
	_, err = adopt.Apply(t.Context(), l.adopter(adopt.AccountingOptions{Table: "public.documents"}), nil)
	require.ErrorIs(t, err, adopt.ErrRefused)
	require.ErrorContains(t, err, "public.documents lacks document_id, version_hint, state")
	_, err = adopt.Apply(t.Context(), l.adopter(adopt.AccountingOptions{Table: "daybook.accounting_work_queue"}), nil)
	require.ErrorContains(t, err, "OWN_TABLE")
	_, err = adopt.Apply(t.Context(), l.adopter(adopt.AccountingOptions{Next: models.NextDifference}), nil)
	require.ErrorContains(t, err, "ENTRIES_UNKNOWN")

	// A table with fewer and other columns is adopted but for the rows that cannot be.
	r, err := adopt.Apply(t.Context(), l.adopter(adopt.AccountingOptions{Table: "public.lean"}), nil)
	require.NoError(t, err)
	assert.EqualValues(t, 1, r.Done.Rows())
	assert.EqualValues(t, 3, r.Left.Rows())
	assert.Equal(t, models.JobPending, fixture.Job(t, l.Pool, "org_a", "x").State)

	// Another role that owns the table could have its triggers do what Daybook's owner may: that is
	// said before.
	others := func() int {
		plan, err := l.adopter(adopt.AccountingOptions{}).Look(t.Context())
		require.NoError(t, err)
		return len(slices.DeleteFunc(plan.Problems, func(p adopt.Problem) bool {
			return p.Code != "OTHER_OWNER" || !strings.Contains(p.Detail, "daybook_domain")
		}))
	}
	assert.Zero(t, others())
	require.NoError(t, migrations.Roles(t.Context(), l.URL))
	l.exec(`GRANT daybook_domain TO CURRENT_USER; GRANT CREATE ON SCHEMA public TO daybook_domain; ALTER TABLE public.accounting_work_queue OWNER TO daybook_domain`)
	assert.Equal(t, 1, others())
}

// TestGeneratedColumns: a column that the table computes and stores is read by the trigger as any
// other. A virtual one is null there, so that a table with one is refused, as is one whose marks
// Daybook could not write.
func TestGeneratedColumns(t *testing.T) {
	t.Parallel()
	l := newLegacy(t, 1)
	l.exec(`CREATE TABLE computed (id text PRIMARY KEY, org_id text, document_id text, revision bigint, state text,
  version_hint bigint GENERATED ALWAYS AS (revision + 1) STORED);
CREATE TABLE marked (id text PRIMARY KEY, org_id text, document_id text, version_hint bigint, done boolean,
  state text GENERATED ALWAYS AS (CASE WHEN done THEN 'completed' ELSE 'pending' END) STORED)`)
	_, err := adopt.Apply(t.Context(), l.adopter(adopt.AccountingOptions{Table: "public.marked"}), nil)
	require.ErrorIs(t, err, adopt.ErrRefused)
	require.ErrorContains(t, err, "public.marked computes state, which Daybook writes")

	o := adopt.AccountingOptions{Table: "public.computed", Forward: true}
	_, err = adopt.Apply(t.Context(), l.adopter(o), nil)
	require.NoError(t, err)
	l.exec(`INSERT INTO computed (id, org_id, document_id, revision, state) VALUES ('1', 'org_a', 'x', 6, 'pending')`)
	assert.EqualValues(t, 7, fixture.Job(t, l.Pool, "org_a", "x").VersionHint)
	_, err = adopt.GiveBack(t.Context(), l.adopter(o), nil)
	require.NoError(t, err)
	assert.Equal(t, 1, fixture.Count(t, l.Pool,
		`SELECT count(*) FROM public.computed WHERE state = 'pending' AND version_hint = 7`))
}

func TestVirtualColumnsAreRefused(t *testing.T) {
	t.Parallel()
	l := newLegacy(t, 1)
	if fixture.Count(t, l.Pool, `SELECT current_setting('server_version_num')::int`) < 180000 {
		t.Skip("PostgreSQL has virtual generated columns from version 18 on: make test-postgres POSTGRES=18")
	}
	l.exec(`CREATE TABLE computed (id text PRIMARY KEY, org_id text, document_id text, revision bigint, state text,
  version_hint bigint GENERATED ALWAYS AS (revision + 1))`)
	o := adopt.AccountingOptions{Table: "public.computed", Forward: true}
	_, err := adopt.Apply(t.Context(), l.adopter(o), nil)
	require.ErrorIs(t, err, adopt.ErrRefused)
	require.ErrorContains(t, err, "COLUMN_GENERATED")
	require.ErrorContains(t, err, "public.computed computes version_hint when it is read (VIRTUAL)")
	l.exec(`INSERT INTO computed (id, org_id, document_id, revision, state) VALUES ('1', 'org_a', 'x', 6, 'pending')`)

	// What the error says to do is enough.
	l.exec(`ALTER TABLE computed DROP COLUMN version_hint,
  ADD COLUMN version_hint bigint GENERATED ALWAYS AS (revision + 1) STORED`)
	r, err := adopt.Apply(t.Context(), l.adopter(o), nil)
	require.NoError(t, err)
	assert.EqualValues(t, 1, r.Done.Rows())
	assert.EqualValues(t, 7, fixture.Job(t, l.Pool, "org_a", "x").VersionHint)
}
