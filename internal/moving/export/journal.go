package export

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// journal writes a journal for hledger or Ledger. They differ in a few directives.
type journal struct {
	out        *bufio.Writer
	names      *names
	format     Format
	assertions bool
}

// assertionsParty is the payee of the transaction that asserts the balances.
const assertionsParty = "Daybook"

// journalTags are the tags of transactions and postings; Ledger wants them declared before their
// first use.
var journalTags = []string{
	"org", "doc", "party", "version", "impact", "kind", "reverses", "rule-set", "rule", "epoch",
	"document-date", "posting-date", "line",
}

// otherTags are names of tags that mean something to a program that reads the file.
var otherTags = []string{"date", "date2", "type", "id", "filename", "lineno"}

// dimensionTag is the name of the tag of a dimension: its key, after "dim-" where that name has
// another meaning, or is too short for Beancount. No key has a hyphen.
func dimensionTag(key string) string {
	if len(key) < 2 || slices.Contains(journalTags, key) || slices.Contains(otherTags, key) {
		return "dim-" + key
	}
	return key
}

// accountLetters are the types of accounts as hledger declares them.
var accountLetters = map[models.AccountType]string{
	models.AccountAsset: "A", models.AccountLiability: "L", models.AccountEquity: "E", models.AccountIncome: "R",
	models.AccountExpense: "X",
}

func (j *journal) head(ctx context.Context, r *ledgerdb.ExportReader, h *head) error {
	j.names.add(h.accounts)
	j.printf("; A ledger of Daybook, for %s.\n\n", j.format)
	if j.format == HLedger {
		j.printf("decimal-mark .\n\n")
	} else {
		keys, err := r.Dimensions(ctx)
		if err != nil {
			return err
		}
		for i, key := range keys {
			keys[i] = dimensionTag(key)
		}
		for _, tag := range append(slices.Clone(journalTags), keys...) {
			j.printf("tag %s\n", tag)
		}
		j.printf("\n")
	}
	for _, c := range h.currencies {
		j.commodity(c)
	}
	for _, a := range h.accounts {
		name := j.names.names[account{a.OrgID, a.Code}]
		if j.format == HLedger {
			j.printf("account %s  ; type: %s\n", name, accountLetters[a.Type])
		} else {
			j.printf("account %s\n", name)
		}
	}
	j.printf("\n")
	if j.assertions {
		j.printf("payee %s\n", assertionsParty)
	}
	last := ""
	err := r.Parties(ctx, func(s string) error {
		if payee := payee(s); payee != last {
			j.printf("payee %s\n", payee)
			last = payee
		}
		return nil
	})
	j.printf("\n")
	return err
}

func (j *journal) commodity(currency string) {
	sample := number(100_000, currency)
	if !strings.Contains(sample, ".") {
		sample += "." // hledger wants the decimal mark shown, also where no decimals follow
	}
	if j.format == HLedger {
		j.printf("commodity %s %s\n\n", sample, currency)
		return
	}
	j.printf("commodity %s\n    format %s %s\n\n", currency, strings.TrimSuffix(sample, "."), currency)
}

func (j *journal) impact(m *ledgerdb.ExportImpact) error {
	j.printf("%s * (%s) %s\n", m.PostingDate.Nearest(), code(m.DocumentID), payee(party(m)))
	j.tag("org", m.OrgID)
	j.tag("doc", m.DocumentID)
	if name := m.Counterparty; name != "" && payee(name) != name {
		j.tag("party", name)
	}
	j.printf("    ; version: %d\n    ; impact: %d\n    ; kind: %s\n", m.DocumentVersion, m.ID, m.Kind)
	if m.Reverses != nil {
		j.printf("    ; reverses: %d\n", *m.Reverses)
	}
	if m.RuleSetVersion != nil {
		j.printf("    ; rule-set: %d\n", *m.RuleSetVersion)
	}
	if m.RuleID != "" {
		j.tag("rule", m.RuleID)
	}
	if m.Epoch > 0 {
		j.printf("    ; epoch: %d\n", m.Epoch)
	}
	j.printf("    ; document-date: %s\n", m.DocumentDate)
	if m.PostingDate.Check() != nil {
		j.printf("    ; posting-date: %s\n", m.PostingDate)
	}
	for i := range m.Entries {
		e := &m.Entries[i]
		name, err := j.names.name(m.OrgID, e.Account)
		if err != nil {
			return err
		}
		j.printf("    %s  %s", name, models.FormatMinor(signed(e), e.Currency))
		if e.RuleLineID != "" {
			j.printf("  ; line: %s", tagValue(e.RuleLineID))
			if e.DocumentLine != nil {
				j.printf("/%d", *e.DocumentLine)
			}
		}
		j.printf("\n")
		for _, key := range e.Dimensions.Keys() {
			j.tag(dimensionTag(key), e.Dimensions[key])
		}
	}
	j.printf("\n")
	return nil
}

func (j *journal) empty(m *ledgerdb.ExportImpact) {
	j.printf("; %s impact %d of document %s of organization %s has no entries\n\n", m.PostingDate, m.ID,
		tagValue(m.DocumentID), tagValue(m.OrgID))
}

func (j *journal) assert(h *head) error {
	if len(h.balances) == 0 {
		return nil
	}
	j.printf("%s * %s | balances\n", h.span.Last, assertionsParty)
	for _, b := range h.balances {
		name, err := j.names.name(b.OrgID, b.Account)
		if err != nil {
			return err
		}
		j.printf("    %s  %s = %s\n", name, models.FormatMinor(0, b.Currency), decimal(b.Balance, b.Currency))
	}
	return nil
}

func (j *journal) tag(name, value string) { j.printf("    ; %s: %s\n", name, tagValue(value)) }

func (j *journal) printf(format string, args ...any) { _, _ = fmt.Fprintf(j.out, format, args...) }

// Ledger reads no line of more than 4096 bytes. A posting has an account's name with the longest
// text, and a tag; the other lines have less.
const (
	longestText = 1000
	longestTag  = 2000
)

var (
	payeeText = strings.NewReplacer(";", ",", "|", "/", `"`, "'")
	codeText  = strings.NewReplacer("(", "{", ")", "}")
)

// payee makes a payee of a text: on one line, without the characters that begin a comment or a
// note, or quote a payee.
func payee(s string) string {
	s = payeeText.Replace(oneLine(s))
	if s == "" {
		return "-"
	}
	return cut(s, longestText)
}

// code makes a transaction's code of a document's id: a payee without parentheses, which end a
// code.
func code(s string) string { return codeText.Replace(payee(s)) }

// tagValue percent-encodes what would end a tag's value, or what Ledger takes for a date.
func tagValue(s string) string {
	s = encode(s, ",;[]")
	if trimmed := strings.Trim(s, " "); trimmed != s {
		s = strings.ReplaceAll(s, " ", "%20")
	}
	return cut(s, longestTag)
}
