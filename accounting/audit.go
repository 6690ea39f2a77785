package accounting

import (
	"math/big"
	"time"

	"github.com/daybook-dev/daybook/models"
)

// AuditOptions say what workers.Audit checks.
type AuditOptions struct {
	// OrgID is the organization; empty: all.
	OrgID string
	// Limit is how many findings of each check are listed; all are counted. Default 20.
	Limit int
}

// Finding is one thing that is wrong.
type Finding struct {
	OrgID      string `json:"org_id"`
	DocumentID string `json:"document_id,omitempty"`
	// ImpactID is 0 where the finding is not about an impact.
	ImpactID int64 `json:"impact_id,omitempty"`
	// Detail says what is wrong in words.
	Detail string `json:"detail"`
}

// CheckResult is the result of one check of the audit.
type CheckResult struct {
	// Kind names the check: "unbalanced_impact".
	Kind string `json:"kind"`
	// Rule says what must hold.
	Rule string `json:"rule"`
	// Count is how often it does not hold.
	Count int64 `json:"count"`
	// Findings are the first of them.
	Findings []Finding `json:"findings"`
}

// AuditFigures count what an audit checked.
type AuditFigures struct {
	Organizations int64 `json:"organizations"`
	// Sources count what there is of each source on record, and say whether its documents were read.
	Sources []SourceFigures `json:"sources"`
	// Documents counts the rows of daybook.documents.
	Documents int64 `json:"documents"`
	// Ready counts the documents that are marked ready and not deleted.
	Ready int64 `json:"ready"`
	// Queues count the jobs of each queue, the accounting queue first.
	Queues  []QueueFigures `json:"queues"`
	Impacts int64          `json:"impacts"`
	// Live counts the documents that are posted.
	Live          int64 `json:"live"`
	Reversals     int64 `json:"reversals"`
	Confirmations int64 `json:"confirmations"`
	Entries       int64 `json:"entries"`
	// Totals are the sums of each currency, in the order of the codes.
	Totals []CurrencyTotal `json:"totals"`
}

// CurrencyTotal is what was debited and credited in a currency, in minor units.
type CurrencyTotal struct {
	Currency string   `json:"currency"`
	Debit    *big.Int `json:"debit_minor"`
	Credit   *big.Int `json:"credit_minor"`
}

// AuditReport is what an audit found, in one snapshot of the database.
type AuditReport struct {
	// At is the database's clock.
	At time.Time `json:"at"`
	// OrgID is the organization; empty: all.
	OrgID   string        `json:"org_id,omitempty"`
	Figures AuditFigures  `json:"figures"`
	Checks  []CheckResult `json:"checks"`
	// Warnings are what need not be wrong, and a person should look at. Wrong does not count them.
	Warnings []CheckResult `json:"warnings"`
}

// Wrong counts the findings of all checks.
func (r AuditReport) Wrong() int64 {
	var n int64
	for _, c := range r.Checks {
		n += c.Count
	}
	return n
}

// SourceFigures are what the ledger holds of the documents of one source.
type SourceFigures struct {
	// Name is the source's.
	Name string `json:"name"`
	// Checked says that the documents of the source were compared with what is posted of them. What
	// is posted is checked in any case.
	Checked bool `json:"checked"`
	// Organizations counts those on record with the source that have a document, a job or an impact,
	// and those that Daybook knows.
	Organizations int64 `json:"organizations"`
	// Documents counts the documents that were read; 0 where Checked is false.
	Documents int64 `json:"documents"`
	// Locked counts the documents that could not be compared, because another transaction held them.
	// daybook.documents is read without locks.
	Locked int64 `json:"locked,omitempty"`
	// OpenJobs and FailedJobs count accounting jobs; Live counts the documents that are posted.
	OpenJobs   int64 `json:"open_jobs"`
	FailedJobs int64 `json:"failed_jobs"`
	Impacts    int64 `json:"impacts"`
	Live       int64 `json:"live"`
}

// QueueFigures count the jobs of a queue that an audit checked.
type QueueFigures struct {
	// Kind is the queue's.
	Kind models.Kind `json:"kind"`
	// Open jobs are pending or leased; failed ones are dead letters.
	Open   int64 `json:"open"`
	Failed int64 `json:"failed"`
}
