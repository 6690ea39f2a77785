package store_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// rules changes an organization's rules in a transaction that is committed.
func rules[T any](b *bundle, change func(context.Context, pgx.Tx) (T, error)) T {
	b.t.Helper()
	var out T
	fixture.Tx(b.t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		var err error
		out, err = change(ctx, tx)
		require.NoError(b.t, err)
	})
	return out
}

func (b *bundle) storeRules(source string) ledgerdb.StoredRuleSet {
	b.t.Helper()
	return rules(b, func(ctx context.Context, tx pgx.Tx) (ledgerdb.StoredRuleSet, error) {
		return ledgerdb.PutRuleSet(ctx, tx, org, "rules", source)
	})
}

func (b *bundle) activate(version int64) ledgerdb.Activated {
	b.t.Helper()
	return rules(b, func(ctx context.Context, tx pgx.Tx) (ledgerdb.Activated, error) {
		return ledgerdb.ActivateRuleSet(ctx, tx, org, version)
	})
}

func (b *bundle) apply(source string) ledgerdb.Activated {
	b.t.Helper()
	return rules(b, func(ctx context.Context, tx pgx.Tx) (ledgerdb.Activated, error) {
		return ledgerdb.ApplyRuleSet(ctx, tx, org, "rules", source)
	})
}

func (b *bundle) config() ledgerdb.Config {
	b.t.Helper()
	return rules(b, func(ctx context.Context, tx pgx.Tx) (ledgerdb.Config, error) {
		configs, err := ledgerdb.Configs(ctx, tx, []string{org})
		return configs[org], err
	})
}

// fail makes a failed job for each code.
func (b *bundle) fail(codes ...models.ErrorCode) {
	b.t.Helper()
	for _, code := range codes {
		b.exec(`
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, state, finished_at, run_count, last_error_code, last_error)
VALUES ($1, $2, 1, 'failed', clock_timestamp(), 1, $2, 'failed')`, org, string(code))
	}
}

func TestRuleSetsAreStoredWithoutBeingActivated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	assert.Equal(t, ledgerdb.StoredRuleSet{Version: 1, Added: true}, b.storeRules("one"))
	assert.Nil(t, b.config().RuleSetVersion, "nothing is active")
	assert.Equal(t, ledgerdb.StoredRuleSet{Version: 1}, b.storeRules("one"), "the newest version has the source")
	assert.Equal(t, ledgerdb.Activated{Version: 1, Changed: true}, b.activate(1))
	assert.Equal(t, ledgerdb.StoredRuleSet{Version: 2, Added: true}, b.storeRules("two"))
	assert.Equal(t, ledgerdb.StoredRuleSet{Version: 1, Active: true}, b.storeRules("one"),
		"the active version has the source")
	assert.Equal(t, ledgerdb.Activated{Version: 2, Changed: true}, b.apply("two"), "what was stored is activated")
	assert.Equal(t, ledgerdb.Activated{Version: 3, Changed: true}, b.apply("one"), "an older source is a new version")
	assert.Equal(t, ledgerdb.Activated{Version: 3}, b.apply("one"), "the same again changes nothing")

	sets, err := books.RuleSets(t.Context(), b.Pool, org)
	require.NoError(t, err)
	var versions []int64
	for _, s := range sets {
		versions = append(versions, s.Version)
		assert.Equal(t, s.Version == 3, s.Active)
		assert.Empty(t, s.Source)
		assert.Len(t, s.SHA256, 64)
		assert.NotZero(t, s.CreatedAt)
	}
	assert.Equal(t, []int64{3, 2, 1}, versions)
	set, err := books.RuleSet(t.Context(), b.Pool, org, 2)
	require.NoError(t, err)
	assert.Equal(t, "two", set.Source)
	_, err = books.RuleSet(t.Context(), b.Pool, org, 4)
	require.ErrorIs(t, err, ledgerdb.ErrNoRuleSet)
	assert.ErrorContains(t, err, "organization org_1 has no rule set version 4")
	_, err = books.RuleSets(t.Context(), b.Pool, "unknown")
	require.ErrorIs(t, err, store.ErrOrganizationNotFound)
}

func TestActivationReturnsWhatFailedForTheRules(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply("one")
	b.storeRules("two")
	b.fail(models.CodeUnbalanced, models.CodeDocumentInvalid, models.CodeNoMatchingRule, models.CodeAmbiguousRule,
		models.CodeUnknownAccount)
	b.exec(`
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, state, finished_at, run_count, last_error_code, last_error, updated_at)
SELECT 'another', document_id, 1, state, finished_at, 1, last_error_code, last_error, created_at - interval '2 hours' FROM daybook.accounting_work_queue`)
	b.exec(`
UPDATE daybook.accounting_work_queue
   SET ready_at = ready_at - interval '1 hour', first_ready_at = first_ready_at - interval '1 hour', updated_at = updated_at - interval '1 hour', not_ready_count = 3`)
	before := b.config().ConfigVersion
	began, err := store.Now(t.Context(), b.Pool)
	require.NoError(t, err)
	assert.Equal(t, ledgerdb.Activated{Version: 2, Changed: true, Returned: 3}, b.activate(2))
	assert.Equal(t, 5, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.accounting_work_queue WHERE org_id = 'another' AND state = 'failed'`))
	assert.Equal(t, before+1, b.config().ConfigVersion, "what was judged before is judged again")
	for code, want := range map[models.ErrorCode]models.JobState{
		models.CodeNoMatchingRule: models.JobPending, models.CodeAmbiguousRule: models.JobPending,
		models.CodeUnknownAccount: models.JobPending,
		models.CodeUnbalanced:     models.JobFailed, models.CodeDocumentInvalid: models.JobFailed,
	} {
		job := fixture.Job(t, b.Pool, org, string(code))
		assert.Equal(t, want, job.State, code)
		if want == models.JobPending {
			assert.Zero(t, job.RunCount+job.NotReadyCount, code)
			assert.EqualValues(t, 1, job.Generation, code)
			for _, at := range []time.Time{job.ReadyAt, job.FirstReadyAt, job.UpdatedAt} {
				assert.False(t, at.Before(began), code)
			}
		}
	}
	assert.Equal(t, ledgerdb.Activated{Version: 2}, b.activate(2), "active already")
	assert.Equal(t, before+1, b.config().ConfigVersion)
}

// However many jobs have failed for the rules, an activation holds few of them, and the
// configuration for a moment: workers return the others.
func TestManyFailedJobsReturnInBatches(t *testing.T) {
	t.Parallel()
	const jobs, atOnce = 2500, 1000
	b := setup(t)
	b.apply("one")
	b.storeRules("two")
	b.exec(`
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, state, run_count, finished_at, last_error, last_error_code)
SELECT $1, g::text, 1, 'failed', 1, now(), 'no rule', CASE WHEN g % 2 = 0 THEN 'NO_MATCHING_RULE' ELSE 'UNKNOWN_ACCOUNT' END FROM generate_series(1, $2) g`, org, jobs)
	b.fail(models.CodeUnbalanced)
	count := func(state models.JobState) int {
		return fixture.Count(t, b.Pool,
			`SELECT count(*) FROM daybook.accounting_work_queue WHERE state = $1 AND run_count = CASE $1 WHEN 'pending' THEN 0 ELSE 1 END`, string(state))
	}
	another, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = another.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = another.Exec(t.Context(), `SELECT FROM daybook.accounting_work_queue WHERE document_id = $1 FOR UPDATE`,
		strconv.Itoa(jobs))
	require.NoError(t, err)
	assert.Equal(t, ledgerdb.Activated{Version: 2, Changed: true, Returned: jobs}, b.activate(2))
	assert.Equal(t, atOnce, count(models.JobPending), "at once")
	// One that fails anew is none of those that failed before.
	b.exec(`
UPDATE daybook.accounting_work_queue SET state = 'failed', run_count = 1, finished_at = clock_timestamp(), updated_at = clock_timestamp()
 WHERE id = (SELECT id FROM daybook.accounting_work_queue WHERE state = 'pending' LIMIT 1)`)
	for pending := atOnce - 1; ; {
		checked, err := b.store.CheckWaits(t.Context())
		require.NoError(t, err)
		now := count(models.JobPending)
		assert.LessOrEqual(t, now-pending, atOnce, "in a transaction")
		if pending = now; checked.Decided == 0 {
			break
		}
	}
	assert.Equal(t, jobs-2, count(models.JobPending))
	assert.Equal(t, 3, count(models.JobFailed), "one of them is being changed by another transaction")
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.accounting_returns`))
}

func TestActivationRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply("one")
	for name, test := range map[string]struct {
		org     string
		version int64
		want    error
	}{
		"no such version":      {org, 2, ledgerdb.ErrNoRuleSet},
		"version zero":         {org, 0, ledgerdb.ErrNoRuleSet},
		"no such organization": {"unknown", 1, store.ErrOrganizationNotFound},
	} {
		err := pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
			_, err := ledgerdb.ActivateRuleSet(t.Context(), tx, test.org, test.version)
			return err
		})
		require.ErrorIs(t, err, test.want, name)
	}
	assert.Equal(t, int64(1), *b.config().RuleSetVersion)
}

// A job that is failing under the version before while another is activated is returned as well:
// the activation waits for the transaction that completes it.
func TestActivationReturnsWhatIsFailingMeanwhile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply("one")
	b.storeRules("two")
	b.insert(`VALUES ('doc_1', 2, -1)`)
	turn := b.turn("run/0/1")
	job := b.lease(turn, 1)[0]

	worker, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = worker.Rollback(context.WithoutCancel(t.Context())) }()
	used, err := ledgerdb.UseConfigurations(t.Context(), worker, []string{org})
	require.NoError(t, err)
	require.True(t, used[org])
	_, err = store.Accounting.Complete(t.Context(), worker, turn,
		[]store.Completion{{Job: job, Outcome: models.OutcomeFailed, Code: models.CodeNoMatchingRule, Message: "no rule"}},
		store.Access{})
	require.NoError(t, err)

	type outcome struct {
		done ledgerdb.Activated
		err  error
	}
	activated := make(chan outcome, 1)
	go func() {
		var o outcome
		o.err = pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
			var err error
			o.done, err = ledgerdb.ActivateRuleSet(t.Context(), tx, org, 2)
			return err
		})
		activated <- o
	}()
	require.Eventually(t, func() bool {
		return fixture.Count(t, b.Pool,
			`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 1
	}, pgtest.Patience, 5*time.Millisecond, "the activation waits for the worker")
	require.NoError(t, worker.Commit(t.Context()))
	o := <-activated
	require.NoError(t, o.err)
	assert.Equal(t, ledgerdb.Activated{Version: 2, Changed: true, Returned: 1}, o.done)
	assert.Equal(t, models.JobPending, fixture.Job(t, b.Pool, org, "doc_1").State)
}
