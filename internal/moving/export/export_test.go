package export_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pages"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/moving/export"
	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var update = flag.Bool("update", false, "write the golden files anew")

// strange is a payee with everything that means something to one of the formats.
const strange = "  Müller; \"Söhne\" | (Tokyo)\n\t東京, 100% [2026-01-01] C:\\ = @  "

// ledger makes a small ledger: euros, yen and dinars, a reversal, an impact without entries, two
// organizations.
func ledger(t *testing.T) *pgtest.DB {
	t.Helper()
	db := pgtest.New(t)
	chart := []models.Account{
		{Code: "1200", Name: "Accounts receivable", Type: models.AccountAsset},
		{Code: "1200-x", Name: "Bank;  of: \"Côte d'Ivoire\"", Type: models.AccountAsset},
		{Code: "12:00 a", Type: models.AccountLiability},
		{Code: "bank", Name: "(petty) cash", Type: models.AccountExpense},
		{Code: "2900", Name: "Capital", Type: models.AccountEquity},
		{Code: "4000", Name: "Sales", Type: models.AccountIncome},
	}
	entry := func(impact int64, line int, org, account string, side models.Side, amount int64,
		currency string,
	) models.Entry {
		return models.Entry{
			ImpactID: impact, LineNo: line, OrgID: org, Account: account, Side: side, Amount: amount,
			Currency: currency, RuleLineID: "l", DocumentLine: new(line),
		}
	}
	with := func(e models.Entry, d models.Dimensions) models.Entry {
		e.Dimensions = d
		return e
	}
	impact := func(id int64, org, document string, seq int, kind models.ImpactKind, day, entries int) models.Impact {
		return models.Impact{
			ID: id, OrgID: org, DocumentID: document, DocumentVersion: int64(seq), Seq: seq, Kind: kind,
			RuleSetVersion: new(int64(1)), RuleID: "sale",
			DocumentDate: models.NewDate(2026, 3, 1), PostingDate: models.NewDate(2026, 3, day), EntryCount: entries,
			JobID: "job", Attempt: 1,
		}
	}
	fixture.Tx(t, db.Pool, func(ctx context.Context, tx pgx.Tx) {
		for _, org := range []string{"de", "org: 2"} {
			require.NoError(t, store.PutOrganization(ctx, tx, org, org))
			_, err := ledgerdb.PutAccounts(ctx, tx, org, chart, nil)
			require.NoError(t, err)
		}
		for id, party := range map[string]string{"invoice-1": strange, "invoice-2": "Plain GmbH", "empty": "Unknown"} {
			d := fixture.Invoice("de", id, 1000)
			d.Content.Counterparty = party
			_, err := ledgerdb.PutDocument(ctx, tx, d)
			require.NoError(t, err)
		}
		const de, two = "de", "org: 2"
		require.NoError(t, ledgerdb.InsertPosting(ctx, tx, ledgerdb.Posting{
			Impacts: []models.Impact{
				impact(1, de, "invoice-1", 1, models.ImpactPost, 14, 3),
				impact(2, de, "invoice-2", 1, models.ImpactPost, 2, 4),
				impact(3, de, "empty", 1, models.ImpactPost, 3, 0),
				impact(4, two, "(odd), [2026-01-01]; id: ü", 1, models.ImpactPost, 14, 2),
			},
			Entries: []models.Entry{
				entry(1, 1, de, "1200", models.Debit, 1_234_567, "EUR"),
				with(entry(1, 2, de, "4000", models.Credit, 1_234_560, "EUR"),
					models.Dimensions{"cost_centre": "sales, [2026-01-01]; \"north\"", "date": "=1", "x": "y"}),
				entry(1, 3, de, "bank", models.Credit, 7, "EUR"),
				entry(2, 1, de, "1200", models.Debit, 28_305, "JPY"), entry(2, 2, de, "4000", models.Credit, 28_305, "JPY"),
				entry(2, 3, de, "1200-x", models.Debit, 1_500, "KWD"), entry(2, 4, de, "12:00 a", models.Credit, 1_500, "KWD"),
				entry(4, 1, two, "1200", models.Debit, 100, "EUR"), entry(4, 2, two, "4000", models.Credit, 100, "EUR"),
			},
		}))
		require.NoError(t, ledgerdb.InsertPosting(ctx, tx, ledgerdb.Posting{
			Impacts: []models.Impact{
				impact(5, de, "invoice-1", 2, models.ImpactReverse, 14, 3),
				impact(6, de, "invoice-1", 3, models.ImpactPost, 15, 2),
			},
			Entries: []models.Entry{
				entry(6, 1, de, "1200", models.Debit, 2_550, "EUR"), entry(6, 2, de, "4000", models.Credit, 2_550, "EUR"),
			},
			Reversals: []ledgerdb.Reversal{{ID: 5, Of: 1}},
		}))
	})
	return db
}

// written exports and must succeed.
func written(t *testing.T, db *pgtest.DB, f ledgerdb.ExportFilter, o export.Options) string {
	t.Helper()
	require.NoError(t, o.Check(f))
	var out bytes.Buffer
	require.NoError(t, ledgerdb.ReadExport(t.Context(), db.Pool, f, func(r *ledgerdb.ExportReader) error {
		_, err := export.Write(t.Context(), r, &out, o)
		return err
	}))
	return out.String()
}

// checkers are the programs that judge a format, by their arguments.
var checkers = map[export.Format][][]string{
	export.HLedger: {{"hledger", "-f", "FILE", "check", "-s", "ordereddates", "payees", "balancednoautoconversion"}},
	export.Ledger:  {{"ledger", "--args-only", "-f", "FILE", "--strict", "--pedantic", "balance"}},
	// A cache beside the file would be left behind.
	export.Beancount: {{"bean-check", "--no-cache", "FILE"}},
}

// TestCheckersOfThePage: docs/export.md names them as they are called here, and the entry that it
// shows is read by an import, and has the tags of an export.
func TestCheckersOfThePage(t *testing.T) {
	t.Parallel()
	var known []string
	for _, commands := range checkers {
		for _, command := range commands {
			known = append(known, strings.ReplaceAll(strings.Join(command, " "), " --no-cache", ""))
		}
	}
	for _, program := range []string{"hledger", "ledger", "bean-check"} {
		commands, err := pages.Commands(program)
		require.NoError(t, err)
		for _, c := range commands {
			if c.Whole {
				assert.Contains(t, known, strings.ReplaceAll(c.String(), "shop.journal", "FILE"), "%s:%d", c.Page, c.Line)
			}
		}
	}
	blocks, err := pages.Of("docs/export.md", "ledger")
	require.NoError(t, err)
	require.Len(t, blocks, 1)
	for _, err := range importer.HLedger(strings.NewReader(blocks[0].Text), importer.JournalOptions{Org: "de", By: "clerk", Reason: "moved"}) {
		require.NoError(t, err)
	}
	golden, err := os.ReadFile("testdata/one.hledger")
	require.NoError(t, err)
	_, entry, found := strings.Cut(string(golden), "\n2026-03-14 * (invoice-1)")
	require.True(t, found)
	for line := range strings.Lines(blocks[0].Text) {
		if strings.HasPrefix(line, "    ; ") {
			assert.Contains(t, entry, line)
		}
	}
}

// check lets the programs judge a text, and returns what they say; ok: they take it.
func check(t *testing.T, format export.Format, text string) (said string, ok bool) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ledger")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	ok = true
	for _, command := range checkers[format] {
		program, err := exec.LookPath(command[0])
		if err != nil {
			t.Skipf("%s is not on the PATH: install the Debian package (make oracle does)", command[0])
		}
		args := strings.Split(strings.ReplaceAll(strings.Join(command[1:], "\n"), "FILE", file), "\n")
		judge := exec.CommandContext(t.Context(), program, args...)
		judge.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
		output, err := judge.CombinedOutput()
		said += string(output)
		ok = ok && err == nil
	}
	return said, ok
}

func TestGolden(t *testing.T) {
	t.Parallel()
	db := ledger(t)
	for _, format := range export.Formats() {
		for name, f := range map[string]ledgerdb.ExportFilter{"all": {}, "one": {OrgID: "de"}} {
			t.Run(string(format)+" "+name, func(t *testing.T) {
				t.Parallel()
				got := written(t, db, f, export.Options{
					Format: format, Organizations: f.OrgID == "",
					Assertions: format != export.CSV,
				})
				file := filepath.Join("testdata", name+"."+string(format))
				if *update {
					require.NoError(t, os.MkdirAll("testdata", 0o750))
					require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
				}
				want, err := os.ReadFile(file)
				require.NoError(t, err)
				assert.Equal(t, string(want), got)
				said, ok := check(t, format, got)
				assert.True(t, ok, "%s", said)
			})
		}
	}
}

// A program that took anything would prove nothing.
func TestCheckersFindAWrongBalance(t *testing.T) {
	t.Parallel()
	db := ledger(t)
	for format, wrong := range map[export.Format][2]string{
		export.HLedger: {"= 25.50 EUR", "= 25.51 EUR"}, export.Ledger: {"= 25.50 EUR", "= 25.51 EUR"},
		export.Beancount: {"25.50 ~ 0 EUR", "25.51 ~ 0 EUR"},
	} {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			text := written(t, db, ledgerdb.ExportFilter{OrgID: "de"}, export.Options{Format: format, Assertions: true})
			require.Contains(t, text, wrong[0])
			said, ok := check(t, format, strings.Replace(text, wrong[0], wrong[1], 1))
			assert.False(t, ok, "%s", said)
		})
	}
}

func TestSameBytes(t *testing.T) {
	t.Parallel()
	db := ledger(t)
	all := func() (texts []string) {
		for _, format := range export.Formats() {
			texts = append(texts, written(t, db, ledgerdb.ExportFilter{},
				export.Options{Format: format, Organizations: true, Assertions: format != export.CSV}))
		}
		return texts
	}
	first := all()
	assert.Equal(t, first, all(), "a second export")
	// Other places in the tables, other plans.
	for _, stmt := range []string{
		`UPDATE daybook.documents SET updated_at = clock_timestamp()`, `VACUUM FULL`,
		`CLUSTER daybook.entries USING entries_account`, `ANALYZE`,
	} {
		_, err := db.Pool.Exec(t.Context(), stmt)
		require.NoError(t, err, stmt)
	}
	assert.Equal(t, first, all(), "after VACUUM FULL")
}

func TestDates(t *testing.T) {
	t.Parallel()
	db := ledger(t)
	day := models.NewDate(2026, 3, 14)
	text := written(t, db, ledgerdb.ExportFilter{OrgID: "de", From: day, To: day}, export.Options{Format: export.CSV})
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	require.NoError(t, err)
	assert.Len(t, rows, 1+3+3, "the impact and its reversal")
	assert.Equal(t, strange, rows[1][11], "CSV keeps a party as it is")
	for _, format := range export.Formats() {
		none := written(t, db, ledgerdb.ExportFilter{From: models.NewDate(2030, 1, 1)},
			export.Options{Format: format, Organizations: true})
		said, ok := check(t, format, none)
		assert.True(t, ok, "%s without a transaction: %s", format, said)
	}
}

// Dates that no document can have any more, in a ledger that was not held to the range, spoil no
// export.
func TestDatesThatAProgramCannotRead(t *testing.T) {
	t.Parallel()
	db := ledger(t)
	_, err := db.Pool.Exec(t.Context(), `
ALTER TABLE daybook.impacts DISABLE TRIGGER USER, DROP CONSTRAINT dates_are_bookable;
UPDATE daybook.impacts SET document_date = '0001-01-01 BC', posting_date = '0001-01-01 BC' WHERE id = 2;
UPDATE daybook.impacts SET document_date = '0001-01-01', posting_date = '9999-12-31' WHERE id = 6;`)
	require.NoError(t, err)
	for _, format := range export.Formats() {
		text := written(t, db, ledgerdb.ExportFilter{},
			export.Options{Format: format, Organizations: true, Assertions: format != export.CSV})
		said, ok := check(t, format, text)
		assert.True(t, ok, "%s: %s", format, said)
		assert.Contains(t, text, "0000-01-01", "the date is kept (%s)", format)
		assert.Contains(t, text, "9999-12-31", "the date is kept (%s)", format)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	day := models.NewDate(2026, 3, 14)
	for name, c := range map[string]struct {
		options export.Options
		filter  ledgerdb.ExportFilter
	}{
		"no format":         {},
		"assertions in CSV": {options: export.Options{Format: export.CSV, Assertions: true}},
		"assertions from a day": {
			options: export.Options{Format: export.HLedger, Assertions: true},
			filter:  ledgerdb.ExportFilter{From: day},
		},
		"to before from": {
			options: export.Options{Format: export.CSV},
			filter:  ledgerdb.ExportFilter{From: day, To: models.NewDate(2026, 3, 13)},
		},
	} {
		assert.ErrorIs(t, c.options.Check(c.filter), export.ErrOptions, name)
	}
}

func TestAccountThatLeftTheChart(t *testing.T) {
	t.Parallel()
	db := ledger(t)
	_, err := db.Pool.Exec(t.Context(), `DELETE FROM daybook.accounts WHERE code = 'bank'`)
	require.NoError(t, err)
	for _, format := range export.Formats() {
		err := ledgerdb.ReadExport(t.Context(), db.Pool, ledgerdb.ExportFilter{OrgID: "de"},
			func(r *ledgerdb.ExportReader) error {
				_, err := export.Write(t.Context(), r, io.Discard, export.Options{Format: format})
				return err
			})
		assert.ErrorIs(t, err, export.ErrNoAccount, string(format))
		assert.ErrorContains(t, err, "account bank of organization de")
	}
}

// Spreadsheet changes nothing where nothing begins like a formula, and nothing without it changes
// at all (TestGolden).
func TestSpreadsheet(t *testing.T) {
	t.Parallel()
	db := ledger(t)
	f := ledgerdb.ExportFilter{OrgID: "de"}
	plain := written(t, db, f, export.Options{Format: export.CSV})
	assert.Equal(t, plain, written(t, db, f, export.Options{Format: export.CSV, Spreadsheet: true}))
	_, err := db.Pool.Exec(t.Context(), `UPDATE daybook.accounts SET name = '=' || name WHERE code = '4000'`)
	require.NoError(t, err)
	assert.Equal(t, strings.ReplaceAll(plain, ",Sales,", ",=Sales,"),
		written(t, db, f, export.Options{Format: export.CSV}))
	assert.Equal(t, strings.ReplaceAll(plain, ",Sales,", ",'=Sales,"),
		written(t, db, f, export.Options{Format: export.CSV, Spreadsheet: true}))
}
