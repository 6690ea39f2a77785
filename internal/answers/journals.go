package answers

import (
	"cmp"
	"time"

	"github.com/daybook-dev/daybook/models"
)

// JournalEntry is a line of a journal entry that a person wrote.
type JournalEntry struct {
	Account     string            `json:"account"`
	AmountMinor Minor             `json:"amountMinor" doc:"In minor units of the currency: a debit is positive, a credit negative"`
	Amount      Decimal           `json:"amount" doc:"The same as a decimal number"`
	Currency    string            `json:"currency"`
	Note        string            `json:"note,omitempty"`
	Dimensions  map[string]string `json:"dimensions,omitempty" doc:"What statements can be split by, such as a cost centre"`
}

// Journal is a journal entry that a person wrote.
type Journal struct {
	DocumentID   string            `json:"documentId"`
	Date         string            `json:"date" format:"date"`
	Number       string            `json:"number,omitempty"`
	Counterparty string            `json:"counterparty,omitempty"`
	Reason       string            `json:"reason" doc:"Why it is posted"`
	By           string            `json:"by" doc:"Who wrote it"`
	Dimensions   map[string]string `json:"dimensions,omitempty" doc:"Those of all its entries"`
	Entries      []JournalEntry    `json:"entries"`
	Version      int64             `json:"version"`
	CreatedAt    time.Time         `json:"createdAt"`
	DeletedAt    *time.Time        `json:"deletedAt,omitempty" doc:"Absent: it is not deleted"`
}

// JournalOf makes the answer of a document with a journal.
func JournalOf(d *models.Document) Journal {
	c := &d.Content
	j := Journal{
		DocumentID: d.ID, Date: d.IssueDate.String(), Number: c.Number, Counterparty: c.Counterparty, Dimensions: c.Dimensions,
		Version: d.AccountingReadyVersion, CreatedAt: d.CreatedAt, DeletedAt: d.DeletedAt, Entries: []JournalEntry{},
	}
	if c.Journal == nil {
		return j
	}
	j.Reason, j.By = c.Journal.Reason, c.Journal.By
	j.Entries = List(c.Journal.Entries, func(e *models.JournalEntry) JournalEntry {
		out := JournalEntry{Account: e.Account, Currency: cmp.Or(e.Currency, d.Currency), Note: e.Note, Dimensions: e.Dimensions}
		out.AmountMinor, out.Amount = Amount64(e.Amount, out.Currency)
		return out
	})
	return j
}

// JournalList is a page of journals.
type JournalList struct {
	Journals   []Journal `json:"journals"`
	NextCursor string    `json:"nextCursor,omitempty" doc:"For the next page; absent: this is the last one"`
}

// JournalListOf makes the answer of a page of journals.
func JournalListOf(list []models.Document, next string) JournalList {
	return JournalList{Journals: List(list, JournalOf), NextCursor: next}
}

// JournalChange is what writing or deleting a journal led to.
type JournalChange struct {
	OrgID       string `json:"orgId"`
	DocumentID  string `json:"documentId"`
	Changed     bool   `json:"changed" doc:"Whether anything was changed"`
	Version     int64  `json:"version,omitempty" doc:"The version that a worker posts, or takes back"`
	JobID       string `json:"jobId,omitempty" doc:"The job that does it"`
	PostingDate string `json:"postingDate,omitempty" format:"date" doc:"The day on which it will be posted: the first open day after its date, if that is closed"`
}
