package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/internal/disposition"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/span"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// working is a registry as the engine asks it. It implements the engine's Handlers and Reviewer.
type working struct {
	*Registry
	// pool is where handlers read; nil: there is none.
	pool *pgxpool.Pool
	log  *slog.Logger
}

// Handling says how jobs of a type are worked.
func (r working) Handling(jobType string) (engine.Handling, bool) {
	t := r.types[jobType]
	if t == nil {
		return engine.Handling{}, false
	}
	return engine.Handling{
		Owner: t.policy.Owner, Parallel: t.policy.Parallel, Everywhere: t.policy.ParallelEverywhere, Bulk: t.many != nil,
		Timeout: t.policy.Timeout, Charged: true, Shared: t.policy.SharedTransaction,
		Version: t.policy.Version,
	}, true
}

// Work works one job.
func (r working) Work(ctx context.Context, job store.Job, running *engine.Running) (ended engine.Attempt) {
	t := r.types[job.Type]
	defer func() {
		// What the handler returned may panic as well: an error's text, a result's JSON.
		if p := recover(); p != nil {
			ended = t.judge(job, WithCode(models.CodeHandlerError, &panicked{p, string(debug.Stack())}))
		}
	}()
	a := &attempt{
		reads:    r.reads(t, job),
		progress: func(ctx context.Context, v json.RawMessage) error { return running.Progress(ctx, v) },
	}
	if r.pool != nil {
		a.callbacks = r.pool
		a.steps = &steps{
			running: running, q: r.pool, job: job.ID, attempt: job.Attempt, earlier: job.Awaited, private: a.reads.private,
		}
		defer a.steps.close()
	}
	ctx = a.reads.private.context(ctx)
	err, plain := t.exhausted(job), job
	if err == nil {
		plain, err = t.open(ctx, job)
	}
	read := err == nil
	if read {
		err = protected(func() error {
			return r.single(ctx, func() *Info { return t.info(plain, a.reads) },
				func(ctx context.Context) error { return t.work(ctx, plain, a) })
		})
	}
	if err != nil {
		unavailable, note := store.IsUnavailable(err) || ctx.Err() == nil && undecided(err) && store.IsNotAsked(err),
			store.NoteOf(err)
		if engine.TimedOut(ctx) && !unavailable {
			err = timedOut(t, err)
		}
		ended = t.judge(job, err)
		if !read {
			ended.Hide = nil
		}
		ended.Unavailable = unavailable && (ended.Outcome == models.OutcomeRetried || ended.Outcome == models.OutcomeFailed)
		if note != nil {
			ended.InTx = func(ctx context.Context, tx pgx.Tx) ([]byte, error) { return nil, note(ctx, tx) }
		}
		return ended
	}
	r.sayUnused(job, a.steps)
	return t.completed(ctx, job, a)
}

// sayUnused says which steps an earlier attempt has kept that the one which ended well has not asked
// for.
func (r working) sayUnused(job store.Job, s *steps) {
	if s == nil {
		return
	}
	if unused, instead := s.unused(); len(unused) > 0 {
		r.log.Warn("an earlier attempt has kept steps that this one did not ask for: were they renamed or removed? "+
			"What stands in their place was run",
			"job", job.ID, "type", job.Type, "kept", unused, "run", instead)
	}
}

// completed is the attempt of a handler that returned nil.
func (t *registered) completed(ctx context.Context, job store.Job, a *attempt) engine.Attempt {
	done := engine.Attempt{Outcome: models.OutcomeCompleted, Hide: a.reads.private.hider()}
	if err := done.Leave(a.resultJSON(ctx)); err != nil {
		return t.judge(job, err)
	}
	if len(a.inTx) > 0 {
		done.InTx = func(ctx context.Context, tx pgx.Tx) ([]byte, error) {
			ctx = a.reads.private.context(ctx)
			for _, f := range a.inTx {
				if f == nil {
					return nil, Final(errors.New("Job.InTx was given a nil function"))
				}
				if err := f(ctx, tx); err != nil {
					return nil, err
				}
			}
			return a.resultJSON(ctx) // what ran in the transaction may have set it
		}
	}
	return done
}

// resultJSON is what the handler leaves with the job; nil: nothing. Its error is why that cannot be
// stored.
func (a *attempt) resultJSON(ctx context.Context) (raw []byte, err error) {
	if a.result == nil {
		return nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			raw, err = nil, &engine.UnstoredError{Why: fmt.Sprintf("its JSON cannot be made: panic: %v", p)}
		}
	}()
	raw, err = json.Marshal(a.result)
	if own, ok := errors.AsType[*json.MarshalerError](err); ok {
		err = own.Err // its own words name the method
	}
	if err == nil {
		err = payload.CheckResult(raw)
	}
	if err == nil {
		raw, err = a.reads.private.seal(ctx, encryption.Result, raw)
	}
	if err != nil {
		return nil, &engine.UnstoredError{Why: textOf(err)}
	}
	return raw, nil
}

// Prepare leaves everything to the transaction: a bulk handler is called in it.
func (r working) Prepare(context.Context, string, []store.Job) (engine.BulkCommit, error) {
	return r.commit, nil
}

// commit works jobs of one type in the transaction that completes them.
func (r working) commit(ctx context.Context, tx pgx.Tx, jobs []store.Job) ([]engine.Attempt, error) {
	t := r.types[jobs[0].Type]
	attempts := make([]engine.Attempt, len(jobs))
	var going []store.Job
	var places []int
	for i, j := range jobs {
		err, plain := t.exhausted(j), j
		if err == nil {
			plain, err = t.open(ctx, j)
		}
		if err != nil {
			attempts[i] = t.judge(j, err)
			attempts[i].Hide = nil
			continue
		}
		going, places = append(going, plain), append(places, i)
	}
	if len(going) == 0 {
		return attempts, nil
	}
	// The handler's statements are planned as usual.
	if err := store.PlanFreely(ctx, tx); err != nil {
		return nil, err
	}
	said := make([]*attempt, len(going))
	for i := range said {
		said[i] = &attempt{progress: noProgress, reads: reads{tx, t.private(jobs[places[i]])}}
	}
	if slices.ContainsFunc(said, func(a *attempt) bool { return a.reads.private != nil }) {
		ctx = span.Private(ctx)
	}
	var errs []error
	err := protected(func() (err error) {
		errs, err = r.bulk(ctx, tx, func() []*Info {
			infos := make([]*Info, len(going))
			for i, j := range going {
				infos[i] = t.info(j, said[i].reads)
			}
			return infos
		}, func(ctx context.Context) ([]error, error) { return t.many(ctx, tx, going, said) })
		return err
	})
	if err != nil {
		if engine.TimedOut(ctx) {
			err = timedOut(t, err)
		}
		return nil, span.Quiet(ctx, engine.Own(ctx, tx, err))
	}
	for _, err := range errs {
		if undecided(err) && (engine.IsUndone(tx, err) || store.IsTransactionTimeout(err)) {
			return nil, span.Quiet(ctx, engine.Own(ctx, tx, err))
		}
	}
	for i, err := range errs {
		if err == nil && len(said[i].inTx) > 0 {
			err = Final(errors.New("a bulk handler has its transaction already: InTx is for handlers of single jobs"))
		}
		done := engine.Attempt{Outcome: models.OutcomeCompleted, Hide: said[i].reads.private.hider()}
		if err = cmp.Or(err, done.Leave(said[i].resultJSON(ctx))); err != nil {
			done = t.judge(jobs[places[i]], err)
		}
		attempts[places[i]] = done
	}
	return attempts, nil
}

// noProgress is Progress for bulk handlers: no other transaction could see it before this one has
// committed.
func noProgress(context.Context, json.RawMessage) error {
	return errors.New("a bulk handler has no progress")
}

// Failed says how an attempt ends that failed with err.
func (r working) Failed(job store.Job, err error) engine.Attempt {
	if errors.Is(err, engine.ErrUnstorable) || store.IsEnded(err) {
		err = Final(err)
	}
	return r.types[job.Type].judge(job, err)
}

// textOf is an error's text, whatever its Error method does.
func textOf(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("%T, whose Error method panics", err)
		}
	}()
	return err.Error()
}

// protected calls f; its panic is an error that carries the stack.
func protected(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = WithCode(models.CodeHandlerError, &panicked{p, string(debug.Stack())})
		}
	}()
	return f()
}

func timedOut(t *registered, err error) error {
	return WithCode(models.CodeTimeout, fmt.Errorf(disposition.NotFinished+" within %s: %w", t.policy.Timeout, err))
}

// exhausted says that no attempt is left: the last one ended with its worker. One that a person
// asked for beyond the last has no reclaims.
func (t *registered) exhausted(job store.Job) error {
	if most := t.maxAttempts(job); job.Reclaims > 0 && job.Attempt > most {
		return Final(WithCode(models.CodeReclaimed, fmt.Errorf("the worker ended in the last attempt, of %d", most)))
	}
	return nil
}

func (t *registered) maxAttempts(job store.Job) int {
	return cmp.Or(job.MaxAttempts, t.policy.MaxAttempts)
}

// decode checks a job's payload against its schema and reads it.
func decode[P queue.Payload](t *registered, job store.Job, a *attempt) (*Job[P], error) {
	j := newJob[P](t, job, a)
	if err := t.schema.Decode(job.Payload, &j.Payload); err != nil {
		return nil, WithCode(models.CodePayloadInvalid, err)
	}
	return j, nil
}

// newJob is an attempt without its payload.
func newJob[P queue.Payload](t *registered, job store.Job, a *attempt) *Job[P] {
	return &Job[P]{
		ID: job.ID, OrgID: job.OrgID, Type: job.Type, Attempt: job.Attempt, MaxAttempts: t.maxAttempts(job),
		Priority: models.Priority(job.Priority), IdempotencyKey: cmp.Or(job.Key, job.ID), EnqueuedAt: job.EnqueuedAt,
		Encrypted: a.reads.private != nil, attempt: a,
	}
}

// judge says what becomes of a job whose attempt ended with err.
func (t *registered) judge(job store.Job, err error) engine.Attempt {
	s := read(err)
	a := engine.Attempt{
		Outcome: models.OutcomeRetried, Code: s.code, Message: s.remark + textOf(err), Cause: err,
		Delay: t.policy.delay(job.ID, job.Attempt), Hide: t.private(job).hider(),
	}
	if s.word != nil {
		switch s.word.kind {
		case snoozed:
			a.Outcome, a.Code, a.Message, a.Cause, a.Delay = models.OutcomeRescheduled, s.word.code, textOf(err), nil, s.word.delay
			return a
		case cancelled:
			a.Outcome, a.Code, a.Message, a.Cause, a.Delay = models.OutcomeCancelled, s.word.code, textOf(err), nil, 0
			return a
		case retriedAfter:
			a.Delay = s.word.delay
		case final, coded:
		}
	}
	if s.final || job.Attempt >= t.maxAttempts(job) {
		a.Outcome, a.Delay = models.OutcomeFailed, 0
	}
	return a
}

// undecided reports whether a handler leaves it to the policy what becomes of a job that failed
// with err: a code that is not final decides nothing.
func undecided(err error) bool { return err != nil && !read(err).decided() }

// jitter is by how much a delay is changed at most, as a part of it.
const jitter = 0.1

// delay is the pause after attempt n: Base × Factor^(n-1), at most Cap, changed by up to a tenth.
// The change is a function of the job and the attempt, so that a delay can be computed again, and
// jobs that failed together do not come back together.
func (p Policy) delay(job string, n int) time.Duration {
	plain := min(float64(p.Base)*math.Pow(p.Factor, float64(n-1)), float64(p.Cap))
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s/%d", job, n)
	// Uniform in [-1, 1].
	u := float64(h.Sum64()>>11)/float64(1<<52) - 1
	return time.Duration(plain * (1 + jitter*u))
}
