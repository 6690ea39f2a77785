package posting

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/daybook-dev/daybook/models"
)

// JournalRuleID is the rule id of the impact of a document that posts what it says itself, and the
// rule line id of its entries.
const JournalRuleID = "journal"

// Journal returns what a document with content.journal posts: no rule is asked, so an organization
// needs none. Its posting date is the value date, or else the issue date. Every error is an *Error;
// its code is DOCUMENT_INVALID, UNBALANCED or UNKNOWN_ACCOUNT. A nil chart has no account.
func Journal(doc *models.Document, chart Chart) (*Impact, error) {
	if chart == nil {
		chart = Accounts(nil)
	}
	fail := func(code models.ErrorCode, format string, args ...any) error {
		return &Error{Code: code, Rule: JournalRuleID, Message: fmt.Sprintf(format, args...)}
	}
	if err := checkDates(doc); err != nil {
		return nil, fail(models.CodeDocumentInvalid, "%v", err)
	}
	if err := doc.Content.Dimensions.Check(); err != nil {
		return nil, fail(models.CodeDocumentInvalid, "%v", err)
	}
	j := doc.Content.Journal
	switch {
	case doc.Content.StatesAmount():
		return nil, fail(models.CodeDocumentInvalid, "the document has a journal and states %s as well; leave one of both out",
			doc.Content.Amounts()[0].Field)
	case len(j.Entries) == 0:
		return nil, fail(models.CodeDocumentInvalid, "the journal has no entries")
	case strings.TrimSpace(j.Reason) == "" || strings.TrimSpace(j.By) == "":
		return nil, fail(models.CodeDocumentInvalid, "the journal does not say why (reason) or who wrote it (by)")
	}
	m := &Impact{
		RuleID: JournalRuleID, DocumentDate: doc.IssueDate, PostingDate: valueDate(doc),
		Entries: make([]Entry, 0, len(j.Entries)),
	}
	line, issued := JournalRuleID, doc.IssueDate
	if j.YearEnd {
		// It moves what was posted while the currency took documents, or reversed later.
		line, issued = YearEndLineID, models.Date{}
	}
	var sums balance
	for i, e := range j.Entries {
		entry := Entry{
			Account: e.Account, Side: models.Debit, Amount: e.Amount, Currency: cmp.Or(e.Currency, doc.Currency),
			RuleLineID: line, DocumentLine: i + 1, Dimensions: doc.Content.Dimensions.With(e.Dimensions),
		}
		if e.Amount < 0 {
			entry.Side, entry.Amount = models.Credit, -e.Amount
		}
		err := e.Dimensions.Check()
		if err == nil {
			err = models.CheckCurrency(entry.Currency, issued)
		}
		switch {
		case err != nil:
			return nil, fail(models.CodeDocumentInvalid, "entry %d: %v", i+1, err)
		case e.Amount == 0 || e.Amount == math.MinInt64:
			return nil, fail(models.CodeDocumentInvalid, "entry %d: the amount is %d", i+1, e.Amount)
		case !chart.HasAccount(e.Account):
			return nil, fail(models.CodeUnknownAccount, "entry %d: account %q is not in the chart; add it or correct the entry",
				i+1, e.Account)
		case !chart.Allows(e.Account, entry.Currency):
			return nil, fail(models.CodeUnknownAccount, "entry %d: account %q does not take %s", i+1, e.Account, entry.Currency)
		case !sums.add(entry):
			return nil, fail(models.CodeDocumentInvalid, "entry %d: the sum is out of range", i+1)
		}
		m.Entries = append(m.Entries, entry)
	}
	for _, s := range sums {
		if s.sum != 0 {
			return nil, fail(models.CodeUnbalanced, "%s", unbalanced(s.sum, s.currency))
		}
	}
	return m, nil
}

// unbalanced says which side is greater, and by how much; sum is debits less credits.
func unbalanced(sum int64, currency string) string {
	more, less := "debits", "credits"
	if sum < 0 {
		more, less = less, more
	}
	return fmt.Sprintf("%s are %s more than %s", more, strings.TrimPrefix(models.FormatMinor(sum, currency), "-"), less)
}
