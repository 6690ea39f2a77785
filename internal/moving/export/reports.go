package export

import (
	"encoding/csv"
	"io"
	"math/big"
	"strconv"
	"strings"

	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/formula"
	"github.com/daybook-dev/daybook/models"
)

// WriteTrialBalance writes balances as CSV, a row each, and returns how many there are. Amounts are
// decimals of the currency, and the same again in minor units. Spreadsheets take no text in it for
// a formula.
func WriteTrialBalance(w io.Writer, balances []ledgerdb.SpanBalance) (int64, error) {
	out := csv.NewWriter(w)
	rows := [][]string{{
		"account", "account_name", "account_type", "currency", "opening", "debit", "credit", "closing",
		"opening_minor", "debit_minor", "credit_minor", "closing_minor",
	}}
	for _, b := range balances {
		rows = append(rows, []string{
			formula.Guard(b.Account), formula.Guard(b.Name), string(b.Type), b.Currency,
			bigNumber(b.Opening, b.Currency), bigNumber(b.Debit, b.Currency), bigNumber(b.Credit, b.Currency),
			bigNumber(b.Closing, b.Currency),
			b.Opening.String(), b.Debit.String(), b.Credit.String(), b.Closing.String(),
		})
	}
	return int64(len(balances)), out.WriteAll(rows)
}

// WriteAccountLedger writes what was posted to an account as CSV, a row an entry with the balance
// after it, and for each currency a row "opening" before and a row "closing" behind. It returns how
// many rows there are. Spreadsheets take no text in it for a formula.
func WriteAccountLedger(w io.Writer, code string, from, to models.Date, l ledgerdb.AccountLedger) (int64, error) {
	out := csv.NewWriter(w)
	code = formula.Guard(code)
	err := out.Write([]string{
		"posting_date", "document_date", "account", "document", "version", "impact", "kind", "line", "debit", "credit",
		"balance", "currency",
		"side", "amount_minor", "balance_minor", "rule_set", "rule", "rule_line",
	})
	if err != nil {
		return 0, err
	}
	rows := int64(0)
	write := func(row ...string) error {
		rows++
		return out.Write(row)
	}
	for _, b := range l.Balances {
		err := write(from.String(), "", code, "", "", "", "opening", "", "", "", bigNumber(b.Opening, b.Currency),
			b.Currency,
			"", "", b.Opening.String(), "", "", "")
		if err != nil {
			return rows, err
		}
	}
	for i := range l.Lines {
		e := &l.Lines[i]
		debit, credit := number(e.Amount, e.Currency), ""
		if e.Side == models.Credit {
			debit, credit = "", debit
		}
		err := write(e.PostingDate.String(), e.DocumentDate.String(), code, formula.Guard(e.DocumentID),
			strconv.FormatInt(e.DocumentVersion, 10),
			strconv.FormatInt(e.ImpactID, 10), string(e.Kind), strconv.Itoa(e.LineNo), debit, credit,
			bigNumber(e.Balance, e.Currency), e.Currency,
			string(e.Side), strconv.FormatInt(e.Amount, 10), e.Balance.String(), optional(e.RuleSetVersion),
			formula.Guard(e.RuleID), formula.Guard(e.RuleLineID))
		if err != nil {
			return rows, err
		}
	}
	for _, b := range l.Balances {
		err := write(to.String(), "", code, "", "", "", "closing", "", bigNumber(b.Debit, b.Currency),
			bigNumber(b.Credit, b.Currency),
			bigNumber(b.Closing, b.Currency), b.Currency, "", "", b.Closing.String(), "", "", "")
		if err != nil {
			return rows, err
		}
	}
	out.Flush()
	return rows, out.Error()
}

// bigNumber is decimal without the currency.
func bigNumber(amount *big.Int, currency string) string {
	text, _, _ := strings.Cut(decimal(amount, currency), " ")
	return text
}
