package console_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/moving/sample"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// rules activates rules of an organization.
func (s *site) rules(org, source string) {
	s.t.Helper()
	fixture.Tx(s.t, s.Pool, func(ctx context.Context, tx pgx.Tx) {
		_, err := ledgerdb.ApplyRuleSet(ctx, tx, org, "sample", source)
		require.NoError(s.t, err)
	})
}

// click goes to the first link of a page whose text holds something.
func (s *site) click(body, text string) string {
	s.t.Helper()
	found := links(body, text)
	require.NotEmpty(s.t, found, "there is no link %q", text)
	return s.see(found[0])
}

// A person on call finds a failed job from the overview in three clicks, reads why, mends the rule,
// and sees the job come back.
func TestFailedJobIsFoundInThreeClicks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	fixture.Organization(t, s.Pool, "acme")
	const row = `    - {when: true, account: "4400"}`
	whole := string(sample.Rules())
	require.Contains(t, whole, row)
	s.rules("acme", strings.Replace(whole, row, "", 1))
	s.document("acme", "inv-1")
	queuetest.DrainAccounting(t, s.Pool, queuetest.AccountingOptions{})

	groups := s.click(s.see("/console/"), "Dead letters")
	assert.Contains(t, groups, "NO_MATCHING_RULE")
	list := s.click(groups, "accounting")
	job := s.click(list, "inv-1")
	for _, says := range []string{
		"It is a dead letter after 1 attempt", "No rule, or no row of an account map, matches the document.",
		"has no row for line 1", "the job comes back by itself", "1 failed",
	} {
		assert.Contains(t, job, says)
	}
	require.NotEmpty(t, links(job, "Mend the rules"))

	s.rules("acme", whole)
	id := fixture.Job(t, s.Pool, "acme", "inv-1").ID
	job = s.see("/console/accounting/" + id)
	assert.Contains(t, job, "waits for a worker", "activating the rules brings it back")
	queuetest.DrainAccounting(t, s.Pool, queuetest.AccountingOptions{})
	job = s.see("/console/accounting/" + id)
	assert.Contains(t, job, "It is completed")
	assert.Contains(t, job, "posts the document now")
	assert.Contains(t, job, "119.00", "its entries are shown")
	assert.NotContains(t, s.see("/console/dead-letters"), "NO_MATCHING_RULE")
	s.click(job, "inv-1")
}
