package ledger_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// invoiceElsewhere is what another system posts of an invoice of the fixture.
func invoiceElsewhere(net int64) []models.EntryElsewhere {
	if net == 0 {
		return []models.EntryElsewhere{}
	}
	tax := net * 19 / 100
	return []models.EntryElsewhere{
		{Account: "1200", Side: models.Debit, Amount: net + tax, Currency: "EUR"},
		{Account: "3800", Side: models.Credit, Amount: tax, Currency: "EUR"},
		{Account: "4400", Side: models.Credit, Amount: net, Currency: "EUR"},
	}
}

// elsewhere puts on record that another system has posted a version of a document; entries nil:
// they are not known.
func (b *bundle) elsewhere(org, document string, version int64, next models.NextPosting,
	entries []models.EntryElsewhere,
) {
	b.t.Helper()
	var list *string
	if entries != nil {
		text, err := json.Marshal(entries)
		require.NoError(b.t, err)
		list = new(string(text))
	}
	_, err := b.Pool.Exec(b.t.Context(), `
INSERT INTO daybook.posted_elsewhere (org_id, document_id, document_version, next, entries, posted_on, system)
VALUES ($1, $2, $3, $4, $5, '2026-03-01', 'the legacy ledger')`, org, document, version, next, list)
	require.NoError(b.t, err)
}

// decide decides about a document that is posted elsewhere.
func (b *bundle) decide(document, post string) error {
	_, err := ledgerdb.DecideElsewhere(b.t.Context(), b.Pool, org, document, post)
	return err
}

// balances are those of an organization by account, with what is posted elsewhere.
func (b *bundle) balances(org string, elsewhere []models.EntryElsewhere) map[string]int64 {
	sums := map[string]int64{}
	for _, account := range []string{"1200", "3800", "4400"} {
		sums[account] = fixture.Balance(b.t, b.Pool, org, account, "EUR")
	}
	for _, e := range elsewhere {
		if e.Side == models.Credit {
			e.Amount = -e.Amount
		}
		sums[e.Account] += e.Amount
	}
	return sums
}

// due makes every open job of an organization due now.
func (b *bundle) due(org string) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(),
		`UPDATE daybook.accounting_work_queue SET ready_at = clock_timestamp() WHERE org_id = $1 AND state = 'pending'`,
		org)
	require.NoError(b.t, err)
}

// TestBothLedgersTogetherHoldTheDocument changes, retracts, deletes and reposts a document that
// another system has posted, in random order. After each step what both systems have posted is what
// Daybook alone posts of the same steps, and asking again posts nothing.
func TestBothLedgersTogetherHoldTheDocument(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := 0
	nets := []int64{0, 1, 999, 1000, 250_000}
	rapid.Check(t, func(rt *rapid.T) {
		run++
		here, alone := fmt.Sprint("both-", run), fmt.Sprint("alone-", run)
		fixture.Organization(t, b.Pool, here)
		fixture.Organization(t, b.Pool, alone)
		first := rapid.SampledFrom(nets).Draw(rt, "elsewhere")
		posted := invoiceElsewhere(first)
		// What is posted elsewhere is of version 0, or of the first version that Daybook hears of.
		version := rapid.Int64Range(0, 1).Draw(rt, "version elsewhere")
		b.elsewhere(here, "doc", version, models.NextDifference, posted)
		if version == 1 {
			fixture.Ready(t, b.Pool, fixture.Invoice(here, "doc", first), fixture.Invoice(alone, "doc", first))
			b.work()
			require.Equal(rt, b.balances(alone, nil), b.balances(here, posted))
			require.Empty(rt, fixture.Impacts(t, b.Pool, here, "doc"), "the version that is posted elsewhere posts nothing")
		}
		deleted := false
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			action := rapid.IntRange(0, 5).Draw(rt, "action")
			net := rapid.SampledFrom(nets).Draw(rt, "net")
			for _, org := range []string{here, alone} {
				switch known := fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.documents WHERE org_id = $1`, org) > 0; {
				case !known || action <= 2:
					b.tx(func(ctx context.Context, tx pgx.Tx) {
						_, err := tx.Exec(ctx, `UPDATE daybook.documents SET deleted_at = NULL WHERE org_id = $1`, org)
						require.NoError(t, err)
					})
					fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", net))
					deleted = false
				case action == 3:
					b.tx(func(ctx context.Context, tx pgx.Tx) {
						_, err := store.MarkDocumentNotReady(ctx, tx, org, "doc")
						require.NoError(t, err)
					})
				case action == 4:
					b.tx(func(ctx context.Context, tx pgx.Tx) {
						_, err := store.MarkDocumentDeleted(ctx, tx, org, "doc")
						require.NoError(t, err)
					})
					deleted = true
				case !deleted:
					_, err := store.RepostAccountingJob(t.Context(), b.Pool, org, "doc")
					require.NoError(t, err)
				}
			}
			b.work()
			require.Equal(rt, b.balances(alone, nil), b.balances(here, posted))
			before := len(fixture.Impacts(t, b.Pool, here, "doc"))
			b.due(here)
			b.work()
			require.Len(rt, fixture.Impacts(t, b.Pool, here, "doc"), before, "asked again, nothing is posted")
		}
		report, err := ledger.Audit(t.Context(), b.Pool, nil, audit.Options{OrgID: here})
		require.NoError(rt, err)
		require.Zero(rt, report.Wrong(), "%+v", report.Checks)
	})
}

// TestDeletedTwice deletes a document that is posted elsewhere once more, after its deletion was
// posted: that changes nothing.
func TestDeletedTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.elsewhere(org, "doc", 1, models.NextDifference, invoiceElsewhere(1000))
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
	b.work()
	for range 2 {
		_, err := store.MarkDocumentDeleted(t.Context(), b.Pool, org, "doc")
		require.NoError(t, err)
		b.work()
		assert.Len(t, b.impacts("doc"), 1, "the mirror of what is posted elsewhere")
	}
	report, err := ledger.Audit(t.Context(), b.Pool, nil, audit.Options{})
	require.NoError(t, err)
	assert.Zero(t, report.Wrong(), "%+v", report.Checks)
}

// TestTheNextVersionWaits until a person decides, in each of the three ways.
func TestTheNextVersionWaits(t *testing.T) {
	t.Parallel()
	for post, want := range map[string]int64{"difference": 1190, "full": 2380, "nothing": 0} {
		t.Run(post, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.elsewhere(org, "doc", 1, models.NextWait, invoiceElsewhere(1000))
			fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
			assert.Equal(t, 1, b.work().Completed, "the version that is posted elsewhere")
			fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 2000))
			assert.Equal(t, 1, b.work().Failed)
			job := fixture.Job(t, b.Pool, org, "doc")
			assert.Equal(t, models.CodePostedElsewhere, *job.LastErrorCode)
			assert.Contains(t, *job.LastError, "daybook accounting elsewhere org_1 doc --post")
			assert.Empty(t, b.impacts("doc"))

			require.NoError(t, b.decide("doc", post))
			assert.Equal(t, 1, b.work().Completed)
			assert.Equal(t, want, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
			report, err := audit.Run(t.Context(), b.Pool, audit.Options{})
			require.NoError(t, err)
			assert.Zero(t, report.Wrong(), "%+v", report.Checks)
		})
	}
}

// TestDecisionsThatAreRefused change nothing.
func TestDecisionsThatAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "here", 1000), fixture.Invoice(org, "both", 1000),
		fixture.Invoice(org, "unknown", 1000))
	b.work()
	b.elsewhere(org, "both", 0, models.NextWait, invoiceElsewhere(1000))
	b.elsewhere(org, "unknown", 0, models.NextWait, nil)
	require.ErrorIs(t, b.decide("nowhere", "full"), store.ErrJobNotFound)
	require.ErrorIs(t, b.decide("here", "full"), ledgerdb.ErrNotPostedElsewhere)
	require.ErrorIs(t, b.decide("both", "half"), store.ErrInvalid)
	require.ErrorIs(t, b.decide("unknown", "difference"), store.ErrInvalid, "its entries are not known")
	require.ErrorIs(t, b.decide("both", "nothing"), store.ErrInvalid, "Daybook has posted it")

	// Both systems have posted it: the difference sets that right.
	require.NoError(t, b.decide("both", "difference"))
	assert.Equal(t, 1, b.work().Completed)
	assert.Len(t, b.impacts("both"), 3)
	assert.Zero(t, b.balances(org, nil)["1200"]-2*1190, "what Daybook posts of both comes to nothing")
}

// TestWhatIsPostedElsewhereIsHeldToTheChart fails a difference whose mirror the chart refuses.
func TestWhatIsPostedElsewhereIsHeldToTheChart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	entries := invoiceElsewhere(1000)
	entries[0].Account = "8888"
	b.elsewhere(org, "doc", 1, models.NextDifference, entries)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000), fixture.Invoice(org, "doc", 2000))
	assert.Equal(t, 1, b.work().Failed)
	job := fixture.Job(t, b.Pool, org, "doc")
	assert.Equal(t, models.CodeUnknownAccount, *job.LastErrorCode)
	assert.Contains(t, *job.LastError, "8888")

	b.tx(func(ctx context.Context, tx pgx.Tx) {
		_, err := ledgerdb.PutAccounts(ctx, tx, org, []models.Account{{Code: "8888", Type: models.AccountAsset}}, nil)
		require.NoError(t, err)
		_, err = store.MarkAccountingJobPending(ctx, tx, org, "doc", nil, 0)
		require.NoError(t, err)
	})
	assert.Equal(t, 1, b.work().Completed)
	assert.EqualValues(t, -1190, fixture.Balance(t, b.Pool, org, "8888", "EUR"))
	assert.EqualValues(t, 2380, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
}
