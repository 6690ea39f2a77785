package export

import (
	"bufio"
	"context"
	"encoding/csv"
	"strconv"

	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/formula"
	"github.com/daybook-dev/daybook/models"
)

// csvColumns are the columns of the CSV format, one row an entry.
var csvColumns = []string{
	"posting_date", "document_date", "org", "document", "version", "impact", "kind", "reverses", "rule_set", "rule",
	"epoch", "party",
	"line", "account", "account_name", "account_type", "side", "amount", "currency", "amount_minor", "rule_line",
	"document_line", "dimensions",
}

// table writes CSV.
type table struct {
	out   *csv.Writer
	names *names
	// text is how a text is written that comes from a user.
	text func(string) string
}

func newTable(out *bufio.Writer, names *names, spreadsheet bool) *table {
	t := &table{out: csv.NewWriter(out), names: names, text: func(s string) string { return s }}
	if spreadsheet {
		t.text = formula.Guard
	}
	return t
}

func (t *table) head(_ context.Context, _ *ledgerdb.ExportReader, h *head) error {
	t.names.add(h.accounts)
	if err := t.out.Write(csvColumns); err != nil {
		return err
	}
	t.out.Flush()
	return t.out.Error()
}

func (t *table) impact(m *ledgerdb.ExportImpact) error {
	row := make([]string, len(csvColumns))
	for i := range m.Entries {
		e := &m.Entries[i]
		if _, err := t.names.name(m.OrgID, e.Account); err != nil {
			return err
		}
		a := t.names.accounts[account{m.OrgID, e.Account}]
		row = append(row[:0],
			m.PostingDate.String(), m.DocumentDate.String(), t.text(m.OrgID), t.text(m.DocumentID),
			strconv.FormatInt(m.DocumentVersion, 10),
			strconv.FormatInt(m.ID, 10), string(m.Kind), optional(m.Reverses), optional(m.RuleSetVersion), t.text(m.RuleID),
			strconv.Itoa(m.Epoch),
			t.text(m.Counterparty), strconv.Itoa(e.LineNo), t.text(e.Account), t.text(a.Name), string(a.Type), string(e.Side),
			number(signed(e), e.Currency), e.Currency, strconv.FormatInt(e.Amount, 10), t.text(e.RuleLineID),
			optional(e.DocumentLine), t.text(dimensionsText(e.Dimensions)))
		if err := t.out.Write(row); err != nil {
			return err
		}
	}
	t.out.Flush()
	return t.out.Error()
}

// empty writes nothing: a row is an entry.
func (t *table) empty(*ledgerdb.ExportImpact) {}

// assert is never called: Options.Check refuses assertions in CSV.
func (t *table) assert(*head) error { return nil }

// dimensionsText writes dimensions as JSON; none: nothing.
func dimensionsText(d models.Dimensions) string {
	if text := d.JSON(); text != nil {
		return *text
	}
	return ""
}

func optional[T int | int64](n *T) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(int64(*n), 10)
}
