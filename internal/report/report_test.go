package report

import (
	"bytes"
	"compress/zlib"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

var (
	pdfStream = regexp.MustCompile(`(?s)stream\n(.*?)\nendstream`)
	pdfText   = regexp.MustCompile(`(?s)\(((?:\\.|[^\\)])*)\) ?Tj`)
)

// pages are the texts of a PDF's pages, a line each. The file's encoding of text is that of
// Unicode, two bytes a character.
func pages(t *testing.T, file []byte) []string {
	t.Helper()
	var texts []string
	for _, stream := range pdfStream.FindAllSubmatch(file, -1) {
		r, err := zlib.NewReader(bytes.NewReader(stream[1]))
		if err != nil {
			continue
		}
		content, err := io.ReadAll(r)
		shown := pdfText.FindAllSubmatch(content, -1)
		if err != nil || len(shown) == 0 {
			continue
		}
		var page strings.Builder
		for _, part := range shown {
			raw := strings.NewReplacer(`\(`, "(", `\)`, ")", `\\`, `\`, `\r`, "\r").Replace(string(part[1]))
			for i := 0; i+1 < len(raw); i += 2 {
				page.WriteRune(rune(raw[i])<<8 | rune(raw[i+1]))
			}
			page.WriteByte('\n')
		}
		texts = append(texts, page.String())
	}
	return texts
}

// read is the text of a PDF as pdftotext reads it, where that program is.
func read(t *testing.T, file []byte) (string, bool) {
	t.Helper()
	program, err := exec.LookPath("pdftotext")
	if err != nil {
		return "", false
	}
	c := exec.CommandContext(t.Context(), program, "-layout", "-", "-")
	c.Stdin = bytes.NewReader(file)
	text, err := c.Output()
	require.NoError(t, err)
	return string(text), true
}

func printed(t *testing.T, r *Report) ([]byte, int) {
	t.Helper()
	templates, err := OpenTemplates("")
	require.NoError(t, err)
	var page, file bytes.Buffer
	require.NoError(t, templates.Write(&page, r))
	missing, err := PDF{MadeAt: time.Date(2026, 4, 1, 9, 0, 0, 0, time.UTC)}.Write(&file, &page)
	require.NoError(t, err)
	return file.Bytes(), missing
}

func balance(code, name, currency string, debit, credit int64) ledgerdb.SpanBalance {
	return ledgerdb.SpanBalance{
		Account: code, Name: name, Type: models.AccountAsset, Currency: currency, Opening: new(big.Int),
		Debit: big.NewInt(debit), Credit: big.NewInt(credit),
		Closing: big.NewInt(debit - credit),
	}
}

// long is a trial balance with n accounts, of names in several scripts.
func long(n int) *Report {
	r := &Report{
		Kind: "trial_balance", Organization: "org_1", Name: "Zażółć Ελλάς Москва GmbH", From: "2026-03-01",
		To: "2026-03-31", MadeAt: "2026-04-01 09:00 UTC",
	}
	var balances []ledgerdb.SpanBalance
	for i := range n {
		balances = append(balances,
			balance(fmt.Sprintf("%04d", 1000+i), fmt.Sprintf("Forderungen Łódź %d – πίστωση, дебет", i), "EUR",
				int64(i)*1_000_003, 7))
	}
	balances = append(balances, balance("9999", "Sum of what 64 bits hold", "JPY", math.MaxInt64, 0))
	r.TrialBalance(balances)
	return r
}

func TestPrintedTrialBalance(t *testing.T) {
	t.Parallel()
	file, missing := printed(t, long(200))
	assert.Zero(t, missing)
	all := pages(t, file)
	require.Greater(t, len(all), 4)
	for n, text := range all {
		assert.Contains(t, text, "Zażółć Ελλάς Москва GmbH", "the header is on each page")
		assert.Contains(t, text, fmt.Sprintf("%d / \n%d\n", n+1, len(all)), "and the number")
		assert.Contains(t, text, "Opening", "and the heading of the table")
	}
	whole := strings.ReplaceAll(strings.Join(all, "\n"), "\u00A0", " ")
	for _, want := range []string{
		"Forderungen Łódź 199 – πίστωση, дебет", "1 990 005.97", "1 990 005.90",
		"9 223 372 036 854 775 807",
	} {
		assert.Contains(t, whole, want)
	}
	// Each account is there once, in order: no row is lost or repeated where pages turn.
	var codes []string
	for _, found := range regexp.MustCompile(`\n(1[01]\d\d)\nForderungen`).FindAllStringSubmatch(whole, -1) {
		codes = append(codes, found[1])
	}
	require.Len(t, codes, 200)
	assert.True(t, slices.IsSorted(codes))
	if text, ok := read(t, file); ok {
		assert.Contains(t, text, "Forderungen Łódź 199 – πίστωση, дебет")
		assert.Contains(t, strings.ReplaceAll(text, "\u00A0", " "), "9 223 372 036 854 775 807")
	}
	if dir := os.Getenv("DAYBOOK_TEST_KEEP"); dir != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "trial_balance.pdf"), file, 0o600))
	}
}

// The same report is the same file, byte for byte.
func TestPrintedTwiceIsEqual(t *testing.T) {
	t.Parallel()
	first, _ := printed(t, long(40))
	second, _ := printed(t, long(40))
	assert.True(t, bytes.Equal(first, second))
}

// What the font does not have is counted and replaced; what is not to be seen is left out; a text
// without blanks is wrapped, and amounts are whole.
func TestTextsThatAreHardToPrint(t *testing.T) {
	t.Parallel()
	r := &Report{Kind: "trial_balance", Organization: "org_1", Name: "a\u202Eb\x07c 😀 漢", MadeAt: "now"}
	r.TrialBalance([]ledgerdb.SpanBalance{
		balance(strings.Repeat("W", 64), strings.Repeat("x", 5000), "EUR", math.MaxInt64, 0),
		balance("2", "<b>x</b>", "EUR", 0, 1),
	})
	file, missing := printed(t, r)
	assert.Equal(t, 6, missing, "two characters, at three places")
	whole := strings.ReplaceAll(strings.Join(pages(t, file), "\n"), "\u00A0", " ")
	assert.Contains(t, whole, "abc\n\uFFFD\n\uFFFD\n")
	assert.Contains(t, whole, "92 233 720 368 547 758.07")
	assert.Contains(t, whole, "\n<b>x</b>\n", "as a text")
}

// A template of the operator's: blocks, inline text, a table without a head, a cell over two
// columns.
func TestOwnTemplates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "journal.html"),
		[]byte(`<body><h1>Own {{.Title}}</h1>{{template "style"}}
<ul><li>one<li><b>two</b> and three</ul><hr><p>a<br>b</p><script>no()</script><blockquote>{{(index (index .Tables 0).Rows 0).Cell "debit" | printf "%v"}}</blockquote>
<table><tr><td colspan=2>wide</td></tr><tr><td>l</td><td class="number">1.00</td></tr></table>`), 0o600))
	templates, err := OpenTemplates(dir, "journal", "trial_balance")
	require.NoError(t, err)
	r := long(1)
	var page bytes.Buffer
	require.NoError(t, templates.Write(&page, r))
	assert.Contains(t, page.String(), "<h1>Trial balance</h1>", "built in")
	r.Kind, r.Title = "journal", "Journal"
	page.Reset()
	require.NoError(t, templates.Write(&page, r))
	var file bytes.Buffer
	_, err = PDF{}.Write(&file, &page)
	require.NoError(t, err)
	whole := strings.Join(pages(t, file.Bytes()), "\n")
	for _, want := range []string{"Own\nJournal\n", "three", "wide", "1.00"} {
		assert.Contains(t, whole, want)
	}
	assert.NotContains(t, whole, "no()", "scripts are left out")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "journal.html"), []byte(`{{.Title`), 0o600))
	_, err = OpenTemplates(dir, "journal")
	require.ErrorContains(t, err, "journal.html")
	_, err = OpenTemplates(filepath.Join(dir, "none"))
	require.Error(t, err)
}

func TestFontsThatAreNone(t *testing.T) {
	t.Parallel()
	require.Error(t, CheckFont([]byte("no font")))
}

func TestDecimals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		amount   int64
		currency string
		want     string
	}{
		{0, "EUR", "0.00"},
		{-7, "EUR", "-0.07"},
		{123456, "EUR", "1\u00A0234.56"},
		{-100000, "JPY", "-100\u00A0000"},
		{5, "KWD", "0.005"},
		{999, "JPY", "999"},
		{math.MinInt64, "EUR", "-92\u00A0233\u00A0720\u00A0368\u00A0547\u00A0758.08"},
	} {
		assert.Equal(t, c.want, grouped(decimal(big.NewInt(c.amount), c.currency)))
	}
}

// FuzzPDF: no HTML makes the printer fail.
func FuzzPDF(f *testing.F) {
	f.Add("<table><thead><tr><td colspan=9>a<tbody><tr><td>b")
	f.Add("<body class=landscape><header><span class=right>x</header><table></table><table><tr></tr></table>")
	f.Fuzz(func(t *testing.T, page string) {
		_, err := PDF{}.Write(io.Discard, strings.NewReader(page))
		require.NoError(t, err)
	})
}

// TestTablesAsCSVAreGuarded: no text of a user is a formula in any column, head or caption; amounts are
// written as they are.
func TestTablesAsCSVAreGuarded(t *testing.T) {
	t.Parallel()
	for hostile, want := range map[string]string{
		"=1+1": "'=1+1", "@SUM(A1)": "'@SUM(A1)", "＝1": "'＝1", "\n=1": "'\n'=1", "Sales;=1": "Sales;'=1", "Sales\t+1": "Sales\t'+1",
		"Sales\n-1": "Sales\n'-1",
	} {
		r := Report{Tables: []Table{{
			Caption: hostile, Columns: []Column{{ID: "account"}, {ID: "amount_1", Title: hostile, Number: true}},
			Rows: []Row{{Cells: []Cell{{Column: "account", Value: hostile}, {Column: "amount_1", Value: "-1.00", Number: true}}}},
		}}}
		var b bytes.Buffer
		require.NoError(t, r.WriteCSV(&b))
		rows, err := csv.NewReader(&b).ReadAll()
		require.NoError(t, err)
		assert.Equal(t, [][]string{{"currency", "line", "account", want}, {want, "account", want, "-1.00"}}, rows)
	}
}
