package engine

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// chunkTries is how often a chunk is tried that lost against another transaction, or lost its connection.
const chunkTries = 3

// lockPatience is how long a job whose attempt has failed is waited for when its row is locked: most often by the
// abandoned session of that very attempt.
const lockPatience = 3 * time.Second

// workChunk works jobs in one transaction. When that fails for a reason of one of theirs, it is halved until the job to
// blame stands alone; the others go on. An error means that the database is away.
func (t *turn) workChunk(ctx context.Context, jobs []store.Job) error {
	alone := t.engine.options.Slow || (len(jobs) == 1 && jobs[0].Takeovers > 1)
	if alone {
		held, err := t.engine.store.MarkWorking(ctx, t.identity(), idsOf(jobs))
		if err != nil {
			return unlessStopped(ctx, err)
		}
		marked := keep(jobs, held)
		t.skip(jobs, marked)
		if jobs = marked; len(jobs) == 0 {
			return nil
		}
	}
	return t.workHalves(ctx, jobs)
}

func (t *turn) workHalves(ctx context.Context, jobs []store.Job) error {
	err := t.tryChunk(ctx, jobs)
	for try := 1; try < chunkTries && t.worthAnother(ctx, err); try++ {
		err = t.tryChunk(ctx, jobs)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		// Told to stop, and the grace is over: the rows are given back at the end of the turn.
		return nil //nolint:nilerr // the chunk failed because it was told to
	case store.IsOutage(err) && !ownTrouble(err) && (store.IsSchemaAway(err) || !t.engine.store.Answers(ctx)):
		return err
	}
	if store.IsTableLock(err) && !ownTrouble(err) {
		return t.giveBackLocked(ctx, jobs, err)
	}
	if len(jobs) == 1 {
		return t.settleAlone(ctx, jobs[0], blame(err))
	}
	half := len(jobs) / 2
	if err := t.workHalves(ctx, jobs[:half]); err != nil {
		return err
	}
	return t.workHalves(ctx, jobs[half:])
}

// worthAnother says whether a chunk that failed with err may simply be tried again: it lost against another transaction,
// or its connection was cut while the database is there. What looks like an outage again and again, and is none, is the
// doing of a job.
func (t *turn) worthAnother(ctx context.Context, err error) bool {
	switch {
	case err == nil || ctx.Err() != nil || ownTrouble(err):
		return false
	case isConflict(err):
		return true
	}
	return store.IsOutage(err) && t.engine.store.Answers(ctx)
}

// ownTrouble reports whether err is the processor's, even where it looks like a database's.
func ownTrouble(err error) bool {
	var p *processorError
	return errors.Is(err, errTimeout) || errors.As(err, &p)
}

// processorError is what a processor returned for a whole chunk, when the transaction itself is sound.
type processorError struct{ err error }

func (e *processorError) Error() string { return e.err.Error() }
func (e *processorError) Unwrap() error { return e.err }

// errTimeout says that a chunk's deadline passed.
var errTimeout = errors.New("not finished in time")

// isConflict reports whether the chunk lost against another transaction and may simply be tried again.
func isConflict(err error) bool {
	state := store.SQLState(err)
	return state == "40001" || state == "40P01" || errors.Is(err, store.ErrLeaseLost)
}

// tryChunk prepares and commits jobs once.
func (t *turn) tryChunk(ctx context.Context, jobs []store.Job) error {
	deadline := time.Now().Add(t.engine.options.ChunkTimeout)
	chunkCtx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	defer t.end(t.begin(&call{inHand: jobs, cancel: cancel, deadline: deadline}))

	err := t.prepareAndCommit(chunkCtx, jobs)
	if err != nil && ctx.Err() == nil && errors.Is(chunkCtx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w (%s): %w", errTimeout, t.engine.options.ChunkTimeout, err)
	}
	if err != nil && ctx.Err() == nil && chunkCtx.Err() != nil {
		// A renewal found that the jobs are no longer the turn's: whoever took them over goes on with them.
		return nil
	}
	return err
}

func (t *turn) prepareAndCommit(ctx context.Context, jobs []store.Job) error {
	commit, err := t.prepare(ctx, jobs)
	if err != nil {
		return err
	}
	var settled store.Settled
	var locked, later []store.Job
	err = t.engine.store.InTxWaiting(ctx, t.engine.lockWait(), func(tx pgx.Tx) error {
		var err error
		if locked, err = t.engine.store.LockChunk(ctx, tx, t.identity(), idsOf(jobs)); err != nil || len(locked) == 0 {
			return err
		}
		var settlements []store.Settlement
		settlements, later, err = t.effect(ctx, tx, commit, locked)
		if err != nil {
			return err
		}
		for i := range settlements {
			if t.holdBack(settlements[i]) {
				// Leased already: it comes back when its organization is tried again.
				pause, _ := t.engine.store.HoldBack(settlements[i].Job.OrgID)
				settlements[i].Delay = max(settlements[i].Delay, pause)
			}
		}
		settled, err = t.engine.store.Settle(ctx, tx, t.identity(), settlements)
		return err
	})
	if err != nil {
		return err
	}
	t.count(settled)
	t.skip(jobs, locked)
	t.putOff(later)
	return nil
}

// putOff takes jobs back into the queue.
func (t *turn) putOff(jobs []store.Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = append(t.queue, jobs...)
}

// skip remembers the jobs that could not be locked. They are looked at once more, and then given back: either somebody
// holds them locked, or they are no longer the turn's.
func (t *turn) skip(jobs, locked []store.Job) {
	left := without(jobs, locked)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.skipped = append(t.skipped, left...)
}

// prepare calls the processor's first phase; its panic is its error.
func (t *turn) prepare(ctx context.Context, jobs []store.Job) (commit Commit, err error) {
	defer recovered(&err)
	in := make([]Job, len(jobs))
	for i, j := range jobs {
		in[i] = jobOf(t.identity(), j)
	}
	commit, err = t.engine.processor.Prepare(ctx, in)
	if err != nil {
		err = &processorError{err}
	}
	return commit, err
}

// effect calls the processor's second phase for the jobs that are to go on, and says how each is settled, and which are put
// off.
func (t *turn) effect(ctx context.Context, tx pgx.Tx, commit Commit, locked []store.Job) (settlements []store.Settlement, later []store.Job, err error) {
	defer recovered(&err)
	settlements = make([]store.Settlement, 0, len(locked))
	going := make([]store.Job, 0, len(locked))
	in := make([]Job, 0, len(locked))
	for _, j := range locked {
		if j.CancelRequested {
			settlements = append(settlements, store.Settlement{Job: j, Outcome: models.OutcomeCancelled})
			continue
		}
		going, in = append(going, j), append(in, jobOf(t.identity(), j))
	}
	if len(in) == 0 {
		return settlements, nil, nil
	}
	var errs []error
	if commit != nil {
		if t.engine.options.Slow {
			// The processor is an application's: its statements are planned as usual.
			if err := store.PlanFreely(ctx, tx); err != nil {
				return nil, nil, err
			}
		}
		if errs, err = commit(ctx, tx, in); err != nil {
			if store.SQLState(err) == "" && !tx.Conn().IsClosed() {
				err = &processorError{err}
			}
			return nil, nil, err
		}
	}
	if errs != nil && len(errs) != len(in) {
		return nil, nil, fmt.Errorf("the processor returned %d results for %d jobs: return one for each, or nil", len(errs), len(in))
	}
	for i, j := range going {
		var jobErr error
		if errs != nil {
			jobErr = errs[i]
		}
		if errors.Is(jobErr, ErrLater) {
			later = append(later, j)
			continue
		}
		settlements = append(settlements, t.settlement(j, jobErr))
	}
	if len(later) == len(locked) {
		return nil, nil, &processorError{errors.New("the processor put off every job of a chunk")}
	}
	return settlements, later, nil
}

// recovered turns a panic into an error that carries the stack.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = models.Errorf(models.CodeProcessorError, "panic: %v\n%s", p, debug.Stack())
	}
}

// settlement says how a job is settled whose attempt ended with err.
func (t *turn) settlement(j store.Job, err error) store.Settlement {
	cause := blame(err)
	verdict := models.Judge(cause, j.Attempt, j.NotReady+1, t.engine.options.RetryBase)
	s := store.Settlement{Job: j, Outcome: verdict.Outcome, Delay: verdict.Delay}
	if cause != nil {
		s.Code, s.Message = cause.Code, cause.Message
		if cause.Code == models.CodeVersionMismatch {
			s.Version = &cause.Version
		}
		s.Unlogged = cause.Code == models.CodeDocumentLocked || cause.Code == models.CodeConfigurationLocked
	}
	return s
}

// settleAlone settles a job whose chunk of one failed, in a transaction of its own.
func (t *turn) settleAlone(ctx context.Context, job store.Job, cause *models.JobError) error {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	done, err := t.trySettle(ctx, job, cause)
	for deadline := time.Now().Add(lockPatience); err == nil && !done && time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
		done, err = t.trySettle(ctx, job, cause)
	}
	if err != nil && !store.IsOutage(err) {
		// Whatever cannot be stored of the cause must not keep the job: say that much, and go on.
		t.engine.options.Log.Error("a job's error could not be stored", "job", job.ID, "cause", cause, "error", err)
		done, err = t.trySettle(ctx, job, models.Errorf(models.CodeProcessorError, "the processor's error could not be stored"))
	}
	switch {
	case err != nil:
		return unlessStopped(ctx, err)
	case !done:
		t.skip([]store.Job{job}, nil)
		return nil
	}
	t.engine.options.Log.Info("job not completed", "org", job.OrgID, "document", job.DocumentID, "attempt", job.Attempt,
		"code", cause.Code, "error", cause.Message)
	return nil
}

// settleLimit bounds the settlement of one job, so that a connection that went silent does not hold up the turn.
const settleLimit = 30 * time.Second

// trySettle settles a job if its row can be locked, or is no longer the turn's.
func (t *turn) trySettle(ctx context.Context, job store.Job, cause *models.JobError) (done bool, err error) {
	var settled store.Settled
	err = t.engine.store.InTx(ctx, func(tx pgx.Tx) error {
		locked, err := t.engine.store.LockChunk(ctx, tx, t.identity(), []string{job.ID})
		if err != nil || len(locked) == 0 {
			return err
		}
		s := store.Settlement{Job: locked[0], Outcome: models.OutcomeCancelled}
		if !locked[0].CancelRequested {
			s = t.settlement(locked[0], cause)
		}
		settled, err = t.engine.store.Settle(ctx, tx, t.identity(), []store.Settlement{s})
		return err
	})
	if err != nil {
		return false, err
	}
	t.count(settled)
	if len(settled) > 0 {
		return true, nil
	}
	held, err := t.engine.store.Held(ctx, t.identity())
	return !slices.Contains(held, job.ID), err
}

// unlessStopped drops an error that comes of being told to stop: the rows are given back at the end of the turn.
func unlessStopped(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return err
}

// codeForm is what an error code looks like.
var codeForm = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

// blame names the error code of what went wrong with one job.
func blame(err error) *models.JobError {
	var cause *models.JobError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &cause) && cause == nil:
		return models.Errorf(models.CodeProcessorError, "the processor returned a nil *models.JobError as its error")
	case errors.As(err, &cause) && !codeForm.MatchString(string(cause.Code)):
		return models.Errorf(models.CodeProcessorError, "the processor returned the error code %q, which is no code: %s", cause.Code, cause.Message)
	case errors.As(err, &cause):
		return cause
	case errors.Is(err, errTimeout):
		return &models.JobError{Code: models.CodeTimeout, Message: err.Error()}
	case store.IsUnbalanced(err):
		return &models.JobError{Code: models.CodeUnbalanced, Message: err.Error()}
	case store.IsUnknownAccount(err):
		return &models.JobError{Code: models.CodeUnknownAccount, Message: err.Error()}
	case store.IsPeriodClosed(err):
		return &models.JobError{Code: models.CodePeriodClosed, Message: err.Error()}
	case store.SQLState(err) != "":
		return &models.JobError{Code: models.CodeDatabaseError, Message: err.Error()}
	}
	return &models.JobError{Code: models.CodeProcessorError, Message: err.Error()}
}

func idsOf(jobs []store.Job) []string {
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID
	}
	return ids
}

// keep returns the jobs with one of the ids.
func keep(jobs []store.Job, ids []string) []store.Job {
	wanted := setOf(ids)
	kept := jobs[:0:0]
	for _, j := range jobs {
		if wanted[j.ID] {
			kept = append(kept, j)
		}
	}
	return kept
}

// without returns the jobs that are not among the others.
func without(jobs, others []store.Job) []store.Job {
	if len(others) == len(jobs) {
		return nil
	}
	there := setOf(idsOf(others))
	var left []store.Job
	for _, j := range jobs {
		if !there[j.ID] {
			left = append(left, j)
		}
	}
	return left
}

func setOf(ids []string) map[string]bool {
	set := make(map[string]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}
