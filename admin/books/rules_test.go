package books_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/moving/sample"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// sampleWith is the sample rule set with a part of it replaced.
func sampleWith(t *testing.T, old, with string) []byte {
	t.Helper()
	source := string(sample.Rules())
	require.Contains(t, source, old)
	return []byte(strings.ReplaceAll(source, old, with))
}

func preview(t *testing.T, b *bundle, source []byte, o books.PreviewOptions) books.Preview {
	t.Helper()
	rules, err := posting.Compile(source)
	require.NoError(t, err)
	p, err := books.PreviewRules(t.Context(), b.Pool, org, rules, o)
	require.NoError(t, err)
	return p
}

const saleRule = `doc.type == "invoice" && doc.direction == "out"`

func TestPreviewRules(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "posted", 1000))
	b.work()
	_, err := books.ApplyRules(t.Context(), b.Pool, org, sampleWith(t, saleRule, "false && "+saleRule),
		books.ApplyOptions{})
	require.NoError(t, err)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "waits", 1000), fixture.Unbalanced(org, "off"))
	b.work()
	before := b.Dump(t)

	p := preview(t, b, sample.Rules(), books.PreviewOptions{})
	assert.Equal(t, store.SourceDaybook, p.Source)
	assert.Equal(t, new(int64(2)), p.Active)
	assert.Equal(t, []books.FailureCount{{Code: models.CodeNoMatchingRule, Jobs: 2}}, p.Failures)
	require.Len(t, p.Failed, 2)
	byID := map[string]books.Previewed{}
	for _, d := range append(p.Failed, p.Recent...) {
		byID[d.ID] = d
	}
	waits := byID["waits"]
	assert.True(t, waits.ComesBack)
	assert.Equal(t, models.CodeNoMatchingRule, waits.Now.Code)
	require.NotNil(t, waits.Then.Impact)
	assert.Equal(t, "sale", waits.Then.Impact.RuleID)
	assert.Equal(t, models.NewDate(2026, 3, 14), waits.Then.PostingDate)
	assert.False(t, waits.Same())
	assert.Equal(t, models.CodeUnbalanced, byID["off"].Then.Code, "the rule is found, and the document is off")
	require.Len(t, p.Recent, 1)
	assert.Equal(t, models.CodeNoMatchingRule, p.Recent[0].Now.Code, "posted by other rules than the present ones")

	same := preview(t, b, sampleWith(t, saleRule, "false && "+saleRule), books.PreviewOptions{})
	for _, d := range append(same.Failed, same.Recent...) {
		assert.True(t, d.Same(), d.ID)
	}
	assert.Equal(t, before, b.Dump(t), "nothing is written")
}

func TestPreviewRulesIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.ManyReady(t, b.Pool, org, "posted-", 10)
	b.work()
	p := preview(t, b, sampleWith(t, `account: "4400"`, `account: "9999"`), books.PreviewOptions{Recent: 4})
	assert.Len(t, p.Recent, 4)
	assert.Equal(t, []string{"9999"}, p.MissingAccounts)
	assert.Equal(t, models.CodeUnknownAccount, p.Recent[0].Then.Code)

	late := preview(t, b, sample.Rules(), books.PreviewOptions{Recent: 4, Time: 1})
	assert.Empty(t, late.Recent)
	assert.Equal(t, 4, late.Untried)

	b.tx(func(ctx context.Context, tx pgx.Tx) {
		_, err := tx.Exec(ctx, `UPDATE daybook.organizations SET source = 'shop' WHERE id = $1`, org)
		require.NoError(t, err)
	})
	foreign := preview(t, b, sample.Rules(), books.PreviewOptions{})
	assert.Equal(t, "shop", foreign.Source)
	assert.Empty(t, foreign.Recent, "documents of another source are read by its application alone")
}

func TestApplyRulesExpects(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := sampleWith(t, "ruleset: sample", "ruleset: other")
	_, err := books.ApplyRules(t.Context(), b.Pool, org, other, books.ApplyOptions{Expected: new(int64(7))})
	require.ErrorIs(t, err, books.ErrRulesChanged)
	assert.ErrorContains(t, err, "version 1, not 7")
	c, err := books.ApplyRules(t.Context(), b.Pool, org, other, books.ApplyOptions{Expected: new(int64(1))})
	require.NoError(t, err)
	assert.Equal(t, books.Change{OrgID: org, Version: 2, Changed: true, Name: "other", MissingAccounts: []string{}}, c)
}
