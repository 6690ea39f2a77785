package answers

import (
	"time"

	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/models"
)

// Entry is one line of what was posted.
type Entry struct {
	ImpactID        int64             `json:"impactId"`
	LineNo          int               `json:"lineNo"`
	DocumentID      string            `json:"documentId"`
	DocumentVersion int64             `json:"documentVersion"`
	Kind            string            `json:"kind" enum:"post,reverse" doc:"Whether it posts, or takes back what was posted"`
	Account         string            `json:"account"`
	Side            string            `json:"side" enum:"debit,credit"`
	AmountMinor     Minor             `json:"amountMinor" doc:"In minor units of the currency"`
	Amount          Decimal           `json:"amount" doc:"The same as a decimal number"`
	Currency        string            `json:"currency"`
	DocumentDate    string            `json:"documentDate" format:"date"`
	PostingDate     string            `json:"postingDate" format:"date"`
	RuleSetVersion  int64             `json:"ruleSetVersion,omitempty"`
	RuleID          string            `json:"ruleId,omitempty"`
	RuleLineID      string            `json:"ruleLineId,omitempty"`
	DocumentLine    int               `json:"documentLine,omitempty" doc:"The place, from 1, in the document's list that the rule's line runs over"`
	Dimensions      map[string]string `json:"dimensions,omitempty" doc:"What statements can be split by, such as a cost centre"`
	Epoch           int               `json:"epoch,omitempty" doc:"Which deliberate repost of the document made it; absent: none"`
	JobID           string            `json:"jobId"`
	Attempt         int               `json:"attempt"`
	WorkflowRunID   string            `json:"workflowRunId,omitempty" doc:"The run of the Temporal workflow that the attempt was part of"`
}

// EntryOf makes the answer of an entry.
func EntryOf(l *ledgerdb.EntryLine) Entry {
	out := Entry{
		ImpactID: l.ImpactID, LineNo: l.LineNo, DocumentID: l.DocumentID, DocumentVersion: l.DocumentVersion,
		Kind: string(l.Kind), Account: l.Account, Side: string(l.Side), Currency: l.Currency,
		DocumentDate: l.DocumentDate.String(), PostingDate: l.PostingDate.String(),
		RuleSetVersion: zeroOf(l.RuleSetVersion), RuleID: l.RuleID, RuleLineID: l.RuleLineID,
		DocumentLine: zeroOf(l.DocumentLine), Dimensions: l.Dimensions, Epoch: l.Epoch, JobID: l.JobID, Attempt: l.Attempt,
		WorkflowRunID: l.WorkflowRunID,
	}
	out.AmountMinor, out.Amount = Amount64(l.Amount, l.Currency)
	return out
}

// EntryList is a page of entries.
type EntryList struct {
	Entries    []Entry `json:"entries"`
	NextCursor string  `json:"nextCursor,omitempty" doc:"For the next page; absent: this is the last one"`
}

// EntryListOf makes the answer of a page of entries.
func EntryListOf(lines []ledgerdb.EntryLine, next string) EntryList {
	return EntryList{Entries: List(lines, EntryOf), NextCursor: next}
}

// LedgerEntry is an entry to an account, and the account's balance in its currency after it: debits
// less credits.
type LedgerEntry struct {
	Entry
	BalanceMinor Minor   `json:"balanceMinor"`
	Balance      Decimal `json:"balance"`
}

// LedgerEntryOf makes the answer of an entry to an account.
func LedgerEntryOf(l *ledgerdb.LedgerLine) LedgerEntry {
	out := LedgerEntry{Entry: EntryOf(&l.EntryLine)}
	out.BalanceMinor, out.Balance = Amount(l.Balance, l.Currency)
	return out
}

// Impact is all that one document version caused, without its entries.
type Impact struct {
	ID              int64     `json:"id"`
	Seq             int       `json:"seq"`
	Kind            string    `json:"kind"`
	DocumentVersion int64     `json:"documentVersion"`
	DocumentDate    string    `json:"documentDate"`
	PostingDate     string    `json:"postingDate"`
	RuleSetVersion  int64     `json:"ruleSetVersion,omitempty"`
	RuleID          string    `json:"ruleId,omitempty"`
	EntryCount      int       `json:"entryCount"`
	NoEntries       string    `json:"noEntries,omitempty" enum:"zero,rule,elsewhere" doc:"Why it posts without an entry: all amounts are zero, its rule posts nothing, or another system has posted the same"`
	Epoch           int       `json:"epoch,omitempty"`
	JobID           string    `json:"jobId"`
	Attempt         int       `json:"attempt"`
	WorkflowRunID   string    `json:"workflowRunId,omitempty"`
	CreatedAt       time.Time `json:"createdAt"`
}

// ImpactOf makes the answer of an impact.
func ImpactOf(m *models.Impact) Impact {
	return Impact{
		ID: m.ID, Seq: m.Seq, Kind: string(m.Kind), DocumentVersion: m.DocumentVersion,
		DocumentDate: m.DocumentDate.String(), PostingDate: m.PostingDate.String(),
		RuleSetVersion: zeroOf(m.RuleSetVersion), RuleID: m.RuleID, EntryCount: m.EntryCount,
		NoEntries: string(m.NoEntries), Epoch: m.Epoch, JobID: m.JobID, Attempt: m.Attempt,
		WorkflowRunID: m.WorkflowRunID, CreatedAt: m.CreatedAt,
	}
}

// ExplainedImpact is an impact with what it consists of.
type ExplainedImpact struct {
	Impact
	// RuleSetName and RuleSetSHA256 are those of the rule set version that made the entries.
	RuleSetName   string  `json:"ruleSetName,omitempty"`
	RuleSetSHA256 string  `json:"ruleSetSha256,omitempty"`
	Entries       []Entry `json:"entries"`
	// Confirmations are the later versions and rule sets under which the impact stood unchanged.
	Confirmations []Confirmation `json:"confirmations"`
}

func explainedImpact(m *listing.ExplainedImpact) ExplainedImpact {
	return ExplainedImpact{
		Impact: ImpactOf(&m.Impact), RuleSetName: m.RuleSetName, RuleSetSHA256: m.RuleSetSHA256,
		Confirmations: List(m.Confirmations, confirmationOf),
		Entries: List(m.Entries, func(e *models.Entry) Entry {
			return EntryOf(&ledgerdb.EntryLine{
				Entry: *e, DocumentID: m.DocumentID, DocumentVersion: m.DocumentVersion, Kind: m.Kind,
				PostingDate: m.PostingDate, DocumentDate: m.DocumentDate,
				RuleSetVersion: m.RuleSetVersion, RuleID: m.RuleID, Epoch: m.Epoch, JobID: m.JobID, Attempt: m.Attempt,
				WorkflowRunID: m.WorkflowRunID,
			})
		}),
	}
}

// Confirmation is a later version, or rule set, under which an impact stood unchanged.
type Confirmation struct {
	DocumentVersion int64     `json:"documentVersion"`
	RuleSetVersion  int64     `json:"ruleSetVersion"`
	JobID           string    `json:"jobId"`
	Attempt         int       `json:"attempt"`
	WorkflowRunID   string    `json:"workflowRunId,omitempty"`
	CreatedAt       time.Time `json:"createdAt"`
}

func confirmationOf(c *models.Confirmation) Confirmation {
	return Confirmation{
		DocumentVersion: c.DocumentVersion, RuleSetVersion: c.RuleSetVersion, JobID: c.JobID, Attempt: c.Attempt,
		WorkflowRunID: c.WorkflowRunID, CreatedAt: c.CreatedAt,
	}
}

// AccountBalance is what was posted to an account in a currency.
type AccountBalance struct {
	Account      string  `json:"account,omitempty" doc:"Absent: the total of the currency"`
	Name         string  `json:"name,omitempty"`
	Type         string  `json:"type,omitempty"`
	Currency     string  `json:"currency"`
	OpeningMinor Minor   `json:"openingMinor" doc:"Before the span, in minor units" example:"0"`
	DebitMinor   Minor   `json:"debitMinor"`
	CreditMinor  Minor   `json:"creditMinor" example:"0"`
	ClosingMinor Minor   `json:"closingMinor" doc:"After the span"`
	Opening      Decimal `json:"opening" doc:"The same as decimal numbers" example:"0.00"`
	Debit        Decimal `json:"debit"`
	Credit       Decimal `json:"credit" example:"0.00"`
	Closing      Decimal `json:"closing"`
}

// AccountBalanceOf makes the answer of what was posted to an account.
func AccountBalanceOf(b *ledgerdb.SpanBalance) AccountBalance {
	out := AccountBalance{Account: b.Account, Name: b.Name, Type: string(b.Type), Currency: b.Currency}
	out.OpeningMinor, out.Opening = Amount(b.Opening, b.Currency)
	out.DebitMinor, out.Debit = Amount(b.Debit, b.Currency)
	out.CreditMinor, out.Credit = Amount(b.Credit, b.Currency)
	out.ClosingMinor, out.Closing = Amount(b.Closing, b.Currency)
	return out
}

// TrialBalance is what was posted, by account, and the total of each currency.
type TrialBalance struct {
	OrgID    string           `json:"orgId,omitempty" required:"true" doc:"The organization"`
	From     string           `json:"from,omitempty" format:"date" doc:"The first day of the span; absent: from the beginning"`
	To       string           `json:"to,omitempty" format:"date" doc:"The last day of the span; absent: to the end"`
	Accounts []AccountBalance `json:"accounts"`
	Totals   []AccountBalance `json:"totals" doc:"A row a currency"`
	Balanced bool             `json:"balanced" doc:"Whether debits equal credits in each currency, before, in and after the span"`
}

// TrialBalanceOf makes the answer of a trial balance that the filter asked for; without an
// organization it is of all together.
func TrialBalanceOf(f *ledgerdb.BalanceFilter, t *ledgerdb.Trial) TrialBalance {
	return TrialBalance{
		OrgID: f.OrgID, From: f.From.String(), To: f.To.String(), Accounts: List(t.Accounts, AccountBalanceOf),
		Totals: List(t.Totals, AccountBalanceOf), Balanced: t.Balanced,
	}
}
