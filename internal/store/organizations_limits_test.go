package store_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
)

func (b *bundle) pause() store.Limits {
	b.t.Helper()
	return rules(b, func(ctx context.Context, tx pgx.Tx) (store.Limits, error) {
		return store.PauseOrganization(ctx, tx, org)
	})
}

func (b *bundle) resume() store.Limits {
	b.t.Helper()
	return rules(b, func(ctx context.Context, tx pgx.Tx) (store.Limits, error) {
		return store.ResumeOrganization(ctx, tx, org)
	})
}

func (b *bundle) limit(most *int) store.Limits {
	b.t.Helper()
	return rules(b, func(ctx context.Context, tx pgx.Tx) (store.Limits, error) {
		return store.CapOrganization(ctx, tx, org, most)
	})
}

func TestPauseAndCapSayWhatChanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.pause()
	assert.True(t, first.Changed)
	assert.True(t, first.Added, "it has jobs, perhaps, but no row")
	require.NotNil(t, first.PausedAt)
	assert.Equal(t, store.Limits{PausedAt: first.PausedAt}, b.pause(), "the time of the first pause stays")

	assert.Equal(t, store.Limits{Changed: true, PausedAt: first.PausedAt, MaxInFlight: new(3)}, b.limit(new(3)))
	assert.Equal(t, store.Limits{PausedAt: first.PausedAt, MaxInFlight: new(3)}, b.limit(new(3)))
	assert.Equal(t, store.Limits{Changed: true, MaxInFlight: new(3)}, b.resume(), "the cap stays")
	assert.Equal(t, store.Limits{MaxInFlight: new(3)}, b.resume())
	assert.Equal(t, store.Limits{Changed: true}, b.limit(nil))
	assert.Equal(t, store.Limits{}, b.limit(nil))
}

func TestPauseAndCapRefuse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		for _, most := range []int{0, -1, 1 << 31} {
			_, err := store.CapOrganization(ctx, tx, org, &most)
			assert.ErrorIs(t, err, store.ErrInvalid, "%d", most)
		}
		for _, id := range []string{"", strings.Repeat("a", 256)} {
			_, err := store.PauseOrganization(ctx, tx, id)
			assert.ErrorIs(t, err, store.ErrInvalid, "%d bytes", len(id))
		}
	})
	list, err := store.ListOrganizations(t.Context(), b.Pool, "", 0)
	require.NoError(t, err)
	assert.Empty(t, list)
}

// A transaction that posts for an organization holds its documents, its jobs, its configuration
// and, by foreign keys, its row.
func TestPauseWaitsForNoChunk(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Organization(t, b.Pool, org)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "d", 1000))
	chunk, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { assert.NoError(t, chunk.Rollback(context.WithoutCancel(t.Context()))) }()
	for _, stmt := range []string{
		`SELECT FROM daybook.documents FOR UPDATE`,
		`SELECT FROM daybook.accounting_work_queue FOR UPDATE`,
		`SELECT FROM daybook.organizations FOR KEY SHARE`,
		`SELECT daybook.try_use_configurations('{` + org + `}')`,
	} {
		_, err := chunk.Exec(t.Context(), stmt)
		require.NoError(t, err)
	}
	fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		_, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '10s'`)
		require.NoError(t, err)
		for _, change := range []func() (store.Limits, error){
			func() (store.Limits, error) { return store.PauseOrganization(ctx, tx, org) },
			func() (store.Limits, error) { return store.ResumeOrganization(ctx, tx, org) },
			func() (store.Limits, error) { return store.CapOrganization(ctx, tx, org, new(1)) },
		} {
			f, err := change()
			require.NoError(t, err)
			assert.True(t, f.Changed)
		}
	})
}

func TestResumeAndCapWakeWhoWaits(t *testing.T) {
	t.Parallel()
	for key, channel := range map[int]string{1: "daybook_accounting", 2: "daybook_jobs"} {
		t.Run(channel, func(t *testing.T) {
			t.Parallel()
			resumeAndCapWake(t, channel, key)
		})
	}
}

func resumeAndCapWake(t *testing.T, channel string, key int) {
	t.Helper()
	b := setup(t)
	waits, err := pgx.Connect(t.Context(), b.URL)
	require.NoError(t, err)
	defer func() { assert.NoError(t, waits.Close(context.WithoutCancel(t.Context()))) }()
	_, err = waits.Exec(t.Context(), `LISTEN `+channel)
	require.NoError(t, err)
	_, err = waits.Exec(t.Context(), `SELECT pg_advisory_lock(daybook.lock_class('wakers'), $1)`, key)
	require.NoError(t, err)
	// heard counts the wake-ups since the last call.
	heard := func() int {
		_, err := b.Pool.Exec(t.Context(), `NOTIFY `+channel+`, 'end'`)
		require.NoError(t, err)
		for n := 0; ; n++ {
			notification, err := waits.WaitForNotification(t.Context())
			require.NoError(t, err)
			if notification.Payload == "end" {
				return n
			}
		}
	}
	b.pause()
	assert.Zero(t, heard(), "a pause")
	b.resume()
	assert.Equal(t, 1, heard(), "a resumption")
	b.resume()
	assert.Zero(t, heard(), "nothing to resume")
	b.limit(new(2))
	heard()
	b.limit(new(3))
	assert.Equal(t, 1, heard(), "a higher cap")
	b.limit(new(3))
	assert.Zero(t, heard(), "the same cap")
	b.limit(nil)
	assert.Equal(t, 1, heard(), "no cap")
}

func TestOrganizationFlowsCountOpenJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Organization(t, b.Pool, org)
	b.limit(new(7))
	_, err := b.Pool.Exec(t.Context(), `
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint) VALUES ('org_1', 'a', 1), ('org_1', 'b', 1), ('stranger', 'a', 1);
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, state, run_count, last_attempted_at, turn_id, fence, leased_generation, attempt_started_at)
VALUES ('org_1', 'c', 1, 'leased', 1, now(), 't', 1, 0, now());
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, state, finished_at) VALUES ('org_1', 'd', 1, 'completed', now()), ('done', 'd', 1, 'completed', now());
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, state, finished_at, last_error, last_error_code)
VALUES ('org_1', 'e', 1, 'failed', now(), 'e', 'TIMEOUT'), ('org_1', 'f', 1, 'failed', now(), 'e', 'TIMEOUT'), ('org_1', 'g', 1, 'failed', now(), 'e', 'TIMEOUT');
SELECT daybook.enqueue_job('stranger', 'mail', '{}')`)
	require.NoError(t, err)
	list, err := store.ListOrganizations(t.Context(), b.Pool, "", 0)
	require.NoError(t, err)
	assert.Equal(t, []store.OrganizationSummary{
		{
			OrgID: org, Known: true, Name: org,
			OrganizationSettings: store.OrganizationSettings{
				ActiveRuleSet: new(int64(1)), MaxInFlight: new(7),
				Source: "daybook", Hooks: []string{},
			},
			Queues: []store.OpenJobs{{Kind: "accounting", Pending: 2, Leased: 1, Failed: 3}, {Kind: "jobs"}},
		},
		{
			OrgID: "stranger", OrganizationSettings: store.OrganizationSettings{Source: "daybook", Hooks: []string{}},
			Queues: []store.OpenJobs{{Kind: "accounting", Pending: 1}, {Kind: "jobs", Pending: 1}},
		},
	}, list)
}
