package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"

	public "github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/internal/disposition"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// accounting makes Handlers of a Processor. Its only type has no name.
type accounting struct {
	processor Processor
	options   Options
	// holdBack is the kind's.
	holdBack func(org string) (pause time.Duration, begun bool)
}

// maxLockWait is how long a transaction waits for a lock at most. Documents and jobs are locked
// without waiting, so such a lock is one on a table, or on a row of the application.
const maxLockWait = 3 * time.Second

func (a *accounting) Handling(string) (Handling, bool) {
	h := Handling{
		Bulk: true, Parallel: a.options.ChunkSize, Calls: a.options.Parallel, Timeout: a.options.ChunkTimeout,
		Charged: a.options.Slow,
		Picked:  PickedNever, Owner: a.options.Owner,
		// Well below the time that a chunk has, so that the lock is told from a job that is slow.
		// An application's processor has more time, and may have locks of its own.
		LockWait: a.options.ChunkTimeout / 3,
	}
	if !a.options.Slow {
		h.LockWait = min(h.LockWait, maxLockWait)
	}
	if a.options.Direct {
		h.Picked = PickedAtOnce
	}
	return h, true
}

// Work implements Handlers; accounting jobs are worked in bulk.
func (a *accounting) Work(_ context.Context, job store.Job, _ *Running) Attempt {
	return a.Failed(job, errors.New("accounting jobs are worked in bulk"))
}

func (a *accounting) Prepare(ctx context.Context, workflowRun string, jobs []store.Job) (BulkCommit, error) {
	commit, err := a.processor.Prepare(ctx, jobsOf(workflowRun, jobs))
	switch {
	case err != nil && store.IsNotAsked(err):
		return nil, err
	case err != nil:
		return nil, &ownError{err}
	}
	return func(ctx context.Context, tx pgx.Tx, jobs []store.Job) ([]Attempt, error) {
		errs := make([]error, len(jobs))
		if commit != nil {
			said, err := a.commit(ctx, tx, commit, jobsOf(workflowRun, jobs))
			if err != nil {
				return nil, err
			}
			if said != nil {
				errs = said
			}
		}
		attempts := make([]Attempt, len(jobs))
		for i, j := range jobs {
			attempts[i] = a.attempt(j, errs[i])
		}
		return attempts, nil
	}, nil
}

// commit calls the processor's second phase.
func (a *accounting) commit(ctx context.Context, tx pgx.Tx, commit Commit, jobs []Job) ([]error, error) {
	if a.options.Slow {
		// The processor is an application's: its statements are planned as usual.
		if err := store.PlanFreely(ctx, tx); err != nil {
			return nil, err
		}
	}
	errs, err := commit(ctx, tx, jobs)
	switch {
	case err != nil && store.SQLState(err) == "" && (endedItself(ctx, err) || !tx.Conn().IsClosed()):
		return nil, &ownError{err}
	case err == nil && errs != nil && len(errs) != len(jobs):
		return nil, fmt.Errorf("the processor returned %d results for %d jobs: return one for each, or nil",
			len(errs), len(jobs))
	}
	for _, each := range errs {
		if each != nil && (store.SQLState(each) != "" || tx.Conn().IsClosed()) && IsUndone(tx, each) {
			return nil, Own(ctx, tx, each)
		}
	}
	return errs, err
}

func (a *accounting) attempt(j store.Job, err error) Attempt {
	if errors.Is(err, ErrLater) {
		return Attempt{Later: true}
	}
	cause := blame(err)
	verdict := disposition.Judge(cause, j.Attempt, j.NotReady+1, a.options.RetryBase)
	ended := Attempt{Outcome: verdict.Outcome, Delay: verdict.Delay}
	if cause == nil {
		return ended
	}
	ended.Code, ended.Message = cause.Code, cause.Message
	ended.Unlogged = cause.Code == models.CodeDocumentLocked || cause.Code == models.CodeConfigurationLocked
	if cause.Code == models.CodeVersionMismatch {
		ended.Version = &cause.Version
	}
	if cause.Code == models.CodeConfigurationLocked {
		// The organization is held back: its jobs are left as they are, instead of being rewritten
		// again and again while that lasts.
		pause, begun := a.holdBack(j.OrgID)
		if begun {
			a.options.Log.Info("another transaction is changing an organization's configuration: its jobs wait",
				"org", j.OrgID, "pause", pause)
		}
		ended.LeftAlone, ended.Delay = true, max(ended.Delay, pause)
	}
	return ended
}

func (a *accounting) Failed(j store.Job, err error) Attempt {
	return a.attempt(j, err)
}

func jobsOf(workflowRun string, jobs []store.Job) []Job {
	in := make([]Job, len(jobs))
	for i, j := range jobs {
		in[i] = Job{
			ID: j.ID, OrgID: j.OrgID, DocumentID: j.DocumentID, Version: j.Version, Attempt: j.Attempt,
			NotReady: j.NotReady, Epoch: j.Epoch, WorkflowRunID: workflowRun,
		}
	}
	return in
}

// codeForm is the form of an error code.
var codeForm = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

// blame returns the error code for what went wrong with one job.
func blame(err error) *models.JobError {
	var cause *models.JobError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &cause) && cause == nil:
		return models.Errorf(models.CodeProcessorError, "the processor returned a nil *models.JobError as its error")
	case errors.As(err, &cause) && !codeForm.MatchString(string(cause.Code)):
		return models.Errorf(models.CodeProcessorError, "the processor returned the error code %q, which is no code: %s",
			cause.Code, cause.Message)
	case errors.As(err, &cause):
		return cause
	case errors.Is(err, errTimeout):
		return &models.JobError{Code: models.CodeTimeout, Message: err.Error()}
	}
	return &models.JobError{Code: cmp.Or(store.RefusedAs(err), models.CodeProcessorError), Message: err.Error()}
}

// What an application gives to work accounting jobs itself; package accounting says what each must
// do.
type (
	Job          = public.Job
	Processor    = public.Processor
	Commit       = public.Commit
	JobProcessor = public.JobProcessor
	JobCommit    = public.JobCommit
)

// ErrLater is what a Commit returns for a job that it has left alone because the transaction is
// large enough without it: the job stays leased and comes again in one of the turn's next chunks.
// At least one job of a chunk must not be put off.
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
