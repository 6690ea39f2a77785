package answers

import (
	"time"

	"github.com/daybook-dev/daybook/models"
)

// OpenItem is what one document has on one account, in one currency.
type OpenItem struct {
	DocumentID   string  `json:"documentId"`
	Account      string  `json:"account"`
	Role         string  `json:"role" enum:"receivable,payable,advance"`
	Type         string  `json:"type,omitempty"`
	Direction    string  `json:"direction,omitempty"`
	Number       string  `json:"number,omitempty"`
	Counterparty string  `json:"counterparty,omitempty"`
	IssueDate    string  `json:"issueDate,omitempty" format:"date"`
	DueDate      string  `json:"dueDate,omitempty" format:"date"`
	Currency     string  `json:"currency"`
	AmountMinor  Minor   `json:"amountMinor" doc:"Debits less credits, in minor units"`
	Amount       Decimal `json:"amount" doc:"The same as a decimal number"`
	OpenMinor    Minor   `json:"openMinor" doc:"What of it is open, in minor units"`
	Open         Decimal `json:"open" doc:"The same as a decimal number"`
	Group        int64   `json:"group,omitempty" doc:"The group of documents that it belongs to"`
}

// OpenItemOf makes the answer of an item.
func OpenItemOf(i *models.OpenItem) OpenItem {
	out := OpenItem{
		DocumentID: i.DocumentID, Account: i.Account, Role: string(i.Role), Type: string(i.Type), Direction: string(i.Direction),
		Number: i.Number, Counterparty: i.Counterparty, IssueDate: i.IssueDate.String(), DueDate: i.DueDate.String(),
		Currency: i.Currency, Group: i.GroupID,
	}
	out.AmountMinor, out.Amount = Amount(i.Amount, i.Currency)
	out.OpenMinor, out.Open = Amount(i.Open, i.Currency)
	return out
}

// OpenItemList is a page of open items.
type OpenItemList struct {
	Items      []OpenItem `json:"items"`
	NextCursor string     `json:"nextCursor,omitempty" doc:"For the next page; absent: this is the last one"`
}

// OpenItemListOf makes the answer of a page of open items.
func OpenItemListOf(list []models.OpenItem, next string) OpenItemList {
	return OpenItemList{Items: List(list, OpenItemOf), NextCursor: next}
}

// GroupedDocument is a document that is in a group.
type GroupedDocument struct {
	DocumentID string    `json:"documentId"`
	MatchedBy  string    `json:"matchedBy" enum:"hand,reference,number,amount"`
	Reason     string    `json:"reason,omitempty"`
	Actor      string    `json:"actor" doc:"Who put it into the group"`
	CreatedAt  time.Time `json:"createdAt"`
}

// ItemSum is what is open of a group on an account.
type ItemSum struct {
	Account   string  `json:"account"`
	Currency  string  `json:"currency"`
	OpenMinor Minor   `json:"openMinor" doc:"Debits less credits, in minor units"`
	Open      Decimal `json:"open" doc:"The same as a decimal number"`
}

// ItemGroup is a group of documents that belong together.
type ItemGroup struct {
	Group     int64             `json:"group"`
	Closed    bool              `json:"closed" doc:"Nothing is open of it"`
	Documents []GroupedDocument `json:"documents"`
	Items     []OpenItem        `json:"items" doc:"Those of its documents, also those of which nothing is open"`
	Open      []ItemSum         `json:"open"`
}

// ItemGroupOf makes the answer of a group.
func ItemGroupOf(g *models.ItemGroup) ItemGroup {
	return ItemGroup{
		Group: g.ID, Closed: g.Closed, Items: List(g.Items, OpenItemOf),
		Documents: List(g.Documents, func(r *models.Reconciled) GroupedDocument {
			return GroupedDocument{r.DocumentID, string(r.MatchedBy), r.Reason, r.Actor, r.CreatedAt}
		}),
		Open: List(g.Open, func(s *models.ItemSum) ItemSum {
			one := ItemSum{Account: s.Account, Currency: s.Currency}
			one.OpenMinor, one.Open = Amount(s.Open, s.Currency)
			return one
		}),
	}
}

// Unreconciled are the documents that are in no group any more.
type Unreconciled struct {
	Documents []string `json:"documents"`
}

// Match is a pair of documents that were found to belong together.
type Match struct {
	DocumentID  string  `json:"documentId"`
	OtherID     string  `json:"otherId" doc:"The document that it belongs to"`
	MatchedBy   string  `json:"matchedBy" enum:"reference,number,amount"`
	Group       int64   `json:"group,omitempty" doc:"The group that both are in now; none in a dry run"`
	Account     string  `json:"account"`
	Currency    string  `json:"currency"`
	AmountMinor Minor   `json:"amountMinor" doc:"What was open of the first one, in minor units"`
	Amount      Decimal `json:"amount" doc:"The same as a decimal number"`
}

// Matched are the documents that were found to belong together.
type Matched struct {
	Matches []Match `json:"matches"`
	DryRun  bool    `json:"dryRun,omitempty"`
}

// MatchedOf makes the answer of a matching.
func MatchedOf(list []models.Match, dry bool) Matched {
	return Matched{DryRun: dry, Matches: List(list, func(m *models.Match) Match {
		one := Match{
			DocumentID: m.DocumentID, OtherID: m.OtherID, MatchedBy: string(m.MatchedBy), Group: m.GroupID, Account: m.Account,
			Currency: m.Currency,
		}
		one.AmountMinor, one.Amount = Amount(m.Amount, m.Currency)
		return one
	})}
}

// Aged is what is open of a counterparty on an account, and how long it has been due.
type Aged struct {
	Counterparty string  `json:"counterparty"`
	Account      string  `json:"account"`
	Role         string  `json:"role" enum:"receivable,payable,advance"`
	Currency     string  `json:"currency"`
	Items        int64   `json:"items"`
	OpenMinor    Minor   `json:"openMinor" doc:"Debits less credits, in minor units"`
	NotDueMinor  Minor   `json:"notDueMinor"`
	Due30Minor   Minor   `json:"due30Minor" doc:"Has been due for 1 to 30 days"`
	Due60Minor   Minor   `json:"due60Minor" doc:"For 31 to 60 days"`
	Due90Minor   Minor   `json:"due90Minor" doc:"For 61 to 90 days"`
	LongerMinor  Minor   `json:"longerMinor" doc:"For more than 90 days"`
	Open         Decimal `json:"open" doc:"The same as decimal numbers"`
	NotDue       Decimal `json:"notDue"`
	Due30        Decimal `json:"due30"`
	Due60        Decimal `json:"due60"`
	Due90        Decimal `json:"due90"`
	Longer       Decimal `json:"longer"`
}

// Ageing is what is open on a day, by counterparty, account and currency.
type Ageing struct {
	On   string `json:"on,omitempty" format:"date" doc:"Absent: today, in UTC"`
	Rows []Aged `json:"rows"`
}

// AgeingOf makes the answer of an ageing.
func AgeingOf(on models.Date, list []models.Aged) Ageing {
	return Ageing{On: on.String(), Rows: List(list, func(a *models.Aged) Aged {
		out := Aged{Counterparty: a.Counterparty, Account: a.Account, Role: string(a.Role), Currency: a.Currency, Items: a.Items}
		out.OpenMinor, out.Open = Amount(a.Open, a.Currency)
		out.NotDueMinor, out.NotDue = Amount(a.NotDue, a.Currency)
		out.Due30Minor, out.Due30 = Amount(a.Due30, a.Currency)
		out.Due60Minor, out.Due60 = Amount(a.Due60, a.Currency)
		out.Due90Minor, out.Due90 = Amount(a.Due90, a.Currency)
		out.LongerMinor, out.Longer = Amount(a.Longer, a.Currency)
		return out
	})}
}

// CounterpartyLine is a line of a counterparty's statement.
type CounterpartyLine struct {
	PostingDate  string  `json:"postingDate,omitempty" format:"date" doc:"Absent: the balance before the first day"`
	DocumentID   string  `json:"documentId,omitempty"`
	Type         string  `json:"type,omitempty"`
	Number       string  `json:"number,omitempty"`
	IssueDate    string  `json:"issueDate,omitempty" format:"date"`
	DueDate      string  `json:"dueDate,omitempty" format:"date"`
	Account      string  `json:"account"`
	Currency     string  `json:"currency"`
	AmountMinor  Minor   `json:"amountMinor" doc:"Debits less credits, in minor units"`
	Amount       Decimal `json:"amount" doc:"The same as a decimal number"`
	BalanceMinor Minor   `json:"balanceMinor" doc:"The counterparty's on the account after it, in minor units"`
	Balance      Decimal `json:"balance" doc:"The same as a decimal number"`
	OpenMinor    Minor   `json:"openMinor" doc:"What is open of the document on the last day, in minor units"`
	Open         Decimal `json:"open" doc:"The same as a decimal number"`
}

// CounterpartyStatement is what a counterparty's documents have posted on accounts with open items.
type CounterpartyStatement struct {
	Counterparty string             `json:"counterparty"`
	Lines        []CounterpartyLine `json:"lines"`
}

// CounterpartyStatementOf makes the answer of a counterparty's statement.
func CounterpartyStatementOf(counterparty string, list []models.CounterpartyLine) CounterpartyStatement {
	return CounterpartyStatement{Counterparty: counterparty, Lines: List(list, func(l *models.CounterpartyLine) CounterpartyLine {
		out := CounterpartyLine{
			PostingDate: l.PostingDate.String(), DocumentID: l.DocumentID, Type: string(l.Type), Number: l.Number,
			IssueDate: l.IssueDate.String(), DueDate: l.DueDate.String(), Account: l.Account, Currency: l.Currency,
		}
		out.AmountMinor, out.Amount = Amount(l.Amount, l.Currency)
		out.BalanceMinor, out.Balance = Amount(l.Balance, l.Currency)
		out.OpenMinor, out.Open = Amount(l.Open, l.Currency)
		return out
	})}
}
