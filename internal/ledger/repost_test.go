package ledger_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/moving/sample"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

func (b *bundle) repost(times int) {
	b.t.Helper()
	for range times {
		_, err := store.RepostAccountingJob(b.t.Context(), b.Pool, org, "doc")
		require.NoError(b.t, err)
	}
}

// again asks for the document once more, under the versions that it has.
func (b *bundle) again() {
	b.t.Helper()
	_, err := store.MarkAccountingJobPending(b.t.Context(), b.Pool, org, "doc", nil, 0)
	require.NoError(b.t, err)
}

func (b *bundle) activate(version int64) {
	b.tx(func(ctx context.Context, tx pgx.Tx) {
		_, err := ledgerdb.ActivateRuleSet(ctx, tx, org, version)
		require.NoError(b.t, err)
	})
}

// backAndForth posts the document under the first rule set and under another, and activates the
// first again: posted under that, the document's epoch is above its job's.
func (b *bundle) backAndForth() {
	b.t.Helper()
	fixture.Ready(b.t, b.Pool, fixture.Invoice(org, "doc", 1000))
	b.work()
	other := strings.Replace(string(sample.Rules()), `{when: true, account: "4400"}`, `{when: true, account: "4125"}`, 1)
	require.NotEqual(b.t, string(sample.Rules()), other)
	b.tx(func(ctx context.Context, tx pgx.Tx) {
		_, err := ledgerdb.ApplyRuleSet(ctx, tx, org, "other", other)
		require.NoError(b.t, err)
	})
	b.again()
	b.work()
	b.activate(1)
	b.again()
}

// TestEachRepostPostsAnewOnce reposts a document whose impacts have epochs of all kinds.
func TestEachRepostPostsAnewOnce(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(b *bundle){
		"posted once": func(b *bundle) {
			fixture.Ready(b.t, b.Pool, fixture.Invoice(org, "doc", 1000))
			b.work()
		},
		"an older rule set active again": func(b *bundle) {
			b.backAndForth()
			b.work()
		},
		"the job began anew": func(b *bundle) {
			fixture.Ready(b.t, b.Pool, fixture.Invoice(org, "doc", 1000))
			b.work()
			b.repost(1)
			b.work()
			b.repost(1)
			b.work()
			_, err := b.Pool.Exec(b.t.Context(), `DELETE FROM daybook.accounting_work_queue`)
			require.NoError(b.t, err)
			_, err = store.EnqueueAccountingJob(b.t.Context(), b.Pool, org, "doc", 1, nil, models.PriorityNormal)
			require.NoError(b.t, err)
			b.work()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			before(b)
			n := len(b.impacts("doc"))
			b.again()
			b.work()
			require.Len(t, b.impacts("doc"), n, "without a repost nothing is posted")
			for range 3 {
				b.repost(1)
				assert.Equal(t, 1, b.work().Completed)
				n += 2
				require.Len(t, b.impacts("doc"), n, "reversed and posted")
			}
			b.repost(2)
			b.work()
			b.again()
			b.work()
			assert.Len(t, b.impacts("doc"), n+2, "two that were asked for before the attempt are one")
			assert.EqualValues(t, 1190, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
		})
	}
}

// TestRepostIsKeptThroughAFailedAttempt reposts a document whose next attempt fails.
func TestRepostIsKeptThroughAFailedAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.backAndForth()
	b.work()
	n := len(b.impacts("doc"))
	b.addPeriods(models.Period{StartsOn: march(1), EndsOn: march(31)})
	b.close(march(1))
	b.repost(1)
	assert.Equal(t, 1, b.work().Failed)
	assert.Equal(t, 1, b.policy(models.PolicyFirstOpenDay))
	assert.Equal(t, 1, b.work().Completed)
	assert.Len(t, b.impacts("doc"), n+2)
	b.again()
	b.work()
	assert.Len(t, b.impacts("doc"), n+2)
}

// TestRepostWhileItIsPosted asks for a repost while a transaction posts the document in an epoch
// that the asker cannot see yet.
func TestRepostWhileItIsPosted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.backAndForth()
	n := len(b.impacts("doc"))
	asked := make(chan error, 1)
	var once sync.Once
	b.withAfter(func(context.Context, pgx.Tx, []ledger.Posted) error {
		once.Do(func() {
			go func() {
				_, err := store.RepostAccountingJob(t.Context(), b.Pool, org, "doc")
				asked <- err
			}()
			assert.Eventually(t, func() bool {
				return fixture.Count(t, b.Pool,
					`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 1
			}, pgtest.Patience, 5*time.Millisecond)
		})
		return nil
	}, engine.Options{Direct: true})
	b.work()
	require.NoError(t, <-asked)
	b.work()
	b.work()
	assert.Len(t, b.impacts("doc"), n+4, "once for the rules, once for the repost")
}
