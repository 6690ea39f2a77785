package adopt_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/moving/adopt"
	"github.com/daybook-dev/daybook/jobs"
)

//go:embed testdata/operations.sql
var operationsSQL string

// operations is an application with a table of async operations, beside Daybook in one database.
type operations struct {
	*pgtest.DB
	t *testing.T
	// app is the application's pool.
	app *pgxpool.Pool
}

func newOperations(t *testing.T) *operations {
	t.Helper()
	o := &operations{DB: pgtest.New(t), t: t}
	config, err := pgxpool.ParseConfig(o.URL)
	require.NoError(t, err)
	config.ConnConfig.RuntimeParams["search_path"] = "public"
	config.MaxConns = 8
	o.app, err = pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(o.app.Close)
	o.exec(operationsSQL)
	return o
}

func (o *operations) exec(stmt string, args ...any) {
	o.t.Helper()
	_, err := o.app.Exec(o.t.Context(), stmt, args...)
	require.NoError(o.t, err)
}

func (o *operations) count(query string, args ...any) int {
	o.t.Helper()
	return fixture.Count(o.t, o.app, query, args...)
}

func (o *operations) adopter(options adopt.OperationsOptions) *adopt.Operations {
	o.t.Helper()
	a, err := adopt.NewOperations(o.t.Context(), o.Pool, options)
	require.NoError(o.t, err)
	return a
}

func (o *operations) apply(options adopt.OperationsOptions) adopt.Report {
	o.t.Helper()
	r, err := adopt.Apply(o.t.Context(), o.adopter(options), nil)
	require.NoError(o.t, err)
	return r
}

// fill inserts n operations of each status, of the type thumbnail. A pending one is due; a failed
// one waits for an hour.
func (o *operations) fill(n int) {
	o.t.Helper()
	o.exec(`
INSERT INTO async_operations (operation_type, payload, status, attempts, max_attempts, last_attempt_at, next_retry_at, completed_at, last_error, error_history, result)
SELECT 'thumbnail', jsonb_build_object('n', i), s.status, s.attempts, 3, CASE WHEN s.attempts > 0 THEN now() - interval '1 hour' END,
       CASE s.status WHEN 'failed' THEN now() + interval '1 hour' ELSE now() END, CASE s.status WHEN 'completed' THEN now() END,
       CASE WHEN s.status IN ('failed', 'dead') THEN 'Rate limited' END,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('error', 'Rate limited', 'timestamp', '2025-01-02T10:35:00Z', 'attempt', a)), '[]')
          FROM generate_series(1, CASE WHEN s.status IN ('failed', 'dead') THEN s.attempts ELSE 0 END) a),
       CASE s.status WHEN 'completed' THEN '{"ok": true}'::jsonb END
  FROM generate_series(1, $1) i, (VALUES ('pending', 0), ('failed', 2), ('dead', 3), ('completed', 1), ('cancelled', 0), ('processing', 1)) AS s (status, attempts)`, n)
}

// oldWorker claims and works operations as the legacy system does, until the context ends.
func (o *operations) oldWorker(ctx context.Context) error {
	for ctx.Err() == nil {
		rows, _ := o.app.Query(context.WithoutCancel(ctx), `
SELECT id::text FROM async_operations WHERE status IN ('pending', 'failed') AND (next_retry_at IS NULL OR next_retry_at <= now()) ORDER BY created_at LIMIT 10`)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := o.oldAttempt(context.WithoutCancel(ctx), id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *operations) oldAttempt(ctx context.Context, id string) error {
	var mine bool
	if err := o.app.QueryRow(ctx, `SELECT claim_async_operation($1)`, id).Scan(&mine); err != nil || !mine {
		return err
	}
	if _, err := o.app.Exec(ctx, `INSERT INTO worked VALUES ($1, 'legacy')`, id); err != nil {
		return err
	}
	_, err := o.app.Exec(ctx,
		`UPDATE async_operations SET status = 'completed', completed_at = now(), result = '{}' WHERE id = $1`, id)
	return err
}

// thumbnail is the payload of the operations.
type thumbnail struct {
	N int `json:"n"`
}

func (thumbnail) JobType() string { return "thumbnail" }

// drain works Daybook's jobs, also those that wait.
func (o *operations) drain() {
	o.t.Helper()
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[thumbnail]) error {
		links, err := job.Links(ctx)
		if err != nil {
			return err
		}
		for _, l := range links {
			if l.Kind == "operation" {
				_, err = o.Pool.Exec(ctx, `INSERT INTO public.worked VALUES ($1, 'daybook')`, l.ID)
			}
		}
		return err
	})
	queuetest.DrainJobs(o.t, o.Pool, registry, queuetest.JobsOptions{Advance: 2 * time.Hour})
}

// The old worker and the code that enqueues run, while rows are adopted again and again, and some
// runs are killed: each operation is worked once, by one of both.
func TestOperationsAreAdoptedBesideTheOldWorker(t *testing.T) {
	t.Parallel()
	o := newOperations(t)
	o.fill(150)
	ctx, stop := context.WithCancel(t.Context())
	var group errgroup.Group
	for range 2 {
		group.Go(func() error { return o.oldWorker(ctx) })
	}
	group.Go(func() error {
		for range 60 {
			if _, err := o.app.Exec(context.WithoutCancel(ctx),
				`INSERT INTO async_operations (operation_type, payload) SELECT 'thumbnail', '{"n": 0}' FROM generate_series(1, 5)`); err != nil {
				return err
			}
		}
		return nil
	})
	for range 4 {
		killed, kill := context.WithTimeout(t.Context(), 60*time.Millisecond)
		_, err := adopt.Apply(killed, o.adopter(adopt.OperationsOptions{}), nil)
		kill()
		if err != nil {
			require.ErrorIs(t, errors.Join(err, killed.Err()), context.DeadlineExceeded)
		}
		o.apply(adopt.OperationsOptions{})
	}
	stop()
	require.NoError(t, group.Wait())
	o.apply(adopt.OperationsOptions{})
	v, err := adopt.Check(t.Context(), o.adopter(adopt.OperationsOptions{}))
	require.NoError(t, err, "%+v", v)
	assert.Zero(t, v.Left.Rows())
	assert.Zero(t, o.count(`SELECT count(*) FROM async_operations WHERE status IN ('pending', 'failed', 'dead')`),
		"what is open, and dead letters, are Daybook's")
	o.drain()
	assert.Positive(t, o.count(`SELECT count(*) FROM worked WHERE by = 'daybook'`))
	assert.Zero(t, o.count(`SELECT count(*) FROM (SELECT operation_id FROM worked GROUP BY 1 HAVING count(*) > 1) twice`),
		"worked twice")
	// 150 of each status; of the first ones only those that were pending or failed are worked, and
	// all that were enqueued meanwhile.
	assert.Equal(t, o.count(`SELECT count(*) FROM async_operations`)-4*150, o.count(`SELECT count(*) FROM worked`))
	assert.Zero(t, o.apply(adopt.OperationsOptions{}).Done.Rows(), "a repetition takes nothing twice")
}

// A row keeps its attempts, its errors, its time, its links and its organization.
func TestOperationsKeepWhatTheyHave(t *testing.T) {
	t.Parallel()
	o := newOperations(t)
	const workspace, submission = "0197a0c0-0000-7000-8000-000000000003", "0197a0c0-0000-7000-8000-000000000001"
	o.exec(`INSERT INTO folders VALUES ($1)`, workspace)
	o.exec(`INSERT INTO form_submissions VALUES ($1)`, submission)
	o.fill(1)
	o.exec(`UPDATE async_operations SET workspace_id = $1, submission_id = $2`, workspace, submission)
	plan, err := o.adopter(adopt.OperationsOptions{Completed: true}).Look(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 6, plan.Found.Rows())
	assert.EqualValues(t, 5, plan.Take.Rows())
	assert.Zero(t, o.count(`SELECT count(*) FROM daybook.jobs`), "a dry run changes nothing")
	r := o.apply(adopt.OperationsOptions{Completed: true})
	assert.Equal(t, plan.Take, r.Done, "what the plan said, by organization, status and checksum")
	for _, c := range []struct {
		was, state string
		attempts   int
		history    int
	}{
		{"pending", "pending", 0, 0},
		{"failed", "pending", 2, 2},
		{"dead", "failed", 3, 3},
		{"completed", "completed", 1, 0},
		{"cancelled", "cancelled", 0, 0},
	} {
		assert.Equal(t, 1, o.count(`
SELECT count(*) FROM daybook.jobs j JOIN daybook.adopted_rows h ON h.job_id = j.id
 WHERE h.taken_state = $1 AND j.state::text = $2 AND j.run_count = $3 AND j.org_id = $4 AND j.max_attempts = 3
   AND (SELECT count(*) FROM daybook.attempts a WHERE a.job_id = j.id AND a.error = 'Rate limited' AND a.started_at = '2025-01-02T10:35:00Z') = $5
   AND (SELECT count(*) FROM daybook.job_links l WHERE l.job_id = j.id AND l.kind IN ('operation', 'submission', 'workspace')) = 3
   AND (j.result IS NOT NULL) = ($1 = 'completed')
   AND (j.ready_at > now() + interval '50 minutes') = ($1 = 'failed')`, c.was, c.state, c.attempts, workspace,
			c.history), c.was)
	}
	assert.Equal(t, 3, o.count(`SELECT count(*) FROM async_operations WHERE last_error = 'held by Daybook' AND status = 'cancelled'`))

	// The organization may be named.
	o.exec(`INSERT INTO async_operations (operation_type, payload) VALUES ('thumbnail', '{}')`)
	o.apply(adopt.OperationsOptions{Org: "acme"})
	assert.Equal(t, 1, o.count(`SELECT count(*) FROM daybook.jobs WHERE org_id = 'acme'`))
	o.exec(`INSERT INTO async_operations (operation_type, payload) VALUES ('thumbnail', '{}')`)
	o.apply(adopt.OperationsOptions{})
	assert.Equal(t, 1, o.count(`SELECT count(*) FROM daybook.jobs WHERE org_id = 'default'`))
}

// What Daybook would refuse is reported and left; credentials stay out of the queue, or are taken
// out.
func TestOperationsThatAreRefusedAreReported(t *testing.T) {
	t.Parallel()
	o := newOperations(t)
	o.exec(`
INSERT INTO async_operations (operation_type, payload, status, last_error) VALUES
 ('airtable_sync', '{"airtableSettings": {"base_id": "app1", "api_key": "key-of-a-customer"}}', 'pending', NULL),
 ('airtable_sync', '{"airtableSettings": {"base_id": "app1", "api_key": "key-of-a-customer"}}', 'dead', 'e'),
 ('two words', '{}', 'pending', NULL), ('thumbnail', '[]', 'pending', NULL), ('thumbnail', '{}', 'waiting', NULL), ('mail', '{}', 'failed', 'e')`)
	options := adopt.OperationsOptions{Check: func(operationType string, raw []byte) error {
		switch {
		case strings.Contains(string(raw), "api_key"):
			return errors.New("store the token as the secret DAYBOOK_AIRTABLE_TOKEN_DEFAULT")
		case operationType == "mail":
			return errors.New("to is missing")
		}
		return nil
	}}
	codes := func() string {
		p, err := o.adopter(options).Look(t.Context())
		require.NoError(t, err)
		text := ""
		for _, one := range p.Problems {
			text += fmt.Sprintf("%s %d %s\n", one.Code, one.Rows, one.Detail)
		}
		return text
	}
	said := codes()
	for _, code := range []string{
		"CREDENTIALS 2 store the token as the secret DAYBOOK_AIRTABLE_TOKEN_DEFAULT",
		"TYPE_INVALID 1", "PAYLOAD_REFUSED 1 mail: to is missing", "STATUS_UNKNOWN 1",
	} {
		assert.Contains(t, said, code)
	}
	assert.NotContains(t, said, "key-of-a-customer")
	assert.Zero(t, o.apply(options).Done.Rows())
	options.DropCredentials = true
	assert.EqualValues(t, 2, o.apply(options).Done.Rows())
	assert.Zero(t, o.count(`SELECT count(*) FROM daybook.jobs WHERE payload::text LIKE '%key-of%'`))
	_, err := adopt.Check(t.Context(), o.adopter(options))
	require.NoError(t, err)
}

// What Daybook has not worked goes back as it was, and can be adopted again.
func TestOperationsAreGivenBack(t *testing.T) {
	t.Parallel()
	o := newOperations(t)
	o.fill(5)
	o.exec(`CREATE TABLE before AS SELECT * FROM async_operations`)
	o.apply(adopt.OperationsOptions{Completed: true})
	// Daybook works one of them.
	var id string
	require.NoError(t, o.Pool.QueryRow(t.Context(),
		`SELECT id FROM daybook.jobs WHERE state = 'pending' AND ready_at <= clock_timestamp() LIMIT 1`).Scan(&id))
	require.Equal(t, 1, o.count(`SELECT count(daybook.lease_async_operation($1))`, id))
	o.exec(`SELECT daybook.complete_async_operation($1)`, id)
	r, err := adopt.GiveBack(t.Context(), o.adopter(adopt.OperationsOptions{}), nil)
	require.NoError(t, err)
	assert.EqualValues(t, 24, r.Done.Rows())
	assert.EqualValues(t, 1, r.Left.Rows())
	assert.Equal(t, "WORKED_HERE", r.Problems[0].Code)
	assert.Equal(t, 1, o.count(`SELECT count(*) FROM ((TABLE async_operations) EXCEPT (TABLE before)) changed`),
		"only the one that Daybook has worked")
	assert.Equal(t, 1, o.count(`SELECT count(*) FROM daybook.jobs`))
	assert.Equal(t, 1, o.count(`SELECT count(*) FROM pg_trigger WHERE tgname = 'daybook_keeps_adopted'`),
		"as long as Daybook holds a row")
	assert.EqualValues(t, 24, o.apply(adopt.OperationsOptions{Completed: true}).Done.Rows())
	v, err := adopt.Check(t.Context(), o.adopter(adopt.OperationsOptions{}))
	require.NoError(t, err, "%+v", v)
}

// When a person tries a row again in the legacy system that Daybook holds, Daybook tries it, and
// the old worker does not.
func TestOperationsThatAreTriedAgainGoOnToDaybook(t *testing.T) {
	t.Parallel()
	o := newOperations(t)
	o.fill(1)
	o.apply(adopt.OperationsOptions{})
	require.Equal(t, 1, o.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'failed'`))
	o.exec(`UPDATE async_operations SET status = 'pending', attempts = 0, next_retry_at = now() WHERE last_error = 'held by Daybook'`)
	assert.Zero(t, o.count(`SELECT count(*) FROM async_operations WHERE status = 'pending'`))
	assert.Equal(t, 3, o.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'pending'`))
	assert.Zero(t, o.count(`SELECT count(*) FROM async_operations WHERE claim_async_operation(id)`))
}
