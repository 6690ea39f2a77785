package export_test

import (
	"context"
	"maps"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/moving/export"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// oddTexts are texts by what could be odd for a program. Each becomes an organization's id, a
// document's id, a counterparty, an account's code and name, a rule and a rule's line, as far as
// its length allows.
var oddTexts = map[string][]string{
	"comments and notes": {
		";", "; a", "a;b", "a  ; b", "|", "a | b", "| a", "#a", "# a", "#", "%", "100%", "%41", "%(a)", "*", "* a", "!",
		"! a", "!a", "*a", "a  (note)",
	},
	"blanks and line breaks": {
		"a  b", "a\tb", "\ta\t", " ", "  a  ", "\u00a0", "\u3000a\u3000", "\u200b", "\u0085", "\u2028", "a\u2029b",
		"a\nb", "\na\n", "a\r\nb", "\r", "a\r2026-01-01 open Assets:A", "\n\n\n",
	},
	"quotes": {`"`, `"a"`, `a"b`, `'`, "`a`", `\`, `a\`, `\n`, `\"`, `\\"`},
	"brackets": {
		"(", "(a", "(a) b", "a)", "()", "[", "[a]", "[2026-01-01]", "[=2026-01-01]", "[a", "]", "{", "{1 EUR}", "<a>",
		"<(a)>", "<", ">",
		"$(a)", "${a}", "{{a}}",
	},
	"tags": {
		":", "::", "a:b", "a::b", ":a", "a:", ":a:b:", "a: b", "date:2026-99-99", "date:x", "x, date:x", "date2: 1",
		"type: Z", "Payee: x", "payee: ",
		"UUID: x", "a,b", ",",
	},
	"amounts and dates": {
		"a = b", "= 5 EUR", "== 5", "=", "a @ b", "@", "@@ 5 EUR", "~", "~ monthly", "a ~ 0 b", "$1", "€", "a  1 EUR",
		"a  =1", "=1+1", "1,000", "+", "-1",
		"1", "0", "007", "1.5", "2026-01-01", "2026/01/01=2026/01/02", "value==1", "expr 1",
	},
	"points, hyphens and signs": {
		"-", "--", "---", "1200-3", ".", "..", ".a", "a.", "/", "//", "a/b", "?", "a?b", "_", "a_b", "^a", "^", "&",
		"&amp;",
		"X", "X--", "X--a", "-2D", "X---2D",
	},
	"letters and digits": {
		"a", "A", "À", "à", "ß", "é", "e\u0301", "\u0301", "ж", "Ж", "銀行", "بنك", "בנק", "Ǆ", "ǅ", "ª", "ʰ", "२", "²", "Ⅷ",
		"½", "𝐀", "𠀀", "𐐀", "𝟘", "😀", "👩‍👧",
	},
	"marks that show nothing": {
		"\u200f", "\u202ea\u202c", "a\u200fb", "\u2066", "\ufeff", "\ufeffa", "\ufffd", "\ufffe", "\U0010ffff", "\ue000",
		"\u00ad", "\u180e", "\u2060",
		"\x01", "a\x02b", "\x07", "\b", "\v", "\f", "a\x1ab", "\x1b[31m", "\x7f", "\u009b", "\x1f",
	},
	"words": {
		"comment", "end comment", "include x", "account", "payee", "open", "close", "TRUE", "NULL", "txn", "P", "test",
		"Y2026",
		"assets", "Assets:A", "Equity:X", "Daybook",
	},
	"long": {
		long("a"), long("a b "), long("東"), long(";"), long("\n") + "a", long("%"), long(`"`), long(`\`) + `\`, long("a\n"),
		"b" + long("\u0301"),
		long(":"), long("\x01"), strings.Repeat("\x01", 254) + "b",
	},
}

func long(text string) string { return strings.Repeat(text, 20_000) }

// within cuts a text to at most so many bytes.
func within(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// oddBooks has an organization for each text, and the organization "every" with all of them.
func oddBooks(t *testing.T, texts []string) *pgtest.DB {
	t.Helper()
	db := pgtest.New(t)
	var p ledgerdb.Posting
	fixture.Tx(t, db.Pool, func(ctx context.Context, tx pgx.Tx) {
		accounts := func(org string, chart ...models.Account) {
			_, err := ledgerdb.PutAccounts(ctx, tx, org, chart, nil)
			require.NoError(t, err)
		}
		book := func(org, document, debit, credit, text, currency string) {
			d := fixture.Invoice(org, document, 1000)
			d.Content.Counterparty = text
			_, err := ledgerdb.PutDocument(ctx, tx, d)
			require.NoError(t, err)
			m := models.Impact{
				ID: int64(len(p.Impacts) + 1), OrgID: org, DocumentID: document, DocumentVersion: 1, Seq: 1,
				Kind:           models.ImpactPost,
				RuleSetVersion: new(int64(1)), RuleID: text, JobID: "job", Attempt: 1, EntryCount: 2,
				DocumentDate: models.NewDate(2026, 3, 1), PostingDate: models.NewDate(2026, 3, 14),
			}
			p.Impacts = append(p.Impacts, m)
			entry := models.Entry{
				ImpactID: m.ID, LineNo: 1, OrgID: org, Account: debit, Side: models.Debit,
				Amount: math.MaxInt64, Currency: currency, RuleLineID: text,
			}
			p.Entries = append(p.Entries, entry)
			entry.LineNo, entry.Account, entry.Side = 2, credit, models.Credit
			p.Entries = append(p.Entries, entry)
		}
		chart := []models.Account{{Code: "every", Type: models.AccountIncome}}
		currencies := []string{"JPY", "EUR", "KWD", "CLF", "HRK", "BYR"}
		for i, text := range texts {
			org, code, currency := within(text, 255), within(text, 64), currencies[i%len(currencies)]
			accounts(org,
				models.Account{Code: code, Name: text, Type: models.AccountAsset},
				models.Account{Code: "name", Name: text, Type: models.AccountIncome})
			book(org, org, code, "name", text, currency)
			if !slices.ContainsFunc(chart, func(a models.Account) bool { return a.Code == code }) {
				chart = append(chart, models.Account{Code: code, Name: text, Type: models.AccountAsset})
			}
		}
		accounts("every", chart...)
		for i, a := range chart[1:] {
			book("every", strconv.Itoa(i), a.Code, "every", "", currencies[i%len(currencies)])
		}
		require.NoError(t, ledgerdb.InsertPosting(ctx, tx, p))
	})
	return db
}

// A text that one program cannot read spoils no export, and no two accounts become one: the
// balances are asserted.
func TestTextsThatAProgramCannotRead(t *testing.T) {
	t.Parallel()
	var texts []string
	for _, kind := range slices.Sorted(maps.Keys(oddTexts)) {
		texts = append(texts, oddTexts[kind]...)
	}
	db := oddBooks(t, texts)
	for _, format := range export.Formats() {
		for _, org := range []string{"", "every"} {
			t.Run(string(format)+" "+org, func(t *testing.T) {
				t.Parallel()
				text := written(t, db, ledgerdb.ExportFilter{OrgID: org}, export.Options{
					Format: format, Organizations: org == "", Assertions: format != export.CSV,
				})
				said, ok := check(t, format, text)
				assert.True(t, ok, "%s", within(said, 4000))
			})
		}
	}
}

// What a payee, a code or a name cannot hold, the tags do.
func TestTagsKeepTexts(t *testing.T) {
	t.Parallel()
	var texts []string
	for kind, of := range oddTexts {
		if kind != "long" {
			texts = append(texts, of...)
		}
	}
	slices.Sort(texts)
	db := oddBooks(t, texts)
	for _, format := range []export.Format{export.HLedger, export.Ledger} {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			journal := written(t, db, ledgerdb.ExportFilter{}, export.Options{Format: format, Organizations: true})
			for _, tag := range []string{"org", "doc", "rule"} {
				said := tagValues(t, format, journal, tag)
				var got []string
				for line := range strings.Lines(said) {
					value, err := url.PathUnescape(strings.TrimSuffix(line, "\n"))
					require.NoError(t, err)
					got = append(got, value)
				}
				for _, text := range texts {
					assert.Contains(t, got, text, "%s %q", tag, text)
				}
			}
		})
	}
}

// tagValues returns what a program reads as a tag's values, one on a line.
func tagValues(t *testing.T, format export.Format, journal, tag string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ledger")
	require.NoError(t, os.WriteFile(file, []byte(journal), 0o600))
	args := []string{"-f", file, "tags", "--values", "^" + tag + "$"}
	if format == export.Ledger {
		args = []string{"--args-only", "-f", file, "register", "--format", "%(tag('" + tag + "'))\n"}
	}
	program, err := exec.LookPath(string(format))
	if err != nil {
		t.Skipf("%s is not on the PATH: install the Debian package (make oracle does)", format)
	}
	judge := exec.CommandContext(t.Context(), program, args...)
	judge.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	said, err := judge.Output()
	require.NoError(t, err)
	return string(said)
}
