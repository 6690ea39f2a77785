package export

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// beancount writes a Beancount file.
type beancount struct {
	out   *bufio.Writer
	names *names
}

func (b *beancount) head(_ context.Context, _ *ledgerdb.ExportReader, h *head) error {
	b.names.add(h.accounts)
	b.printf("; A ledger of Daybook, for Beancount.\n\n")
	for _, c := range h.currencies {
		b.printf("option \"operating_currency\" \"%s\"\n", c)
	}
	b.printf("\n")
	if h.span.First.IsZero() {
		return nil // without a transaction there is no date to open accounts on
	}
	for _, c := range h.currencies {
		b.printf("%s commodity %s\n", h.span.First, c)
	}
	b.printf("\n")
	for _, a := range h.accounts {
		b.printf("%s open %s\n", h.span.First, b.names.names[account{a.OrgID, a.Code}])
		b.text("  ", "org", a.OrgID)
		b.text("  ", "code", a.Code)
		b.text("  ", "name", a.Name)
	}
	b.printf("\n")
	return nil
}

func (b *beancount) impact(m *ledgerdb.ExportImpact) error {
	b.printf("%s * %s %s\n", m.PostingDate.Nearest(), quote(party(m)), quote(m.DocumentID))
	b.text("  ", "org", m.OrgID)
	b.text("  ", "doc", m.DocumentID)
	b.printf("  version: %d\n  impact: %d\n", m.DocumentVersion, m.ID)
	b.text("  ", "kind", string(m.Kind))
	if m.Reverses != nil {
		b.printf("  reverses: %d\n", *m.Reverses)
	}
	if m.RuleSetVersion != nil {
		b.printf("  rule-set: %d\n", *m.RuleSetVersion)
	}
	b.text("  ", "rule", m.RuleID)
	if m.Epoch > 0 {
		b.printf("  epoch: %d\n", m.Epoch)
	}
	if m.DocumentDate.Check() == nil {
		b.printf("  document-date: %s\n", m.DocumentDate)
	} else {
		b.text("  ", "document-date", m.DocumentDate.String())
	}
	if m.PostingDate.Check() != nil {
		b.text("  ", "posting-date", m.PostingDate.String())
	}
	for i := range m.Entries {
		e := &m.Entries[i]
		name, err := b.names.name(m.OrgID, e.Account)
		if err != nil {
			return err
		}
		b.printf("  %s  %s\n", name, models.FormatMinor(signed(e), e.Currency))
		line := e.RuleLineID
		if e.DocumentLine != nil {
			line = fmt.Sprintf("%s/%d", line, *e.DocumentLine)
		}
		b.text("    ", "line", line)
		for _, key := range e.Dimensions.Keys() {
			b.text("    ", dimensionTag(key), e.Dimensions[key])
		}
	}
	b.printf("\n")
	return nil
}

func (b *beancount) empty(m *ledgerdb.ExportImpact) {
	b.printf("; %s impact %d of document %s of organization %s has no entries\n\n", m.PostingDate, m.ID,
		tagValue(m.DocumentID), tagValue(m.OrgID))
}

// assert writes balances without tolerance. Beancount compares them at the beginning of a day: of
// the one after the last.
func (b *beancount) assert(h *head) error {
	for _, x := range h.balances {
		name, err := b.names.name(x.OrgID, x.Account)
		if err != nil {
			return err
		}
		amount, currency, _ := strings.Cut(decimal(x.Balance, x.Currency), " ")
		b.printf("%s balance %s  %s ~ 0 %s\n", h.span.Last.AddDays(1), name, amount, currency)
	}
	return nil
}

// text writes metadata, unless there is none.
func (b *beancount) text(indent, key, value string) {
	if value != "" {
		b.printf("%s%s: %s\n", indent, key, quote(value))
	}
}

func (b *beancount) printf(format string, args ...any) { _, _ = fmt.Fprintf(b.out, format, args...) }

var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`)

// quote makes a string of a text.
func quote(s string) string { return `"` + quoted.Replace(s) + `"` }
