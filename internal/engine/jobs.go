package engine

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// Handlers works background jobs: each by itself and for as long as it takes, or many of a type in one transaction.
type Handlers interface {
	// Handling says how jobs of a type are worked; ok is false when there is no handler for it.
	Handling(jobType string) (h Handling, ok bool)
	// Work works one job outside of transactions.
	Work(ctx context.Context, job store.Job, progress Progress) Attempt
	// WorkMany works jobs of one type in the transaction that settles them. An error undoes the whole transaction.
	WorkMany(ctx context.Context, tx pgx.Tx, jobs []store.Job) ([]Attempt, error)
	// Failed says how an attempt at a job ends that failed with err.
	Failed(job store.Job, err error) Attempt
}

// Handling says how jobs of a type are worked.
type Handling struct {
	// Parallel is how many jobs of the type a process works side by side, each in its own call; in bulk it is how many share
	// a call.
	Parallel int
	// Everywhere is how many jobs of the type are leased at a time, over all processes; 0: any number.
	Everywhere int
	// Bulk: WorkMany works them.
	Bulk bool
	// Timeout is how long an attempt may take.
	Timeout time.Duration
}

// Progress stores what a running job says of itself.
type Progress func(ctx context.Context, progress []byte) error

// Attempt is how an attempt at a job ended.
type Attempt struct {
	Outcome models.Outcome
	// Code and Message say why, for every outcome but completed.
	Code    models.ErrorCode
	Message string
	// Delay is until the next attempt, for retried and rescheduled.
	Delay time.Duration
	// Result is what a completed job leaves, as JSON.
	Result []byte
	// Unavailable: the handler failed because the database was away for a query of Daybook's own. Outcome and the others say how the attempt ends
	// when that has happened too often in a row.
	Unavailable bool
	// InTx is run in the transaction that completes the job, and returns the result anew; nil: nothing is run.
	InTx func(ctx context.Context, tx pgx.Tx) (result []byte, err error)
}

func (a Attempt) settlement(job store.Job) store.Settlement {
	return store.Settlement{Job: job, Outcome: a.Outcome, Code: a.Code, Message: a.Message, Delay: a.Delay, Result: a.Result}
}
