package books_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// What a document states is what its posted version stated: a newer one that cannot be posted
// changes nothing, also when the month is closed in the meantime and when the content returns.
func TestVATOfAVersionThatIsNotPosted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	march, april := books.Month(2026, 3), books.Month(2026, 4)
	require.NoError(t, addPeriods(ctx, b.Pool, org, march, april))
	_, err := books.SetClosedPeriodPolicy(ctx, b.Pool, org, models.PolicyFirstOpenDay)
	require.NoError(t, err)
	write := func(d *models.Document, state models.JobState) {
		t.Helper()
		fixture.Ready(t, b.Pool, d)
		b.work()
		require.Equal(t, state, fixture.Job(t, b.Pool, org, d.ID).State)
	}
	failing := func(net int64) *models.Document {
		d := fixture.Invoice(org, "w1", net)
		d.Content.Payable += 10
		return d
	}
	write(fixture.Invoice(org, "w1", 1000), models.JobCompleted)
	const posted = "out  VAT 19: 1, 1000, 190\nstated_total: 190\n3800: 190\nposted_total: 190\ndifference: 0\n"
	assert.Equal(t, posted, b.vatText(march))
	write(failing(2000), models.JobFailed)
	write(failing(3000), models.JobFailed)
	assert.Equal(t, posted, b.vatText(march), "newer versions failed")

	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, march, books.CloseOptions{Force: true})))
	assert.Equal(t, posted, b.vatText(march), "closed")
	write(fixture.Invoice(org, "w1", 1000), models.JobCompleted)
	assert.Equal(t, posted, b.vatText(march), "confirmed")
	require.NoError(t, second(books.OpenPeriod(ctx, b.Pool, org, march, books.OpenOptions{})))
	assert.Equal(t, posted, b.vatText(march), "opened")
	write(failing(2000), models.JobFailed)
	assert.Equal(t, posted, b.vatText(march), "failed after it was confirmed")
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, march, books.CloseOptions{Force: true})))
	write(fixture.Invoice(org, "w1", 500), models.JobCompleted)
	assert.Equal(t, posted, b.vatText(march), "corrected after its month was closed")
	assert.Equal(t, "out  VAT 19: 0, -500, -95\nstated_total: -95\n3800: -95\nposted_total: -95\ndifference: 0\n", b.vatText(april))
}

// What is written into a posted document without being posted states nothing; nor does a document
// whose row is gone take its taxes along.
func TestVATOfContentThatIsWrittenOnly(t *testing.T) {
	t.Parallel()
	march := books.Month(2026, 3)
	const posted = "out FR VAT 19: 1, 1000, 190\nstated_total: 190\n3800: 190\nposted_total: 190\ndifference: 0\n"
	for _, change := range []string{
		`UPDATE daybook.documents SET content = content - 'taxes' WHERE id = 'a'`,
		`UPDATE daybook.documents SET content = content || '{"taxes": 7}' WHERE id = 'a'`,
		`UPDATE daybook.documents SET content = content || '{"country": "DE"}' WHERE id = 'a'`,
		`UPDATE daybook.documents SET content = '[]' WHERE id = 'a'`,
		`UPDATE daybook.documents SET type = 'credit_note' WHERE id = 'a'`,
		`UPDATE daybook.documents SET direction = 'in' WHERE id = 'a'`,
		`UPDATE daybook.documents SET currency = 'USD' WHERE id = 'a'`,
		`DELETE FROM daybook.documents WHERE id = 'a'`,
	} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			require.NoError(t, addPeriods(t.Context(), b.Pool, org, march))
			d := fixture.Invoice(org, "a", 1000)
			d.Content.Country = "FR"
			fixture.Ready(t, b.Pool, d)
			b.work()
			require.Equal(t, posted, b.vatText(march))
			_, err := b.Pool.Exec(t.Context(), change)
			require.NoError(t, err)
			assert.Equal(t, posted, b.vatText(march))
		})
	}
}

// A version that leads to the same entries is the posted one: the document states what that states.
func TestVATOfAConfirmedVersion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	march := books.Month(2026, 3)
	require.NoError(t, addPeriods(t.Context(), b.Pool, org, march))
	for i, country := range []string{"DE", "FR", "DE", "IT"} {
		d := fixture.Invoice(org, "a", 1000)
		d.Content.Country = country
		fixture.Ready(t, b.Pool, d)
		b.work()
		assert.Equal(t, fmt.Sprintf("out %s VAT 19: 1, 1000, 190\nstated_total: 190\n3800: 190\nposted_total: 190\ndifference: 0\n", country), b.vatText(march), i)
	}
}

// A correction of taxes alone leads to the same entries. In an open month it is what the document states
// from then on; of a closed one it is taken back and stated anew where the correction is posted.
func TestVATOfATaxThatIsCorrectedInAClosedMonth(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	march, april := books.Month(2026, 3), books.Month(2026, 4)
	require.NoError(t, addPeriods(ctx, b.Pool, org, march, april))
	write := func(country string) models.AccountingJob {
		d := fixture.Invoice(org, "a", 1000)
		d.Content.Country = country
		fixture.Ready(t, b.Pool, d)
		b.work()
		return fixture.Job(t, b.Pool, org, "a")
	}
	write("DE")
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, march, books.CloseOptions{})))
	const posted = "out DE VAT 19: 1, 1000, 190\nstated_total: 190\n3800: 190\nposted_total: 190\ndifference: 0\n"
	require.Equal(t, posted, b.vatText(march))

	job := write("FR")
	require.NotNil(t, job.LastErrorCode, "by the policy it fails, as each correction does")
	assert.Equal(t, models.CodePeriodClosed, *job.LastErrorCode)
	assert.Nil(t, write("DE").LastErrorCode, "what it stated then is what is posted")
	require.Len(t, fixture.Impacts(t, b.Pool, org, "a"), 1)

	require.NoError(t, second(books.SetClosedPeriodPolicy(ctx, b.Pool, org, models.PolicyFirstOpenDay)))
	write("FR")
	assert.Equal(t, posted, b.vatText(march))
	const moved = "out FR VAT 19: 1, 1000, 190\nout DE VAT 19: -1, -1000, -190\nstated_total: 0\n3800: 0\nposted_total: 0\ndifference: 0\n"
	assert.ElementsMatch(t, strings.Split(moved, "\n"), strings.Split(b.vatText(april), "\n"))
	write("IT")
	require.Len(t, fixture.Impacts(t, b.Pool, org, "a"), 3, "April is open")
	assert.Contains(t, b.vatText(april), "out IT VAT 19: 1, 1000, 190")
	require.NoError(t, second(books.OpenPeriod(ctx, b.Pool, org, march, books.OpenOptions{})))
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, march, books.CloseOptions{})))
	assert.Equal(t, posted, b.vatText(march), "closed again")
	assert.Empty(t, b.findings())
}

// The same taxes in other words are no correction, which a closed month would refuse.
func TestVATOfATaxThatIsWrittenOtherwiseInAClosedMonth(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	march, april := books.Month(2026, 3), books.Month(2026, 4)
	require.NoError(t, second(books.AddPeriods(ctx, b.Pool, org, []models.Period{march, april}, books.AddPeriodsOptions{})))
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "a", 1000))
	b.work()
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, march, books.CloseOptions{})))
	for _, content := range []string{
		`{"taxes": [{"category": "VAT", "rate": "19", "base": 1000, "amount": 190}]}`,
		`{"taxes": [{"category": "VAT", "rate": "19.0", "base": 1000, "amount": 190, "code": ""}]}`,
		`{"taxes": [{"category": "VAT", "rate_bp": 1900, "base": 1000, "amount": 190, "retained": false}], "country": ""}`,
	} {
		b.tx(func(ctx context.Context, tx pgx.Tx) {
			_, err := tx.Exec(ctx, `UPDATE daybook.documents SET content = content || $1 WHERE id = 'a'`, content)
			require.NoError(t, err)
			require.NoError(t, second(store.MarkDocumentReady(ctx, tx, org, "a", models.PriorityNormal)))
		})
		b.work()
		job := fixture.Job(t, b.Pool, org, "a")
		require.Equal(t, models.JobCompleted, job.State, "%s: %s", content, store.Value(job.LastError))
	}
	assert.Len(t, fixture.Impacts(t, b.Pool, org, "a"), 1)

	for other, same := range map[string]bool{
		`[{"rate": 7, "amount": 7}, {"rate": 19, "amount": 190}]`:                             true,
		`[{"rate": 19, "amount": 100}, {"rate": 7, "amount": 7}, {"rate": 19, "amount": 90}]`: true,
		`[{"rate": 19, "amount": 190, "base": 0}, {"rate": 7, "amount": 7.0}]`:                true,
		`[{"rate": 19, "amount": 190}, {"rate": 7, "amount": 7, "category": "VAT"}]`:          false,
		`[{"rate": 19, "amount": 190}, {"rate": 7, "amount": 8}]`:                             false,
	} {
		var got bool
		require.NoError(t, b.Pool.QueryRow(ctx, `
SELECT daybook.stated_taxes('{"taxes": [{"rate": 19, "amount": 190}, {"rate": 7, "amount": 7}]}') = daybook.stated_taxes(jsonb_build_object('taxes', $1::jsonb))`,
			other).Scan(&got))
		assert.Equal(t, same, got, other)
	}
}

// TestStatedTaxesAreThePostedOnes: the rules post the tax that a document states, so what is stated is
// what is posted, in each month: whatever is written, posted, refused, taken back, closed and opened in
// which order.
func TestStatedTaxesAreThePostedOnes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	months := []models.Period{books.Month(2026, 3), books.Month(2026, 4), books.Month(2026, 5)}
	require.NoError(t, addPeriods(ctx, b.Pool, org, months...))
	_, err := books.SetClosedPeriodPolicy(ctx, b.Pool, org, models.PolicyFirstOpenDay)
	require.NoError(t, err)
	run := 0
	rapid.Check(t, func(r *rapid.T) {
		run++
		for range rapid.IntRange(2, 6).Draw(r, "steps") {
			id := fmt.Sprint(run, "-", rapid.IntRange(1, 2).Draw(r, "document"))
			switch rapid.IntRange(0, 6).Draw(r, "step") {
			case 0, 1:
				fixture.Ready(t, b.Pool, someInvoice(r, id))
			case 2:
				b.try(`UPDATE daybook.documents SET content = content || jsonb_build_object('country', $2::text) WHERE id = $1`,
					id, rapid.SampledFrom([]string{"DE", "FR"}).Draw(r, "written country"))
			case 3:
				b.try(`SELECT daybook.mark_document_not_ready($2, $1)`, id, org)
			case 4:
				b.try(`SELECT daybook.repost_accounting_job($2, $1)`, id, org)
			case 5:
				p := rapid.SampledFrom(months[:2]).Draw(r, "closed")
				require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, p, books.CloseOptions{Force: true})))
			case 6:
				require.NoError(t, second(books.OpenPeriod(ctx, b.Pool, org, rapid.SampledFrom(months[:2]).Draw(r, "opened"), books.OpenOptions{})))
			}
			if rapid.Bool().Draw(r, "work") {
				b.work()
			}
			m := rapid.SampledFrom(months).Draw(r, "reported")
			require.NotContains(t, b.vatText(m), " states ", "a document that states another tax than is posted")
		}
	})
}

// someInvoice is an invoice of a random amount, country and day, which now and then does not balance.
func someInvoice(r *rapid.T, id string) *models.Document {
	d := fixture.Invoice(org, id, rapid.SampledFrom([]int64{100, 1000, 2000}).Draw(r, "net"))
	d.Content.Country = rapid.SampledFrom([]string{"DE", "FR"}).Draw(r, "country")
	d.IssueDate = models.NewDate(2026, time.Month(rapid.IntRange(3, 4).Draw(r, "month")), 10)
	if rapid.Bool().Draw(r, "unbalanced") {
		d.Content.Payable += 10
	}
	return d
}

// try runs a statement that the database may refuse, as there is no such document or job.
func (b *bundle) try(stmt string, args ...any) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), stmt, args...)
	if state := store.SQLState(err); err != nil && state != "DB011" && state != "DB013" {
		require.NoError(b.t, err, stmt)
	}
}

// What Daybook posts of a document that another system has posted is a part of what that states, or
// takes it back: it states nothing, and is shown as a difference.
func TestVATOfADocumentThatIsPostedElsewhere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	march := books.Month(2026, 3)
	require.NoError(t, addPeriods(ctx, b.Pool, org, march))
	_, err := b.Pool.Exec(ctx, `
INSERT INTO daybook.posted_elsewhere (org_id, document_id, document_version, next, posted_on, system, entries)
VALUES ($1, 'a', 1, 'difference', '2026-03-14', 'the legacy ledger',
        '[{"account": "1200", "side": "debit", "amount": 119, "currency": "EUR"}, {"account": "3800", "side": "credit", "amount": 19, "currency": "EUR"},
          {"account": "4400", "side": "credit", "amount": 100, "currency": "EUR"}]')`, org)
	require.NoError(t, err)
	for _, net := range []int64{100, 200} {
		fixture.Ready(t, b.Pool, fixture.Invoice(org, "a", net))
		b.work()
	}
	assert.Equal(t, "stated_total: 0\n3800: 19\nposted_total: 19\ndifference: -19\na states 0, posted 19\n", b.vatText(march))
	b.try(`SELECT daybook.mark_document_deleted($1, 'a')`, org)
	b.work()
	const mirrored = "stated_total: 0\n3800: -19\nposted_total: -19\ndifference: 19\na states 0, posted -19\n"
	assert.Equal(t, mirrored, b.vatText(march))
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, march, books.CloseOptions{})))
	assert.Equal(t, mirrored, b.vatText(march), "closed")
	assert.Empty(t, b.findings())
}
