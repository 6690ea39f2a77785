package answers

import (
	"math/big"
	"time"

	"github.com/daybook-dev/daybook/internal/text/minor"
	"github.com/daybook-dev/daybook/models"
)

// OpenItem is what one document has on one account, in one currency.
type OpenItem struct {
	DocumentID   string `json:"documentId"`
	Account      string `json:"account"`
	Role         string `json:"role" enum:"receivable,payable,advance"`
	Type         string `json:"type,omitempty"`
	Direction    string `json:"direction,omitempty"`
	Number       string `json:"number,omitempty"`
	Counterparty string `json:"counterparty,omitempty"`
	IssueDate    string `json:"issueDate,omitempty" format:"date"`
	DueDate      string `json:"dueDate,omitempty" format:"date"`
	Currency     string `json:"currency"`
	Amount       string `json:"amount" doc:"Debits less credits, with the decimals of the currency"`
	Open         string `json:"open" doc:"What of it is open"`
	Group        int64  `json:"group,omitempty" doc:"The group of documents that it belongs to"`
}

// OpenItemOf makes the answer of an item.
func OpenItemOf(i *models.OpenItem) OpenItem {
	return OpenItem{
		DocumentID: i.DocumentID, Account: i.Account, Role: string(i.Role), Type: string(i.Type), Direction: string(i.Direction),
		Number: i.Number, Counterparty: i.Counterparty, IssueDate: i.IssueDate.String(), DueDate: i.DueDate.String(),
		Currency: i.Currency, Amount: minor.Decimal(i.Amount, i.Currency), Open: minor.Decimal(i.Open, i.Currency),
		Group: i.GroupID,
	}
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
	Account  string `json:"account"`
	Currency string `json:"currency"`
	Open     string `json:"open" doc:"Debits less credits, with the decimals of the currency"`
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
			return ItemSum{s.Account, s.Currency, minor.Decimal(s.Open, s.Currency)}
		}),
	}
}

// Unreconciled are the documents that are in no group any more.
type Unreconciled struct {
	Documents []string `json:"documents"`
}

// Match is a pair of documents that were found to belong together.
type Match struct {
	DocumentID string `json:"documentId"`
	OtherID    string `json:"otherId" doc:"The document that it belongs to"`
	MatchedBy  string `json:"matchedBy" enum:"reference,number,amount"`
	Group      int64  `json:"group,omitempty" doc:"The group that both are in now; none in a dry run"`
	Account    string `json:"account"`
	Currency   string `json:"currency"`
	Amount     string `json:"amount" doc:"What was open of the first one"`
}

// Matched are the documents that were found to belong together.
type Matched struct {
	Matches []Match `json:"matches"`
	DryRun  bool    `json:"dryRun,omitempty"`
}

// MatchedOf makes the answer of a matching.
func MatchedOf(list []models.Match, dry bool) Matched {
	return Matched{DryRun: dry, Matches: List(list, func(m *models.Match) Match {
		return Match{m.DocumentID, m.OtherID, string(m.MatchedBy), m.GroupID, m.Account, m.Currency, minor.Decimal(m.Amount, m.Currency)}
	})}
}

// Aged is what is open of a counterparty on an account, and how long it has been due.
type Aged struct {
	Counterparty string `json:"counterparty"`
	Account      string `json:"account"`
	Role         string `json:"role" enum:"receivable,payable,advance"`
	Currency     string `json:"currency"`
	Items        int64  `json:"items"`
	Open         string `json:"open" doc:"Debits less credits, with the decimals of the currency"`
	NotDue       string `json:"notDue"`
	Due30        string `json:"due30" doc:"Has been due for 1 to 30 days"`
	Due60        string `json:"due60" doc:"For 31 to 60 days"`
	Due90        string `json:"due90" doc:"For 61 to 90 days"`
	Longer       string `json:"longer" doc:"For more than 90 days"`
}

// Ageing is what is open on a day, by counterparty, account and currency.
type Ageing struct {
	On   string `json:"on,omitempty" format:"date" doc:"Absent: today, in UTC"`
	Rows []Aged `json:"rows"`
}

// AgeingOf makes the answer of an ageing.
func AgeingOf(on models.Date, list []models.Aged) Ageing {
	return Ageing{On: on.String(), Rows: List(list, func(a *models.Aged) Aged {
		text := func(n *big.Int) string { return minor.Decimal(n, a.Currency) }
		return Aged{
			Counterparty: a.Counterparty, Account: a.Account, Role: string(a.Role), Currency: a.Currency, Items: a.Items,
			Open: text(a.Open), NotDue: text(a.NotDue), Due30: text(a.Due30), Due60: text(a.Due60), Due90: text(a.Due90),
			Longer: text(a.Longer),
		}
	})}
}

// CounterpartyLine is a line of a counterparty's statement.
type CounterpartyLine struct {
	PostingDate string `json:"postingDate,omitempty" format:"date" doc:"Absent: the balance before the first day"`
	DocumentID  string `json:"documentId,omitempty"`
	Type        string `json:"type,omitempty"`
	Number      string `json:"number,omitempty"`
	IssueDate   string `json:"issueDate,omitempty" format:"date"`
	DueDate     string `json:"dueDate,omitempty" format:"date"`
	Account     string `json:"account"`
	Currency    string `json:"currency"`
	Amount      string `json:"amount" doc:"Debits less credits, with the decimals of the currency"`
	Balance     string `json:"balance" doc:"The counterparty's on the account after it"`
	Open        string `json:"open" doc:"What is open of the document on the last day"`
}

// CounterpartyStatement is what a counterparty's documents have posted on accounts with open items.
type CounterpartyStatement struct {
	Counterparty string             `json:"counterparty"`
	Lines        []CounterpartyLine `json:"lines"`
}

// CounterpartyStatementOf makes the answer of a counterparty's statement.
func CounterpartyStatementOf(counterparty string, list []models.CounterpartyLine) CounterpartyStatement {
	return CounterpartyStatement{Counterparty: counterparty, Lines: List(list, func(l *models.CounterpartyLine) CounterpartyLine {
		return CounterpartyLine{
			PostingDate: l.PostingDate.String(), DocumentID: l.DocumentID, Type: string(l.Type), Number: l.Number,
			IssueDate: l.IssueDate.String(), DueDate: l.DueDate.String(), Account: l.Account, Currency: l.Currency,
			Amount: minor.Decimal(l.Amount, l.Currency), Balance: minor.Decimal(l.Balance, l.Currency),
			Open: minor.Decimal(l.Open, l.Currency),
		}
	})}
}
