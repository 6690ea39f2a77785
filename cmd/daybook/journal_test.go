package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
)

// TestJournalCommands writes, lists and deletes a journal.
func TestJournalCommands(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Organization(t, b.Pool, "acme")
	put := func(args ...string) []string {
		return append([]string{"journal", "put", "--org", "acme", "--date", "2026-03-31", "--reason", "Accrued rent", "--by", "clerk"}, args...)
	}
	assert.Contains(t, b.ok(put("--dry-run", "6300=1,234.50EUR", "1600=-1234.50EUR")...), "dry run, nothing is written: it would be posted on 2026-03-31")
	assert.Contains(t, b.ok(put("--id", "rent", "--currency", "EUR", "--dimensions", "cost_centre=office", "6300=500.00", "1600=-500")...),
		"journal journal:rent written, to be posted on 2026-03-31")
	assert.Contains(t, b.ok(put("--id", "rent", "--currency", "EUR", "--dimensions", "cost_centre=office", "6300=500", "1600=-500")...),
		"nothing was changed")
	b.work()
	assert.Contains(t, b.ok("entries", "--org", "acme"), "cost_centre=office")
	assert.Contains(t, b.ok("explain", "acme", "journal:rent"), "Accrued rent, by clerk")
	assert.Contains(t, b.ok("journal", "list", "--org", "acme"), "500.00 EUR")
	assert.Contains(t, b.ok("journal", "delete", "acme", "journal:rent"), "deleted; what is posted of it will be reversed")
	b.work()
	assert.Contains(t, b.ok("journal", "list", "--org", "acme"), "deleted")
	assert.Contains(t, b.ok("explain", "acme", "journal:rent"), "reverses")

	for _, args := range [][]string{
		put("6300=5", "1600=-5"), put("6300", "1600"), put("6300=5x", "1600=-5", "--currency", "EUR"),
		put("6300=1,000", "1600=-1,000", "--currency", "EUR"), put("6300=5EUR"),
	} {
		assert.Equal(t, failure.ExitUsage, b.run(args...).exit, "%v", args)
	}
	r := b.run(put("6300=5EUR", "1600=-6EUR")...)
	assert.Contains(t, r.err, "UNBALANCED")
	assert.Contains(t, r.err, "credits are 1.00 EUR more than debits")
	b.ok("rates", "own", "EUR", "--org", "acme")
	assert.Contains(t, b.ok(put("--dry-run", "6300=5", "1600=-5")...), "it would be posted on 2026-03-31")
	assert.Equal(t, failure.ExitNotFound, b.run("journal", "delete", "acme", "nothing").exit)
}
