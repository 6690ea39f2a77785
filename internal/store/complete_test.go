package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const org = "org_1"

// bundle is a database and a store on it.
type bundle struct {
	*pgtest.DB
	t     *testing.T
	store *store.Store
}

func setup(t *testing.T) *bundle {
	t.Helper()
	db := pgtest.New(t)
	return &bundle{DB: db, t: t, store: store.New(db.Pool)}
}

func (b *bundle) exec(query string, args ...any) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), query, args...)
	require.NoError(b.t, err)
}

func (b *bundle) turn(id string) store.Turn {
	b.t.Helper()
	fence, err := b.store.NextFence(b.t.Context())
	require.NoError(b.t, err)
	return store.Turn{ID: id, Fence: fence, Worker: "test", WorkflowRunID: "run"}
}

func (b *bundle) lease(turn store.Turn, limit int) []store.Job {
	b.t.Helper()
	leased, err := b.store.LeaseFor(b.t.Context(), turn, limit, pgtest.Unbounded())
	require.NoError(b.t, err)
	return leased.Jobs
}

// completeAll completes accounting jobs in one transaction.
func (b *bundle) completeAll(turn store.Turn, completions ...store.Completion) error {
	b.t.Helper()
	_, err := b.completeLeased(store.Accounting, turn, completions...)
	return err
}

// completeLeased completes leased jobs of a kind in one transaction.
func (b *bundle) completeLeased(kind *store.Kind, turn store.Turn,
	completions ...store.Completion,
) (done store.Completed, err error) {
	b.t.Helper()
	err = pgx.BeginFunc(b.t.Context(), b.Pool, func(tx pgx.Tx) (err error) {
		done, err = kind.Complete(b.t.Context(), tx, turn, completions, store.Access{})
		return err
	})
	return done, err
}

// insert makes pending jobs by a query's document, priority and seconds until they are due.
func (b *bundle) insert(query string) {
	b.t.Helper()
	b.exec(`
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, priority, ready_at)
SELECT 'org_1', q.document, 1, q.priority, clock_timestamp() + make_interval(secs => q.seconds) FROM (` + query +
		`) AS q (document, priority, seconds)`)
}

// sent is a statement with its arguments.
type sent struct {
	sql  string
	args []any
}

// capture keeps the last scans, and the last lease, pick and lease of what was picked, that were
// sent.
type capture struct{ scan, recent, lease, pick, leasePicked sent }

func (c *capture) keep(sql string, args []any) {
	switch {
	case strings.Contains(sql, "WITH RECURSIVE parts"):
		c.scan = sent{sql, slices.Clone(args)}
	case strings.Contains(sql, "WITH recent"):
		c.recent = sent{sql, slices.Clone(args)}
	case strings.Contains(sql, "working = NOT v.waiting"):
		c.leasePicked = sent{sql, slices.Clone(args)}
	case strings.Contains(sql, "SET state = 'leased'"):
		c.lease = sent{sql, slices.Clone(args)}
	case strings.Contains(sql, "pg_xact_status"):
		c.pick = sent{sql, slices.Clone(args)}
	}
}

// tracer is called with each statement that is sent.
type tracer func(sql string, args []any)

func (f tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	f(data.SQL, data.Args)
	return ctx
}

func (tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (tracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (f tracer) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	f(data.SQL, data.Args)
}

func (tracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// node is a part of a plan as EXPLAIN (FORMAT JSON) prints it.
type node struct {
	Type    string  `json:"Node Type"`
	Table   string  `json:"Relation Name"`
	Index   string  `json:"Index Name"`
	Rows    float64 `json:"Actual Rows"`
	Loops   float64 `json:"Actual Loops"`
	Removed float64 `json:"Rows Removed by Filter"`
	// Hit and Read are pages.
	Hit   int    `json:"Shared Hit Blocks"`
	Read  int    `json:"Shared Read Blocks"`
	Plans []node `json:"Plans"`
}

func (n node) walk(f func(node)) {
	f(n)
	for _, p := range n.Plans {
		p.walk(f)
	}
}

// explain runs a statement that was sent, takes it back, and returns the parts of its plan; it
// checks that none reads more than it should.
func (b *bundle) explain(s sent) []node {
	b.t.Helper()
	nodes := b.explainFreely(s)
	for _, n := range nodes {
		if n.Table == "organizations" {
			continue // there are two
		}
		assert.NotEqual(b.t, "Seq Scan", n.Type, "%s is read as a whole", n.Table)
		assert.LessOrEqual(b.t, n.Rows*max(n.Loops, 1), 200.0, "rows of a %s", n.Type)
		assert.LessOrEqual(b.t, n.Removed, 0.0, "rows that a %s read in vain", n.Type)
	}
	return nodes
}

// explainFreely runs a statement that was sent, takes it back, and returns the parts of its plan.
func (b *bundle) explainFreely(s sent) []node {
	b.t.Helper()
	require.NotEmpty(b.t, s.sql)
	var text string
	tx, err := b.Pool.Begin(b.t.Context())
	require.NoError(b.t, err)
	require.NoError(b.t, tx.QueryRow(b.t.Context(), `EXPLAIN (ANALYZE, FORMAT JSON) `+s.sql, s.args...).Scan(&text))
	require.NoError(b.t, tx.Rollback(b.t.Context()))
	var plans []struct{ Plan node }
	require.NoError(b.t, json.Unmarshal([]byte(text), &plans))
	var nodes []node
	plans[0].Plan.walk(func(n node) { nodes = append(nodes, n) })
	return nodes
}

// Lease and scan find what is due by the index that was made for them, and do not walk what is due
// later; the planner comes to that by itself, without the settings of planByKey.
func TestPlanOfTheLease(t *testing.T) {
	t.Parallel()
	for name, due := range map[string]int{"a full batch is due": 500, "little is due": 3, "nothing is due": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.insert(`SELECT 'later_' || i, 1 + i % 3, 3600 + i FROM generate_series(1, 100000) i`)
			b.insert(fmt.Sprintf(`SELECT 'due_' || i, 1 + i %% 3, -i FROM generate_series(1, %d) i`, due))
			b.exec(`ANALYZE daybook.accounting_work_queue`)
			var got capture
			config, err := pgxpool.ParseConfig(b.URL)
			require.NoError(t, err)
			config.ConnConfig.Tracer = tracer(got.keep)
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			require.NoError(t, err)
			defer pool.Close()
			// What the store sends is what is explained.
			_, err = store.New(pool).LeaseFor(t.Context(), b.turn("run/0/1"), 1, pgtest.Unbounded())
			require.NoError(t, err)
			if due > 0 {
				got.lease.ask(50)
				b.assertByIndex(got.lease, "accounting_work_queue_due")
				return
			}
			b.assertByIndex(got.scan, "accounting_work_queue_due")
			b.assertByIndex(got.recent, "accounting_work_queue_ready")
		})
	}
}

// TestPlanOfTheLeaseOfSeveralOrganizations has a few organizations with as much to do, all of it
// due at about the same time: what is read of one does not lead past the jobs of the others.
func TestPlanOfTheLeaseOfSeveralOrganizations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`
INSERT INTO daybook.jobs (org_id, type, payload, ready_at)
SELECT 'org_' || i % 10, 'noop', '{}', clock_timestamp() - interval '1 second' FROM generate_series(1, 5000) i`)
	b.exec(`VACUUM ANALYZE daybook.jobs`)
	var got capture
	config := b.Pool.Config()
	config.ConnConfig.Tracer = tracer(got.keep)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	defer pool.Close()
	s := store.NewQueue(pool, store.Jobs)
	_, err = s.LeaseFor(t.Context(), b.turn("run/0/1"), 20, pgtest.Unbounded())
	require.NoError(t, err)
	b.assertByIndex(got.lease, "jobs_due")

	pick, err := s.Pick(t.Context(), 20, pgtest.Unbounded())
	require.NoError(t, err)
	require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
		jobs, err := pick.Lock(t.Context(), tx)
		assert.Len(t, jobs, 20)
		return err
	}))
	b.assertByIndex(got.pick, "jobs_due")
}

// ask has a captured lease ask each partition for so many jobs.
func (s sent) ask(n int32) {
	for _, arg := range s.args {
		if quotas, ok := arg.([]int32); ok {
			for i := range quotas {
				quotas[i] = n
			}
		}
	}
}

func (b *bundle) assertByIndex(s sent, index string) {
	b.t.Helper()
	used := slices.ContainsFunc(b.explain(s), func(n node) bool { return n.Index == index })
	assert.True(b.t, used, "%s is used by\n%s", index, s.sql)
}

func TestCompleteLogsEachAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.insert(`SELECT 'doc_' || i, 2, -i FROM generate_series(1, 5) i`)
	turn := b.turn("run/0/1")
	outcomes := map[string]store.Completion{
		"doc_1": {Outcome: models.OutcomeCompleted},
		"doc_2": {Outcome: models.OutcomeRetried, Code: models.CodeTimeout, Message: "too slow", Delay: time.Minute},
		"doc_3": {
			Outcome: models.OutcomeRescheduled, Code: models.CodeVersionMismatch, Message: "it is 9",
			Delay: 5 * time.Second, Version: new(int64(9)),
		},
		"doc_4": {Outcome: models.OutcomeFailed, Code: models.CodeUnbalanced, Message: "off by 10"},
		"doc_5": {Outcome: models.OutcomeRescheduled, Code: models.CodeDocumentLocked, Message: "locked", Unlogged: true},
	}
	var completions []store.Completion
	for _, j := range b.lease(turn, 10) {
		s := outcomes[j.DocumentID]
		s.Job = j
		completions = append(completions, s)
	}
	require.NoError(t, b.completeAll(turn, completions...))

	states := map[string]models.JobState{
		"doc_1": models.JobCompleted, "doc_2": models.JobPending, "doc_3": models.JobPending, "doc_4": models.JobFailed,
		"doc_5": models.JobPending,
	}
	for document, want := range outcomes {
		job := fixture.Job(t, b.Pool, org, document)
		assert.Equal(t, states[document], job.State, document)
		if want.Code != "" {
			require.NotNil(t, job.LastErrorCode, document)
			assert.Equal(t, want.Code, *job.LastErrorCode)
			assert.Equal(t, want.Message, *job.LastError)
		}
		if job.State == models.JobPending {
			assert.Equal(t, want.Delay, job.ReadyAt.Sub(job.UpdatedAt).Round(time.Second), "%s is due again", document)
		}
		attempts := fixture.Attempts(t, b.Pool, org, document)
		if want.Unlogged {
			assert.Empty(t, attempts, document)
			continue
		}
		require.Len(t, attempts, 1, document)
		assert.Equal(t, want.Outcome, attempts[0].Outcome)
		assert.Equal(t, 1, attempts[0].Attempt)
		assert.EqualValues(t, 1, attempts[0].Version, "the version that was tried")
		assert.Equal(t, turn.ID, attempts[0].TurnID)
	}
	assert.EqualValues(t, 9, fixture.Job(t, b.Pool, org, "doc_3").VersionHint, "the document's version")
	assert.Zero(t, fixture.Job(t, b.Pool, org, "doc_3").RunCount, "uncounted")
	assert.Equal(t, 1, fixture.Job(t, b.Pool, org, "doc_2").RunCount, "counted")
}

// TestPlanBesideDeadRows: a snapshot keeps the rows that were completed since, and ANALYZE finds
// hardly any pending ones. Then every index of pending rows seems to cost nothing; each statement
// reads the one that is made for it all the same.
func TestPlanBesideDeadRows(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]*store.Kind{"jobs": store.Jobs, "accounting_work_queue": store.Accounting} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			enqueue := func(from, to int) {
				if kind == store.Jobs {
					b.exec(`INSERT INTO daybook.jobs (org_id, type, payload) SELECT 'org_' || i % 10, 'noop', '{}' FROM generate_series($1::int, $2::int) i`, from, to)
				} else {
					b.exec(`INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint) SELECT 'org_' || i % 10, 'doc_' || i, 1 FROM generate_series($1::int, $2::int) i`, from, to)
				}
			}
			enqueue(1, 20000)
			b.holdSnapshot()
			b.exec(`UPDATE daybook.` + name + ` SET state = 'cancelled', finished_at = clock_timestamp()`)
			b.exec(`ANALYZE daybook.` + name)
			enqueue(20001, 20050)

			var got capture
			config := b.Pool.Config()
			config.ConnConfig.Tracer = tracer(got.keep)
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			require.NoError(t, err)
			defer pool.Close()
			s := store.NewQueue(pool, kind)
			pick, err := s.Pick(t.Context(), 20, pgtest.Unbounded())
			require.NoError(t, err)
			require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
				jobs, err := pick.Lock(t.Context(), tx)
				require.NoError(t, err)
				assert.Len(t, jobs, 20)
				leased, err := s.LeasePicked(t.Context(), tx, b.turn("run/0/0"), jobs[:10], true)
				assert.Len(t, leased, 10)
				return err
			}))
			_, err = s.LeaseFor(t.Context(), b.turn("run/0/1"), 10, pgtest.Unbounded())
			require.NoError(t, err)
			b.assertByIndexes(got.pick, name+"_due")
			b.assertByIndexes(got.lease, name+"_due")
			b.assertByIndexes(got.recent, name+"_ready")
			b.assertByIndexes(got.leasePicked, name+"_pkey")
		})
	}
}

// assertByIndexes checks that of a queue's key and its indexes of what is pending a statement uses
// this one alone; what it finds by another one it may change by key.
func (b *bundle) assertByIndexes(s sent, index string) {
	b.t.Helper()
	used := map[string]bool{}
	for _, n := range b.explainFreely(s) {
		if strings.HasSuffix(n.Index, "_due") || strings.HasSuffix(n.Index, "_ready") || n.Index == index {
			used[n.Index] = true
		}
	}
	assert.Equal(b.t, map[string]bool{index: true}, used, s.sql)
}
