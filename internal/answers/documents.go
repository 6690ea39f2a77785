package answers

import (
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/text/cursor"
)

// Document is a business document without its content.
type Document struct {
	OrgID        string     `json:"orgId"`
	ID           string     `json:"id"`
	Source       string     `json:"source" doc:"Where the organization's documents are read: daybook, or the name of a source of the application's. A document of the application's own tables has here what its job and its impacts say"`
	Type         string     `json:"type,omitempty" doc:"This and the fields up to currency are absent for a document that is not in daybook.documents"`
	Direction    string     `json:"direction,omitempty" enum:"in,out"`
	Currency     string     `json:"currency,omitempty"`
	Number       string     `json:"number,omitempty"`
	Counterparty string     `json:"counterparty,omitempty"`
	AmountMinor  Minor      `json:"amountMinor,omitempty" doc:"In lists: what it comes to in minor units of the currency: its total, else what is payable, else the amount of a payment, else the debits of a journal"`
	Amount       Decimal    `json:"amount,omitempty" doc:"The same as a decimal number"`
	IssueDate    string     `json:"issueDate,omitempty" format:"date" doc:"Absent: it is not in daybook.documents, and was never posted"`
	ValueDate    string     `json:"valueDate,omitempty" format:"date"`
	Version      int64      `json:"version" doc:"It grows when the document is marked ready, not ready or deleted; of a document of the application's own tables, the newest that was asked for"`
	ReadyAt      *time.Time `json:"readyAt,omitempty" doc:"When it was marked ready; absent: it is not, or it is not in daybook.documents"`
	DeletedAt    *time.Time `json:"deletedAt,omitempty"`
	CreatedAt    *time.Time `json:"createdAt,omitempty"`
	UpdatedAt    *time.Time `json:"updatedAt,omitempty"`
	NoEntries    string     `json:"noEntries,omitempty" enum:"zero,rule,elsewhere" doc:"Why it is posted without an entry, as in the posting"`
	ImportID     int64      `json:"importId,omitempty" doc:"The import that wrote it last; absent: none did"`
}

// DocumentOf makes the answer of a document of a list; source is where the organization's documents
// are read.
func DocumentOf(org, source string, d *ledgerdb.DocumentLine) Document {
	out := Document{
		OrgID: org, ID: d.ID, Source: source, Type: string(d.Type), Direction: string(d.Direction), Currency: d.Currency,
		IssueDate: d.Date.String(),
		ValueDate: d.ValueDate.String(), Version: d.Version, ReadyAt: d.ReadyAt, DeletedAt: d.DeletedAt,
		CreatedAt: d.CreatedAt, UpdatedAt: d.UpdatedAt,
		NoEntries: string(d.NoEntries), ImportID: zeroOf(d.ImportID), Number: d.Number, Counterparty: d.Counterparty,
	}
	out.AmountMinor, out.Amount = Amount(d.Amount, d.Currency)
	if d.Here {
		out.Source = store.SourceDaybook
	}
	return out
}

// explained is a document as its row has it, or else as its job and its last impact do.
func explained(e *listing.Explanation) Document {
	out := Document{OrgID: e.OrgID, ID: e.DocumentID, Source: e.Source, NoEntries: string(e.NoEntries())}
	if e.Job != nil {
		out.Version = e.Job.VersionHint
	}
	if n := len(e.Impacts); n > 0 {
		out.IssueDate, out.Version = e.Impacts[n-1].DocumentDate.String(), max(out.Version, e.Impacts[n-1].DocumentVersion)
	}
	d := e.Document
	if d == nil {
		return out
	}
	out = Document{
		OrgID: d.OrgID, ID: d.ID, Source: store.SourceDaybook, Type: string(d.Type), Direction: string(d.Direction),
		Currency: d.Currency, IssueDate: d.IssueDate.String(), Number: d.Content.Number, Counterparty: d.Content.Counterparty,
		Version: d.AccountingReadyVersion, ReadyAt: d.AccountingReadyAt, DeletedAt: d.DeletedAt, CreatedAt: &d.CreatedAt,
		UpdatedAt: &d.UpdatedAt,
		NoEntries: out.NoEntries, ImportID: zeroOf(d.ImportID),
	}
	if d.ValueDate != nil {
		out.ValueDate = d.ValueDate.String()
	}
	return out
}

// ReceivedDocument is what became of a document that was sent.
type ReceivedDocument struct {
	DocumentID string `json:"documentId"`
	Type       string `json:"type"`
	Result     string `json:"result" enum:"inserted,changed,unchanged" doc:"inserted: it is new; changed: it was there with other content; unchanged: it was there already"`
	Version    int64  `json:"version,omitempty" doc:"The version that is to be posted; absent: it is unchanged"`
	JobID      string `json:"jobId,omitempty" doc:"The job that posts it; absent: it is unchanged"`
	ImportID   int64  `json:"importId,omitempty" doc:"The import that wrote it, by which it can be taken back; absent: it was there, and no import wrote it"`
}

// Posting is how a document stands in the queue and the ledger.
type Posting struct {
	JobID         string `json:"jobId,omitempty" doc:"Absent, as the state: the job was removed, and the ledger has what it posted"`
	State         string `json:"state,omitempty" enum:"pending,leased,completed,failed,cancelled" doc:"The job's"`
	Version       int64  `json:"version" doc:"The newest document version that was asked for"`
	PostedVersion *int64 `json:"postedVersion,omitempty" doc:"The version that is posted; absent: none is"`
	ImpactID      *int64 `json:"impactId,omitempty" doc:"The impact that posts it"`
	NoEntries     string `json:"noEntries,omitempty" enum:"zero,rule,elsewhere" doc:"Why it is posted without an entry: all its amounts are zero, its rule posts nothing, or another system has posted the same. Absent: it has entries, or is not posted"`
	ErrorCode     string `json:"errorCode,omitempty"`
	Error         string `json:"error,omitempty"`
}

// postingOf is how a document stands; nil: it was never enqueued.
func postingOf(e *listing.Explanation) *Posting {
	p := &Posting{PostedVersion: e.PostedVersion, ImpactID: e.LiveImpactID, NoEntries: string(e.NoEntries())}
	n := len(e.Impacts)
	switch j := e.Job; {
	case j != nil:
		p.JobID, p.State, p.Version, p.ErrorCode, p.Error = j.ID, string(j.State), j.VersionHint, Text(j.LastErrorCode),
			Text(j.LastError)
	case n == 0:
		return nil
	case e.PostedVersion != nil:
		p.Version = *e.PostedVersion
	default:
		p.Version = e.Impacts[n-1].DocumentVersion
	}
	return p
}

// DocumentDetail is a document with its content, and what became of it.
type DocumentDetail struct {
	Document
	Content Object   `json:"content,omitempty" doc:"Lines, taxes and totals as the document states them, in minor units; absent: it is not in daybook.documents"`
	Posting *Posting `json:"posting,omitempty" doc:"Absent: it was never enqueued"`
}

// DocumentDetailOf makes the answer of a document with what became of it.
func DocumentDetailOf(e *listing.Explanation) (DocumentDetail, error) {
	out := DocumentDetail{Document: explained(e), Posting: postingOf(e)}
	if e.Document == nil {
		return out, nil
	}
	var err error
	out.Content, err = ObjectOf(e.Document.Content)
	return out, err
}

// Explanation is a document with all that says how it came to be posted.
type Explanation struct {
	DocumentDetail
	Job       *AccountingJob   `json:"job,omitempty"`
	Elsewhere *PostedElsewhere `json:"elsewhere,omitempty"`
	// History and NextCursor are those of AccountingJobDetail.
	History    []Attempt `json:"history"`
	NextCursor string    `json:"nextCursor,omitempty"`
	// Impacts is the chain, the first one first.
	Impacts []ExplainedImpact `json:"impacts"`
}

// ExplanationOf makes the answer of what is known of how a document was posted, all of which was
// read.
func ExplanationOf(e *listing.Explanation) (Explanation, error) {
	detail, err := DocumentDetailOf(e)
	out := Explanation{
		DocumentDetail: detail, History: List(e.Attempts, AttemptOf),
		Impacts: List(e.Impacts, explainedImpact),
	}
	if e.Job != nil {
		out.Job = new(AccountingJobOf(e.Job))
	}
	if e.Elsewhere != nil && err == nil {
		out.Elsewhere = new(PostedElsewhere)
		*out.Elsewhere, err = PostedElsewhereOf(e.Elsewhere)
	}
	if e.MoreAttempts {
		out.NextCursor = cursor.Of(e.Attempts[len(e.Attempts)-1].ID)
	}
	return out, err
}
