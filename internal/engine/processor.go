package engine

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	public "github.com/daybook-dev/daybook/accounting"
)

// What an application gives to work accounting jobs itself; package accounting says what each must do.
type (
	Job          = public.Job
	Processor    = public.Processor
	Commit       = public.Commit
	JobProcessor = public.JobProcessor
	JobCommit    = public.JobCommit
)

// ErrLater is what a Commit returns for a job that it has left alone because the transaction is large enough without it:
// the job stays leased and comes again in one of the turn's next chunks. At least one job of a chunk must not be put off.
var ErrLater = errors.New("put off to a later chunk")

// PerJob makes a Processor of a JobProcessor. Register it with a ChunkSize of 1.
func PerJob(p JobProcessor) Processor { return perJob{p} }

type perJob struct{ inner JobProcessor }

// Prepare prepares each job in turn.
func (p perJob) Prepare(ctx context.Context, jobs []Job) (Commit, error) {
	commits := make(map[string]JobCommit, len(jobs))
	for _, j := range jobs {
		c, err := p.inner.Prepare(ctx, j)
		if err != nil {
			return nil, err
		}
		commits[j.ID] = c
	}
	return func(ctx context.Context, tx pgx.Tx, jobs []Job) ([]error, error) {
		for _, j := range jobs {
			if c := commits[j.ID]; c != nil {
				if err := c(ctx, tx, j); err != nil {
					return nil, err
				}
			}
		}
		return nil, nil
	}, nil
}
