package migrations_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
)

// chart makes two organizations with the same two accounts.
const chart = `
INSERT INTO daybook.organizations (id) VALUES ('o'), ('p');
INSERT INTO daybook.accounts (org_id, code, type) VALUES ('o', '1200', 'asset'), ('o', '4400', 'income'), ('p', '1200', 'asset'), ('p', '4400', 'income')`

// impact is an INSERT of impacts of document d, numbered by seq from 1, with the kinds and numbers
// of entries that are given.
func impact(id, seq int, kind string, entries int) string {
	return fmt.Sprintf(`
INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, document_date, posting_date, entry_count, job_id, attempt)
VALUES (%d, 'o', 'd', 1, %d, '%s', '2026-03-14', '2026-03-14', %d, 'j', 1)`, id, seq, kind, entries)
}

// line is one row of entries.
func line(impact, n int, account, side string, amount int64, currency string) string {
	return fmt.Sprintf(`(%d, %d, 'o', '%s', '%s', %d, '%s')`, impact, n, account, side, amount, currency)
}

func entries(lines ...string) string {
	return `INSERT INTO daybook.entries (impact_id, line_no, org_id, account_code, side, amount_minor, currency) VALUES ` + strings.Join(lines, ", ")
}

// posting inserts impacts and entries in one statement, as they must be.
func posting(entries string, impacts ...string) string {
	var b strings.Builder
	for i, m := range impacts {
		fmt.Fprintf(&b, "%s i%d AS (%s)", []string{"WITH", ","}[min(i, 1)], i, m)
	}
	return b.String() + entries
}

func assertState(t *testing.T, name, state string, err error) {
	t.Helper()
	if state == "" {
		assert.NoError(t, err, name)
		return
	}
	var pg *pgconn.PgError
	if assert.ErrorAs(t, err, &pg, name) {
		assert.Equal(t, state, pg.Code, "%s: %s", name, pg.Message)
	}
}

const (
	debit, credit = "debit", "credit"
	cash, sales   = "1200", "4400"
	balanced      = ""
	unbalanced    = "DB001"
	incomplete    = "DB002"
	noAccount     = "DB003"
	appendOnly    = "DB004"
	notMirror     = "DB006"
	// checkViolation is PostgreSQL's own.
	checkViolation = "23514"
	notUnique      = "23505"
)

func TestEntriesAreCheckedAsAWhole(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	two := entries(line(1, 1, cash, debit, 10, "EUR"), line(1, 2, sales, credit, 10, "EUR"))
	one := impact(1, 1, "post", 2)
	back, reversal := entries(line(2, 1, cash, credit, 10, "EUR"), line(2, 2, sales, debit, 10, "EUR")),
		impact(2, 2, "reverse", 2)
	for _, c := range []struct {
		name, state string
		stmts       []string
	}{
		{"two that balance", balanced, []string{posting(two, one)}},
		{"two currencies that balance", balanced, []string{posting(entries(
			line(1, 1, cash, debit, 10, "EUR"), line(1, 2, sales, credit, 10, "EUR"), line(1, 3, cash, debit, 7, "JPY"),
			line(1, 4, sales, credit, 7, "JPY")), impact(1, 1, "post", 4))}},
		{"two impacts in one statement", balanced, []string{posting(entries(
			line(1, 1, cash, debit, 10, "EUR"), line(1, 2, sales, credit, 10, "EUR"), line(2, 1, cash, credit, 10, "EUR"),
			line(2, 2, sales, debit, 10, "EUR")), one, impact(2, 2, "reverse", 2))}},
		{"the largest amounts", balanced, []string{posting(entries(
			line(1, 1, cash, debit, 9223372036854775807, "EUR"), line(1, 2, sales, credit, 9223372036854775807, "EUR"),
			line(1, 3, cash, debit, 9223372036854775807, "EUR"), line(1, 4, sales, credit, 9223372036854775807, "EUR")),
			impact(1, 1, "post", 4))}},
		{"no entries", balanced, []string{impact(1, 1, "post", 0)}},

		{
			"off by one", unbalanced,
			[]string{posting(entries(line(1, 1, cash, debit, 10, "EUR"), line(1, 2, sales, credit, 9, "EUR")), one)},
		},
		{
			"off by one, in credit", unbalanced,
			[]string{posting(entries(line(1, 1, cash, debit, 9, "EUR"), line(1, 2, sales, credit, 10, "EUR")), one)},
		},
		{
			"the same side twice", unbalanced,
			[]string{posting(entries(line(1, 1, cash, debit, 10, "EUR"), line(1, 2, sales, debit, 10, "EUR")), one)},
		},
		{
			"balanced only across currencies", unbalanced,
			[]string{posting(entries(line(1, 1, cash, debit, 10, "EUR"), line(1, 2, sales, credit, 10, "USD")), one)},
		},
		{
			"balanced only across impacts", unbalanced,
			[]string{posting(entries(line(1, 1, cash, debit, 10, "EUR"), line(2, 1, sales, credit, 10, "EUR")),
				impact(1, 1, "post", 1), impact(2, 2, "reverse", 1))},
		},
		{"one after the other", unbalanced, []string{posting(entries(line(1, 1, cash, debit, 10, "EUR")), one)}},
		{"sums beyond int64", unbalanced, []string{posting(entries(
			line(1, 1, cash, debit, 9223372036854775807, "EUR"), line(1, 2, cash, debit, 9223372036854775807, "EUR"),
			line(1, 3, sales, credit, 5, "EUR")), impact(1, 1, "post", 3))}},

		{"fewer than announced", incomplete, []string{posting(two, impact(1, 1, "post", 3))}},
		{"more than announced", incomplete, []string{posting(two, impact(1, 1, "post", 1))}},
		{"an impact without its entries", incomplete, []string{one}},
		{"none announced", incomplete, []string{posting(two, impact(1, 1, "post", 0))}},
		{"of no impact", incomplete, []string{two}},
		{"of another organization's impact", incomplete, []string{posting(strings.ReplaceAll(two, "'o'", "'p'"), one)}},
		{"of two organizations", incomplete, []string{posting(strings.Replace(two, "'o'", "'p'", 1), one)}},
		{
			"of two organizations, the impact of the other one", incomplete,
			[]string{posting(strings.Replace(two, "'o'", "'p'", 1), strings.Replace(one, "'o'", "'p'", 1))},
		},
		{"added later under the same numbers", notUnique, []string{posting(two, one), two}},

		{
			"an account that is not in the chart", noAccount,
			[]string{posting(entries(line(1, 1, cash, debit, 10, "EUR"), line(1, 2, "9999", credit, 10, "EUR")), one)},
		},

		{"an account of another organization", noAccount, []string{
			`INSERT INTO daybook.accounts (org_id, code, type) VALUES ('p', '9999', 'asset')`,
			posting(entries(line(1, 1, cash, debit, 10, "EUR"), line(1, 2, "9999", credit, 10, "EUR")), one),
		}},
		{"a currency that the account does not take", noAccount, []string{
			`UPDATE daybook.accounts SET currencies = '{USD,GBP}' WHERE code = '1200'`, posting(two, one),
		}},

		{"a reversal, and what is posted instead", balanced, []string{posting(two, one), posting(entries(
			line(2, 1, cash, credit, 10, "EUR"), line(2, 2, sales, debit, 10, "EUR"), line(3, 1, cash, debit, 12, "EUR"),
			line(3, 2, sales, credit, 12, "EUR")), reversal, impact(3, 3, "post", 2))}},
		{"a reversal whose currency the account no longer takes", balanced, []string{
			posting(two, one), `UPDATE daybook.accounts SET currencies = '{USD,GBP}'`, posting(back, reversal),
		}},
		{
			"a reversal whose account is gone", balanced,
			[]string{posting(two, one), `DELETE FROM daybook.accounts WHERE code = '1200'`, posting(back, reversal)},
		},
		{
			"a reversal of another amount", notMirror,
			[]string{posting(two, one), posting(strings.ReplaceAll(back, "10", "9"), reversal)},
		},
		{
			"a reversal on the same sides", notMirror,
			[]string{posting(two, one), posting(strings.ReplaceAll(two, "(1, ", "(2, "), reversal)},
		},
		{"a reversal to another account", notMirror, []string{
			`UPDATE daybook.accounts SET currencies = '{USD}' WHERE code = '1200'`,
			posting(entries(line(1, 1, sales, credit, 10, "EUR"), line(1, 2, sales, debit, 10, "EUR")), one),
			posting(back, reversal),
		}},
		{"a reversal with fewer lines", notMirror, []string{posting(two, one), impact(2, 2, "reverse", 0)}},

		{
			"an amount of nothing", checkViolation,
			[]string{posting(entries(line(1, 1, cash, debit, 0, "EUR"), line(1, 2, sales, credit, 0, "EUR")), one)},
		},
		{
			"a negative amount", checkViolation,
			[]string{posting(entries(line(1, 1, cash, debit, -1, "EUR"), line(1, 2, sales, credit, -1, "EUR")), one)},
		},
		{
			"line 0", checkViolation,
			[]string{posting(entries(line(1, 0, cash, debit, 1, "EUR"), line(1, 1, sales, credit, 1, "EUR")), one)},
		},
		{
			"a currency of four letters", checkViolation,
			[]string{posting(entries(line(1, 1, cash, debit, 1, "EURO"), line(1, 2, sales, credit, 1, "EURO")), one)},
		},
	} {
		assertState(t, c.name, c.state, attempt(t, db, append([]string{chart}, c.stmts...)...))
	}
}

// An impact is complete once its entries are inserted: numbers beyond its own are not free for
// more, however well they balance.
func TestEntriesCannotBeAddedLater(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	one := impact(1, 1, "post", 2)
	for _, c := range []struct {
		name  string
		stmts []string
	}{
		{"after the impact's own", []string{
			posting(entries(line(1, 1, cash, debit, 10, "EUR"), line(1, 2, sales, credit, 10, "EUR")), one),
			entries(line(1, 3, cash, debit, 5, "EUR"), line(1, 4, sales, credit, 5, "EUR")),
		}},
		{"into a gap", []string{posting(entries(line(1, 1, cash, debit, 10, "EUR"), line(1, 3, sales, credit, 10, "EUR")),
			one)}},
	} {
		assertState(t, c.name, incomplete, attempt(t, db, append([]string{chart}, c.stmts...)...))
	}
}

// The tests run as the owner of the tables.
func TestPostingsAreAppendOnly(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	posted := []string{
		chart,
		posting(entries(line(1, 1, cash, debit, 10, "EUR"), line(1, 2, sales, credit, 10, "EUR")), impact(1, 1, "post", 2)),
	}
	for _, stmt := range []string{
		`UPDATE daybook.impacts SET rule_id = 'x'`,
		`UPDATE daybook.impacts SET rule_id = 'x' WHERE false`,
		`DELETE FROM daybook.impacts`,
		`TRUNCATE daybook.impacts CASCADE`,
		`UPDATE daybook.entries SET amount_minor = 11`,
		`DELETE FROM daybook.entries WHERE line_no = 1`,
		`TRUNCATE daybook.entries`,
		entries(line(1, 1, cash, debit, 10, "EUR")) + ` ON CONFLICT (impact_id, line_no) DO UPDATE SET amount_minor = 11`,
		`WITH gone AS (DELETE FROM daybook.entries RETURNING 1) SELECT count(*) FROM gone`,
	} {
		assertState(t, stmt, appendOnly, attempt(t, db, append(posted, stmt)...))
	}
}

func TestChainOfImpacts(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const alternates, gap, once = "chain_alternates", "chain_has_no_gap", "impacts_org_id_document_id_seq_key"
	for _, c := range []struct {
		name, refuses string
		stmts         []string
	}{
		{"post, reverse, post", "", []string{impact(1, 1, "post", 0), impact(2, 2, "reverse", 0), impact(3, 3, "post", 0)}},
		{"reverse first", alternates, []string{impact(1, 1, "reverse", 0)}},
		{"post twice", alternates, []string{impact(1, 1, "post", 0), impact(2, 2, "post", 0)}},
		{
			"reverse twice", alternates,
			[]string{impact(1, 1, "post", 0), impact(2, 2, "reverse", 0), impact(3, 3, "reverse", 0)},
		},
		{"a gap", gap, []string{impact(1, 1, "post", 0), impact(2, 3, "post", 0)}},
		{"not from 1", gap, []string{impact(1, 2, "reverse", 0)}},
		{"one place twice", once, []string{impact(1, 1, "post", 0), impact(2, 1, "post", 0)}},
		{"place 0", "impacts_seq_check", []string{impact(1, 0, "reverse", 0)}},
		{
			"another document's chain", gap,
			[]string{impact(1, 1, "post", 0), strings.ReplaceAll(impact(2, 2, "reverse", 0), "'d'", "'e'")},
		},
		{"a negative number of entries", "impacts_entry_count_check", []string{impact(1, 1, "post", -1)}},
	} {
		assertRefused(t, c.name, c.refuses, attempt(t, db, c.stmts...))
	}
}

// The impact before one has to be committed, or the transaction's own: another transaction may end
// otherwise.
func TestChainsAreExtendedOneAtATime(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	other, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = other.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = other.Exec(t.Context(), impact(1, 1, "post", 0))
	require.NoError(t, err)
	assertRefused(t, "beside another transaction", "chain_has_no_gap", attempt(t, db, impact(2, 2, "reverse", 0)))
	require.NoError(t, other.Commit(t.Context()))
	assertRefused(t, "after it", "", attempt(t, db, impact(2, 2, "reverse", 0)))
	backwards := impact(4, 3, "post", 0) + `, (3, 'o', 'd', 1, 2, 'reverse', '2026-03-14', '2026-03-14', 0, 'j', 1)`
	assertRefused(t, "in one statement, in any order", "", attempt(t, db, backwards))
}

// A version is posted once under a rule set and epoch, whether the document's first posting or a
// later one has done that.
func TestVersionIsPostedOnce(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	// impacts are those of a document, each of a version, rule set and epoch.
	impacts := func(keys ...string) (stmts []string) {
		for i, key := range keys {
			seq, kind, columns := i+1, "post", "1, 1, 0"
			if key == "" {
				kind = "reverse"
			} else {
				columns = key
			}
			stmts = append(stmts, fmt.Sprintf(`
INSERT INTO daybook.impacts (id, org_id, document_id, seq, kind, document_version, rule_set_version, epoch, document_date, posting_date, entry_count, job_id, attempt)
VALUES (%d, 'o', 'd', %d, '%s', %s, '2026-03-14', '2026-03-14', 0, 'j', 1)`, seq, seq, kind, columns))
		}
		return stmts
	}
	const once = "impacts_once"
	for _, c := range []struct {
		name, refuses string
		stmts         []string
	}{
		{"another version", "", impacts("1, 1, 0", "", "2, 1, 0")},
		{"another rule set", "", impacts("1, 1, 0", "", "1, 2, 0")},
		{"another epoch", "", impacts("1, 1, 0", "", "1, 1, 1")},
		{"no rule set", "", impacts("1, NULL, 0", "", "1, NULL, 0")},
		{"as the first", once, impacts("1, 1, 0", "", "1, 1, 0")},
		{"as the first, after another one", once, impacts("1, 1, 0", "", "2, 1, 0", "", "1, 1, 0")},
		{"as the second", once, impacts("1, 1, 0", "", "2, 1, 0", "", "2, 1, 0")},
		{
			"as the first of another document", "",
			append(impacts("1, 1, 0"),
				strings.NewReplacer("VALUES (1", "VALUES (2", "'d'", "'e'").Replace(impacts("1, 1, 0")[0])),
		},
	} {
		assertRefused(t, c.name, c.refuses, attempt(t, db, c.stmts...))
	}

	// Another transaction's first posting is compared with, also where it has just committed.
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable} {
		first, err := db.Pool.Begin(t.Context())
		require.NoError(t, err)
		later, err := db.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
		require.NoError(t, err)
		_, err = later.Exec(t.Context(), `SELECT count(*) FROM daybook.impacts`)
		require.NoError(t, err)
		all := impacts("1, 1, 0", "", "1, 1, 0")
		for _, stmt := range all[:2] {
			_, err = first.Exec(t.Context(), stmt)
			require.NoError(t, err)
		}
		require.NoError(t, first.Commit(t.Context()))
		_, err = later.Exec(t.Context(), all[2])
		assert.Error(t, err, level)
		require.NoError(t, later.Rollback(t.Context()))
		_, err = db.Pool.Exec(t.Context(),
			`ALTER TABLE daybook.impacts DISABLE TRIGGER USER; DELETE FROM daybook.impacts; ALTER TABLE daybook.impacts ENABLE TRIGGER USER`, pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
	}
}
