package answers

import (
	"time"

	"github.com/daybook-dev/daybook/models"
)

// Change is what a request about one job did.
type Change struct {
	JobID  string `json:"jobId"`
	Result string `json:"result" enum:"enqueued,coalesced,requeued,rescheduled,unchanged,cancelled,cancelling,edited" doc:"What the request did"`
	Reason string `json:"reason,omitempty" doc:"Of a job that was retried, edited or cancelled and is unchanged: why"`
}

// EnqueuedJob is the job that a request led to.
type EnqueuedJob struct {
	ID            string `json:"id"`
	Duplicate     bool   `json:"duplicate" doc:"It was there already, because of its key, because it is unique, or because it is debounced"`
	CallbackToken string `json:"callbackToken,omitempty" doc:"For the other system, which answers by POST /api/callbacks/{token}; it is told once, and not of a duplicate"`
	Result        string `json:"result" enum:"enqueued,unchanged,rescheduled,coalesced,replaced" doc:"What the request did: rescheduled, the unique job that was there is due earlier now, or the debounced one has its time anew; coalesced, it runs and is worked again after its attempt; replaced, the debounced job that waits has a new payload"`
}

// EnqueuedTask is the task that a request made.
type EnqueuedTask struct {
	ID int64 `json:"id"`
}

// BulkOperation is how far a request for many jobs has come.
type BulkOperation struct {
	OperationID string     `json:"operationId,omitempty" doc:"For GET /api/bulk-operations/{id}; absent with dryRun"`
	Action      string     `json:"action" enum:"retry,cancel,edit"`
	Matched     int        `json:"matched" doc:"How many jobs the filter meant when the request began"`
	Changed     int        `json:"changed" doc:"How many of them are pending again, edited or cancelled; with dryRun of an edit: how many would be edited"`
	Left        int        `json:"left" doc:"How many were left alone, because another transaction changed or locked them meanwhile, because the patch of an edit does not apply or changes nothing, or for what leftOpen and leftQueue count"`
	LeftOpen    int        `json:"leftOpen" doc:"How many of those are to be the only open job of their payload or schedule, while another one is open"`
	LeftQueue   int        `json:"leftQueue" doc:"How many of those are in a named queue that was deleted"`
	DryRun      bool       `json:"dryRun" doc:"They were only counted"`
	Finished    bool       `json:"finished" doc:"Nothing is left to be changed"`
	CreatedAt   *time.Time `json:"createdAt,omitempty"`
	FinishedAt  *time.Time `json:"finishedAt,omitempty"`
}

// BulkOperationOf makes the answer of a request for many jobs.
func BulkOperationOf(op *models.BulkOperation, dryRun bool) BulkOperation {
	out := BulkOperation{
		OperationID: op.ID, Action: string(op.Action), Matched: op.Matched, Changed: op.Changed, Left: op.LeftAlone,
		LeftOpen: op.LeftOpen, LeftQueue: op.LeftQueue,
		DryRun: dryRun, Finished: dryRun || op.FinishedAt != nil, FinishedAt: op.FinishedAt,
	}
	if !dryRun {
		out.CreatedAt = &op.CreatedAt
	}
	return out
}
