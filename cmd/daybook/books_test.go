package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	adminbooks "github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/cmd/daybook/books"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/camel"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
)

func TestAudit(t *testing.T) {
	t.Parallel()
	b := posted(t)
	var sound books.Audited
	b.json(&sound, "audit", "--all-orgs")
	assert.True(t, sound.Sound)
	assert.Equal(t, int64(11), sound.Figures.Documents)
	assert.Contains(t, b.ok("audit", "--org", "es"), "document not posted")
	assert.Equal(t, failure.ExitUsage, b.run("audit").exit)
	assert.Equal(t, failure.ExitUsage, b.run("audit", "--all-orgs", "--org", "es").exit)
	assert.Equal(t, failure.ExitNotFound, b.run("audit", "--org", "unknown").exit)

	_, err := b.Pool.Exec(t.Context(), `DELETE FROM daybook.accounting_work_queue WHERE state = 'failed'`)
	require.NoError(t, err)
	r := b.run("audit", "--all-orgs", "--json")
	assert.Equal(t, failure.ExitFailure, r.exit)
	assert.Contains(t, r.err, "NOT_SOUND")
	var damaged books.Audited
	require.NoError(t, camel.Unmarshal([]byte(r.out), &damaged))
	assert.False(t, damaged.Sound)
	assert.Equal(t, int64(1), damaged.Wrong)
	assert.Contains(t, b.run("audit", "--all-orgs").out, "invoice-2")
}

// TestExplainADocumentOfTheApplicationsOwnTables: it has no row, and in time no job.
func TestExplainADocumentOfTheApplicationsOwnTables(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	fixture.Ready(t, b.Pool, fixture.Invoice("acme", "sale", 1000))
	b.work()
	_, err := b.Pool.Exec(t.Context(), `DELETE FROM daybook.documents`)
	require.NoError(t, err)
	assert.Contains(t, b.ok("explain", "acme", "sale"), "not in daybook.documents")
	_, err = b.Pool.Exec(t.Context(), `UPDATE daybook.organizations SET source = 'shop'`)
	require.NoError(t, err)
	_, err = b.Pool.Exec(t.Context(), `DELETE FROM daybook.accounting_work_queue`)
	require.NoError(t, err)
	text := b.ok("explain", "acme", "sale")
	for _, want := range []string{"in the application's own tables: read from the source shop", "posts, live", "4400"} {
		assert.Contains(t, text, want)
	}
	var e answers.Explanation
	b.json(&e, "explain", "acme", "sale")
	assert.Equal(t, "shop", e.Source)
	assert.Empty(t, e.Content)
	assert.Len(t, e.Impacts, 1)
}

func TestExplain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	fixture.Ready(t, b.Pool, fixture.Invoice("acme", "sale", 1000))
	b.work()
	fixture.Ready(t, b.Pool, fixture.Invoice("acme", "sale", 1000)) // the same again: confirmed
	b.work()
	assert.Contains(t, b.ok("accounting", "repost", "acme", "sale"), "requeued")
	b.work()

	var e answers.Explanation
	b.json(&e, "explain", "acme", "sale")
	require.NotEmpty(t, e.Content)
	require.NotNil(t, e.Posting)
	require.NotNil(t, e.Job)
	assert.Len(t, e.History, 3)
	require.Len(t, e.Impacts, 3)
	require.NotNil(t, e.Posting.ImpactID)
	first, last := e.Impacts[0], e.Impacts[2]
	assert.Equal(t, last.ID, *e.Posting.ImpactID)
	assert.Equal(t, "reverse", e.Impacts[1].Kind)
	assert.Equal(t, int64(1), first.DocumentVersion)
	require.Len(t, first.Confirmations, 1)
	assert.Equal(t, int64(2), first.Confirmations[0].DocumentVersion)
	assert.Equal(t, 1, last.Epoch)
	assert.Equal(t, "sale", last.RuleID)
	assert.Len(t, last.RuleSetSHA256, 64)
	require.Len(t, last.Entries, 3)
	assert.NotEmpty(t, last.Entries[0].RuleLineID)
	text := b.ok("explain", "acme", "sale")
	for _, want := range []string{"posts, live", "reverses", "confirmed for", "epoch", "posting date"} {
		assert.Contains(t, text, want)
	}
	none := b.run("explain", "acme", "nothing")
	assert.Equal(t, failure.ExitNotFound, none.exit)
	assert.Equal(t, "daybook: organization acme has no document nothing: check the id, and its namespace if it has one, such as invoice:42\n", none.err)

	var l answers.EntryList
	b.json(&l, "entries", "--org", "acme", "--document", "sale", "--limit", "1")
	require.Len(t, l.Entries, 1)
	assert.Equal(t, e.Job.ID, l.Entries[0].JobID)
	assert.Positive(t, l.Entries[0].Attempt)
	assert.Equal(t, 1, l.Entries[0].Epoch)
	assert.Equal(t, int64(2), l.Entries[0].DocumentVersion)
}

// A month that is closed before its end is closed all the same, with a note.
func TestPeriodClosedBeforeItsEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	b.ok("periods", "add", "--org", "acme", "--month", "2999-11")
	r := b.run("periods", "close", "--org", "acme", "--month", "2999-11")
	assert.Zero(t, r.exit, r.err)
	assert.Contains(t, r.err, "Note: the period to 2999-11-30 is not over: no document that comes later can be posted there.")
	assert.Equal(t, "2999-11-01 to 2999-11-30: closed\n", r.out)
}

// A year is closed and opened as a whole: all its periods or none. A month that is closed alone
// says what is open before it.
func TestPeriodsOfAYear(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	b.ok("periods", "add", "--org", "acme", "--year", "2025")
	b.ok("periods", "add", "--org", "acme", "--from", "2026-01-01", "--to", "2026-03-31")
	b.ok("periods", "add", "--org", "acme", "--year", "2027")
	r := b.run("periods", "close", "--org", "acme", "--month", "2025-12")
	assert.Zero(t, r.exit)
	assert.Contains(t, r.err,
		"Note: 11 periods before are still open, from 2025-01-01 on: documents can be posted there.")
	assert.Equal(t, "2025-12-01 to 2025-12-31: closed\n", r.out)
	assert.NotContains(t, r.err, "is not over")

	r = b.run("periods", "close", "--org", "acme", "--year", "2025")
	assert.Zero(t, r.exit)
	assert.NotContains(t, r.err, "still open")
	assert.Equal(t, 12, strings.Count(r.out, ": closed\n"))
	states := func() (states string) {
		var list struct{ Periods []models.Period }
		b.json(&list, "periods", "list", "--org", "acme")
		for _, p := range list.Periods {
			states += string(p.State[:1])
		}
		return states
	}
	assert.Equal(t, "ccccccccccccooooooooooooo", states())
	b.ok("periods", "close", "--org", "acme", "--year", "2026")
	assert.Equal(t, "cccccccccccccoooooooooooo", states(), "a quarter of the year")
	var changed struct{ Periods []adminbooks.PeriodChange }
	b.json(&changed, "periods", "open", "--org", "acme", "--year", "2026")
	require.Len(t, changed.Periods, 1)
	assert.Equal(t, models.PeriodOpen, changed.Periods[0].State)

	document := fixture.Invoice("acme", "june", 1000)
	document.IssueDate = models.NewDate(2027, 6, 1)
	fixture.Ready(t, b.Pool, document)
	r = b.run("periods", "close", "--org", "acme", "--year", "2027")
	assert.Equal(t, failure.ExitConflict, r.exit)
	assert.Contains(t, r.err, "2027-06-01")
	assert.Equal(t, "ccccccccccccooooooooooooo", states(), "all of a year or nothing")
}

func TestPeriods(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	b.ok("periods", "add", "--org", "acme", "--year", "2026")
	b.ok("periods", "add", "--org", "acme", "--month", "2024-02")
	b.ok("periods", "add", "--org", "acme", "--from", "2027-01-01", "--to", "2027-03-31")
	var list struct {
		Policy  models.ClosedPeriodPolicy
		Periods []models.Period
	}
	b.json(&list, "periods", "list", "--org", "acme")
	require.Len(t, list.Periods, 14)
	assert.Equal(t, "2024-02-29", list.Periods[0].EndsOn.String())
	assert.Equal(t, models.PolicyFail, list.Policy)

	assert.Contains(t, b.run("periods", "add", "--org", "acme", "--year", "2026").err,
		"Nothing was changed: 12 periods were there already")
	assert.Contains(t, b.run("periods", "open", "--org", "acme", "--month", "2026-03").err,
		"Nothing was changed: the period from 2026-03-01 on is open already.")
	assert.Contains(t, b.run("periods", "policy", "fail", "--org", "acme").err,
		"Nothing was changed: the policy is fail already.")
	assert.Contains(t, b.ok("periods", "close", "--org", "acme", "--month", "2026-03"), "closed")
	assert.Contains(t, b.run("periods", "close", "--org", "acme", "--month", "2026-03").err,
		"Nothing was changed: the period from 2026-03-01 on is closed already.")
	fixture.Ready(t, b.Pool, fixture.Invoice("acme", "march", 1000))
	b.work()
	assert.Equal(t, "failed", b.job("acme", "march").State)
	var opened adminbooks.PeriodChange
	b.json(&opened, "periods", "open", "--org", "acme", "--from", "2026-03-01")
	assert.Equal(t, 1, opened.Returned)
	assert.Equal(t, models.PeriodOpen, opened.State)

	r := b.run("periods", "close", "--org", "acme", "--month", "2026-03")
	assert.Equal(t, failure.ExitConflict, r.exit)
	assert.Contains(t, r.err, "would shut out 1 document that is not posted (0 failed, 1 wait)")
	assert.Contains(t, r.err, "force the closing (--force)")
	r = b.run("periods", "close", "--org", "acme", "--month", "2026-03", "--force")
	assert.Zero(t, r.exit)
	assert.Contains(t, r.err, "The closing shut out 1 document that is not posted")
	b.work()
	var policy struct{ Returned int }
	b.json(&policy, "periods", "policy", "first_open_day", "--org", "acme")
	assert.Equal(t, 1, policy.Returned)
	b.work()
	var e answers.Explanation
	b.json(&e, "explain", "acme", "march")
	require.Len(t, e.Impacts, 1)
	assert.Equal(t, "2026-03-14", e.Impacts[0].DocumentDate)
	assert.Equal(t, "2026-04-01", e.Impacts[0].PostingDate)
	b.ok("audit", "--org", "acme")

	for _, test := range []struct {
		exit int
		args []string
	}{
		{failure.ExitUsage, []string{"add"}},
		{failure.ExitUsage, []string{"add", "--month", "2026-13"}},
		{failure.ExitOK, []string{"add", "--month", "2026-03"}}, // it is there
		{failure.ExitUsage, []string{"add", "--from", "2026-03-01", "--to", "2026-03-30"}},
		{failure.ExitUsage, []string{"add", "--from", "2026-02-27", "--to", "2026-03-30"}}, // overlaps
		{failure.ExitUsage, []string{"add", "--year", "26"}},
		{failure.ExitUsage, []string{"add", "--from", "2028-01-01"}},
		{failure.ExitUsage, []string{"add", "--from", "2028-01-31", "--to", "2028-01-01"}},
		{failure.ExitUsage, []string{"add", "--year", "2028", "--month", "2028-01"}},
		{failure.ExitUsage, []string{"close"}},
		{failure.ExitUsage, []string{"close", "--year", "2026", "--month", "2026-03"}},
		{failure.ExitUsage, []string{"close", "--year", "26"}},
		{failure.ExitNotFound, []string{"close", "--year", "2030"}},
		{failure.ExitUsage, []string{"close", "--month", "2027-01"}}, // a quarter
		{failure.ExitNotFound, []string{"close", "--month", "2030-01"}},
		{failure.ExitNotFound, []string{"open", "--from", "2026-03-02"}},
		{failure.ExitUsage, []string{"policy", "guess"}},
	} {
		r := b.run(append([]string{"periods", test.args[0], "--org", "acme"}, test.args[1:]...)...)
		assert.Equal(t, test.exit, r.exit, "%v: %s", test.args, r.err)
	}
	assert.Contains(t, b.run("periods", "close", "--org", "acme", "--month", "2030-01").err,
		"organization acme has no period that begins on 2030-01-01: `daybook periods list` shows those that it has")
	assert.Equal(t, failure.ExitNotFound, b.run("accounting", "repost", "acme", "nothing").exit)
}

func TestBalancesOfASpan(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, args := range [][]string{{"trial-balance", "--org", "acme"}, {"accounts", "ledger", "1200", "--org", "acme"}} {
		r := b.run(append(args, "--currency", "eur")...)
		assert.Equal(t, failure.ExitUsage, r.exit, args)
		assert.Contains(t, r.err, `--currency "eur": want three capital letters, such as EUR`)
	}
	b.sample("acme")
	for day, id := range map[int]string{1: "first", 2: "second", 3: "third"} {
		d := fixture.Invoice("acme", id, int64(day)*1000)
		d.IssueDate = models.NewDate(2026, 2, 27+day) // February 28, March 1 and 2
		fixture.Ready(t, b.Pool, d)
	}
	b.work()
	var march answers.TrialBalance
	b.json(&march, "trial-balance", "--org", "acme", "--period", "2026-03")
	assert.True(t, march.Balanced)
	require.Len(t, march.Totals, 1)
	assert.Equal(t, "2026-03-01", march.From)
	var receivable answers.AccountBalance
	for _, r := range march.Accounts {
		if r.DebitMinor != "0" {
			receivable = r
		}
	}
	assert.Equal(t, answers.Decimal("11.90"), receivable.Opening)
	assert.Equal(t, answers.Decimal("59.50"), receivable.Debit)
	assert.Equal(t, answers.Decimal("71.40"), receivable.Closing)
	assert.Contains(t, b.ok("trial-balance", "--all-orgs", "--from", "2026-03-02"), "OPENING")
	assert.Equal(t, failure.ExitUsage, b.run("trial-balance", "--all-orgs", "--period", "march").exit)
	assert.Equal(t, failure.ExitUsage,
		b.run("trial-balance", "--all-orgs", "--period", "2026", "--from", "2026-01-01").exit)

	var l books.AccountLedger
	b.json(&l, "accounts", "ledger", receivable.Account, "--org", "acme", "--from", "2026-03-01", "--limit", "1")
	require.Len(t, l.Entries, 1)
	assert.True(t, l.More)
	assert.Equal(t, "second", l.Entries[0].DocumentID)
	assert.Equal(t, answers.Minor("3570"), l.Entries[0].BalanceMinor)
	require.Len(t, l.Balances, 1)
	assert.Equal(t, answers.Decimal("71.40"), l.Balances[0].Closing)
	text := b.ok("accounts", "ledger", receivable.Account, "--org", "acme")
	assert.Contains(t, text, "opening")
	assert.Contains(t, text, "71.40")
	assert.Equal(t, failure.ExitNotFound, b.run("accounts", "ledger", "none", "--org", "acme").exit)
}

func TestAccountsWithCurrencies(t *testing.T) {
	t.Parallel()
	b := setup(t)
	chart := func(text string) string {
		path := filepath.Join(t.TempDir(), "chart.csv")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	assert.Regexp(t, `^ORGANIZATION +RESULT +JOBS RETURNED\nacme +changed +0\n$`,
		b.ok("accounts", "import", chart("code,name,type,currencies\n1200,Bank,asset,EUR USD\n4400,Sales,income,\n"),
			"--org", "acme", "--create"))
	var l struct{ Accounts []models.Account }
	b.json(&l, "accounts", "list", "--org", "acme")
	require.Len(t, l.Accounts, 2)
	assert.Equal(t, models.Currencies{"EUR", "USD"}, l.Accounts[0].Currencies)
	assert.Empty(t, l.Accounts[1].Currencies)
	assert.Contains(t, b.ok("accounts", "list", "--org", "acme"), "EUR USD")
	for _, text := range []string{
		"code,name,type,currencies\n1200,Bank,asset,euro\n",
		"code,name,type,currencies\n1200,Bank,asset\n",
		"code,name,type,currency\n1200,Bank,asset,EUR\n",
	} {
		assert.Equal(t, failure.ExitUsage, b.run("accounts", "import", chart(text), "--org", "acme").exit, text)
	}
}

func TestAccountsImportChangesTypesWhenTold(t *testing.T) {
	t.Parallel()
	b := posted(t)
	path := write(t, filepath.Join(t.TempDir(), "chart.csv"), "code,name,type\n1200,Accounts receivable,expense\n")
	r := b.run("accounts", "import", path, "--org", "de")
	assert.Equal(t, failure.ExitConflict, r.exit, r.err)
	assert.Regexp(t, `account 1200 from asset to expense, with a balance of -?[0-9.]+ EUR`, r.err)
	assert.Contains(t, r.err, "--change-types")
	assert.Regexp(t, `de +1200 +asset +expense +-?[0-9.]+ +EUR`,
		b.ok("accounts", "import", path, "--org", "de", "--change-types"))
	assert.NotContains(t, b.ok("accounts", "import", path, "--org", "de", "--change-types"), "1200")
}

// A year is one for every statement: its days, and of the balance sheet its last one.
func TestStatementsOfAYear(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Organization(t, b.Pool, "acme")
	for _, kind := range []string{"balance", "income", "cash", "vat"} {
		shown := b.ok("statement", kind, "--org", "acme", "--year", "2026", "--format", "json")
		assert.Contains(t, shown, `"2026-12-31"`, kind)
		assert.Equal(t, failure.ExitUsage, b.run("statement", kind, "--org", "acme", "--year", "26").exit, kind)
	}
	assert.Equal(t, failure.ExitUsage,
		b.run("statement", "income", "--org", "acme", "--year", "2026", "--period", "2026-03").exit)
	assert.Equal(t, failure.ExitUsage,
		b.run("statement", "balance", "--org", "acme", "--year", "2026", "--on", "2026-03-31").exit)
}
