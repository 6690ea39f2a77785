package answers

import (
	"time"

	"github.com/daybook-dev/daybook/admin/books"
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
func ItemGroupOf(g *books.ItemGroup) ItemGroup {
	return ItemGroup{
		Group: g.ID, Closed: g.Closed, Items: List(g.Items, OpenItemOf),
		Documents: List(g.Documents, func(r *models.Reconciled) GroupedDocument {
			return GroupedDocument{r.DocumentID, string(r.MatchedBy), r.Reason, r.Actor, r.CreatedAt}
		}),
		Open: List(g.Open, func(s *books.ItemSum) ItemSum {
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
	Group      int64  `json:"group"`
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
