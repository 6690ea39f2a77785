package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// Payload is what a background job is about: a struct whose JSON tags name its fields.
type Payload interface {
	// JobType names the handler; it must not depend on the value.
	JobType() string
}

// RawPayload is a payload for callers that have no struct for it. It is checked against the limits
// when it is enqueued, and against the schema of its type before it is worked.
type RawPayload struct {
	Type string
	// Data is a JSON object; empty is {}.
	Data json.RawMessage
}

// JobType implements Payload.
func (p RawPayload) JobType() string { return p.Type }

// MarshalJSON implements json.Marshaler.
func (p RawPayload) MarshalJSON() ([]byte, error) {
	if len(p.Data) == 0 {
		return []byte("{}"), nil
	}
	return p.Data, nil
}

// Link says what a job is about, for people and programs that look for it: Link{"submission",
// "sub_1"}.
type Link struct {
	Kind string
	ID   string
}

// JobOptions say how a job is enqueued. The zero value is a job that is due now, with normal
// priority.
type JobOptions struct {
	// IdempotencyKey makes enqueuing repeatable, per organization and for as long as the job is kept:
	// the same key with the same type and payload leads to the first job, with another type or
	// payload to ErrKeyReused. Empty: every call makes a job.
	IdempotencyKey string
	// RunAt is when the job is due; the zero time, and any in the past, is now.
	RunAt time.Time
	// Priority is how urgent it is; 0 is Normal.
	Priority Priority
	// MaxAttempts is after how many attempts the job is a dead letter; 0: the policy of the type's
	// handler says.
	MaxAttempts int
	// Links say what the job is about.
	Links []Link
	// Unique makes the job the only one of its organization, type and payload that waits or runs:
	// while there is such a job, the request leads to it. A running job is worked again after its
	// attempt, because the attempt may have read old data. A waiting job does not begin before the
	// transaction of the request has ended. It gets the higher Priority and, if it was never tried,
	// the earlier RunAt. IdempotencyKey is checked first. What a handler remembers by its job it does not
	// do again: webhooks, notifications, and jobs that Temporal or a function works, are not for it.
	Unique bool
	// SkipValidation leaves the check against the type's schema to the worker. The limits are checked
	// all the same.
	SkipValidation bool
	// MinVersion is the lowest version of the type's handler that may work the job (jobs.Policy.Version):
	// workers with an older one leave it alone. 0: any. A unique job that existed before gets the
	// higher one; any other that existed before (Duplicate) keeps its own.
	MinVersion int
	// Queue is the name of the queue that works the job; empty is the queue "default".
	Queue string
	// Sequence makes the jobs of one organization with the same key run one after the other, in the
	// order in which they were enqueued: each begins after the one before it is completed or
	// cancelled. An attempt that fails is repeated first, and a dead letter holds the sequence up
	// until it is tried again or cancelled. Empty: the job waits for no other. A job that existed
	// before (Duplicate) keeps its place.
	Sequence string
	// After are the ids of jobs of the same organization that must be completed before this one is
	// due, models.MaxAwaited at most. A dead letter among them is waited for. When one of them is
	// cancelled, this job is a dead letter with the code AWAITED_CANCELLED. A job that existed before
	// (Duplicate) waits for what it waited for.
	After []string
	// AfterAnyEnd has the job wait until those of After have ended in any way: completed, as dead
	// letters, cancelled or removed. Its handler reads how they ended (jobs.Job.Awaited). False: they
	// must be completed. With an empty After the job waits for none, whichever this is, so that a
	// list of jobs to wait for may turn out empty.
	AfterAnyEnd bool
	// LimitKey is what the job shares the limit of its queue or its type with (NamedQueue.Limit,
	// jobs.Policy.Limit): the jobs of one organization and key, such as those for one customer's
	// account. It goes before what Limit.By says. Without a limit it has no effect. Empty: what
	// Limit.By says.
	LimitKey string
	// Encryption encrypts the members of the payload that Encrypt names, or the payload itself
	// (EncryptedPayload). Where none is named it does nothing; nil: where some are, the job is refused.
	Encryption *encryption.Cipher
	// Encrypt names members of the payload to encrypt, or encryption.AllMembers alone, for payloads
	// that do not name them: those of job types that come with Daybook, and a RawPayload.
	Encrypt []string
	// Debounce has the job wait for further requests with a key, which change its payload and its
	// time. It is not combined with IdempotencyKey, RunAt, Unique, Sequence, After and MinVersion.
	// Queue, MaxAttempts and Links are those of the request that made the job, and Priority is the
	// highest.
	Debounce Debounce
}

// EnqueuedJob is the job that a request led to.
type EnqueuedJob struct {
	ID string
	// Duplicate says that the job existed already: it has the same key, is unique, or is debounced.
	Duplicate bool
	// Result says what the request did. Enqueued: it made the job. Unchanged: the job existed and was
	// not changed. Coalesced: the unique job is running, and is worked again after its attempt.
	// Rescheduled: the unique job is due earlier now, or the debounced one, whose payload stays, has
	// its time anew. Replaced: the debounced job that waits has a new payload, and its time anew.
	Result Result
}

// NewJob is one job for EnqueueJobs.
type NewJob struct {
	OrgID   string
	Payload Payload
	Options JobOptions
}

// EnqueueJob enqueues a job, in the transaction q.
//
// Errors: ErrKeyReused, ErrPayloadTooLarge, ErrPayloadInvalid, ErrNoEncryption, ErrNoSuchMember,
// ErrEncryptedUnique, those of Options.Encryption, ErrInvalidJobType, ErrKeyTooLong,
// ErrInvalidMaxAttempts, ErrInvalidMinVersion, ErrInvalidLink, ErrInvalidPriority, ErrInvalidQueue,
// ErrQueueNotFound, ErrSequenceTooLong, ErrLimitKeyTooLong, ErrInvalidAfter, ErrInvalidDebounce,
// ErrJobNotFound (one of After), ErrEmptyID and ErrIDTooLong
// (of the organization), ErrInvalidText, ErrInvalidTime, ErrNoQuerier, ErrNoTransaction (a GORM
// handle outside of a transaction). Each is found before anything is written but for ErrKeyReused,
// ErrQueueNotFound and ErrJobNotFound, after which a transaction of PostgreSQL can only be rolled
// back.
func EnqueueJob(ctx context.Context, q Querier, orgID string, p Payload, o JobOptions) (EnqueuedJob, error) {
	row, err := encryptedRow(ctx, NewJob{OrgID: orgID, Payload: p, Options: o})
	if err == nil {
		err = check(q)
	}
	if err != nil {
		return EnqueuedJob{}, err
	}
	r, err := store.EnqueueJob(ctx, q, row)
	done := enqueuedJob(r)
	if log := logOf(ctx); log != nil && err == nil {
		logEnqueued(ctx, log, "jobs", row.OrgID, row.Type, done.ID, "", done.Result)
	}
	return done, err
}

// EnqueueJobs is EnqueueJob for many jobs, in one statement per MaxMany. The answers are in the
// order of the jobs. One job that is wrong refuses all; the error names its position.
//
// Unique payloads are locked first, then idempotency keys, then keys of Debounce, each in one order,
// so callers with one call in their transaction do not deadlock. The exception
// are jobs with both a key and Unique: PostgreSQL may end one of the two transactions (SQLSTATE
// 40P01), which can then be tried again.
func EnqueueJobs(ctx context.Context, q Querier, jobs []NewJob) ([]EnqueuedJob, error) {
	rows := make([]store.NewJob, len(jobs))
	for i, j := range jobs {
		row, err := encryptedRow(ctx, j)
		if err != nil {
			return nil, fmt.Errorf("job %d: %w", i, err)
		}
		rows[i] = row
	}
	if err := check(q); err != nil {
		return nil, err
	}
	done, err := store.EnqueueJobs(ctx, q, rows, MaxMany)
	if err != nil {
		return nil, err
	}
	out := make([]EnqueuedJob, len(done))
	for i, r := range done {
		out[i] = enqueuedJob(r)
	}
	if log := logOf(ctx); log != nil {
		for i := range out {
			logEnqueued(ctx, log, "jobs", rows[i].OrgID, rows[i].Type, out[i].ID, "", out[i].Result)
		}
	}
	return out, nil
}

func enqueuedJob(r store.EnqueuedJob) EnqueuedJob {
	return EnqueuedJob{ID: r.JobID, Duplicate: r.Duplicate, Result: Result(r.Result)}
}

// RetryMode says how a job is tried again.
type RetryMode string

const (
	// RetryNow: at once, or after the delay if there is one. The attempts that were made stay
	// counted; there is at least one more.
	RetryNow RetryMode = "now"
	// RetryLater: after the delay, DefaultRetryLater if it is 0. The attempts stay counted.
	RetryLater RetryMode = "later"
	// RetryReset: as if the job had never been tried; at once, or after the delay if there is one.
	RetryReset RetryMode = "reset"
)

// DefaultRetryLater is the delay of RetryLater when none is given.
const DefaultRetryLater = 5 * time.Minute

// RetryOptions say how RetryJob tries a job again. The zero value is at once.
type RetryOptions struct {
	// Mode is RetryNow, RetryLater or RetryReset; empty: RetryNow.
	Mode RetryMode
	// Delay is until the job is due; 0: at once, with RetryLater DefaultRetryLater.
	Delay time.Duration
}

// RetryJob makes a dead letter or a cancelled job due again (Requeued), and changes the time of a
// pending one (Rescheduled). A running job is not changed (Unchanged), except that a requested
// cancellation is withdrawn (Coalesced). A unique job is not changed while another one with its
// payload is open, nor the job of a schedule while another one of it is (Unchanged).
// Response.Reason says which.
//
// Errors: ErrJobNotFound, ErrJobCompleted, ErrQueueNotFound (the job's named queue was deleted),
// ErrInvalidRetryMode, ErrNegativeDelay, ErrInvalidText.
func RetryJob(ctx context.Context, q Querier, jobID string, o RetryOptions) (Response, error) {
	mode := cmp.Or(o.Mode, RetryNow)
	switch {
	case mode != RetryNow && mode != RetryLater && mode != RetryReset:
		return Response{}, fmt.Errorf("%w, not %q", ErrInvalidRetryMode, mode)
	case o.Delay < 0:
		return Response{}, ErrNegativeDelay
	}
	if err := cmp.Or(check(q), checkText("job's id", jobID)); err != nil {
		return Response{}, err
	}
	r, err := store.RetryJob(ctx, q, jobID, string(mode), o.Delay)
	return response(r), err
}

// CancelJob cancels a job that waits, a leased job whose handler has not been called, and a dead
// letter (Cancelled): the handler is not called. A running job is Cancelling: its handler's context
// ends within about three seconds (jobs.CancelRequested), and its attempt, which is the last, ends
// without the completing transaction. A cancelled job is Unchanged.
//
// Errors: ErrJobNotFound, ErrJobCompleted, ErrInvalidText.
func CancelJob(ctx context.Context, q Querier, jobID string) (Response, error) {
	if err := cmp.Or(check(q), checkText("job's id", jobID)); err != nil {
		return Response{}, err
	}
	r, err := store.CancelJob(ctx, q, jobID)
	return response(r), err
}

// newJobRow checks a job and writes its payload.
func newJobRow(j NewJob) (store.NewJob, error) {
	o := j.Options
	if store.IsNil(j.Payload) {
		return store.NewJob{}, errNilPayload
	}
	switch {
	case j.OrgID == "":
		return store.NewJob{}, errEmptyOrg
	case len(j.OrgID) > MaxIDBytes:
		return store.NewJob{}, errLongOrg
	case !models.ValidJobType(j.Payload.JobType()):
		return store.NewJob{}, fmt.Errorf("%w, not %q", ErrInvalidJobType, j.Payload.JobType())
	case len(o.IdempotencyKey) > models.MaxIdempotencyKeyBytes:
		return store.NewJob{}, ErrKeyTooLong
	case !validPriority(o.Priority):
		return store.NewJob{}, ErrInvalidPriority
	case o.MaxAttempts < 0 || o.MaxAttempts > models.MaxJobAttempts:
		return store.NewJob{}, ErrInvalidMaxAttempts
	case o.MinVersion < 0 || o.MinVersion > math.MaxInt32:
		return store.NewJob{}, ErrInvalidMinVersion
	case o.Queue != "" && !models.ValidQueueName(o.Queue):
		return store.NewJob{}, fmt.Errorf("%w, not %q", ErrInvalidQueue, o.Queue)
	case len(o.Sequence) > models.MaxSequenceBytes:
		return store.NewJob{}, ErrSequenceTooLong
	case len(o.LimitKey) > models.MaxLimitKeyBytes:
		return store.NewJob{}, ErrLimitKeyTooLong
	case len(o.After) > models.MaxAwaited || slices.Contains(o.After, ""):
		return store.NewJob{}, ErrInvalidAfter
	}
	if err := cmp.Or(checkTexts(j), checkEncryption(j)); err != nil {
		return store.NewJob{}, err
	}
	debounce, err := o.Debounce.row(&o)
	if err != nil {
		return store.NewJob{}, err
	}
	if err := checkTime(o.RunAt); err != nil {
		return store.NewJob{}, err
	}
	links, err := linksJSON(o.Links)
	if err != nil {
		return store.NewJob{}, err
	}
	raw, err := payloadJSON(j.Payload, o.SkipValidation)
	if err != nil {
		return store.NewJob{}, err
	}
	return store.NewJob{
		OrgID: j.OrgID, Type: j.Payload.JobType(), Payload: raw, IdempotencyKey: o.IdempotencyKey,
		ReadyAt:  store.TimeOrNil(o.RunAt),
		Priority: o.Priority, MaxAttempts: o.MaxAttempts, Links: links, Unique: o.Unique,
		Queue: o.Queue, Sequence: o.Sequence, After: o.After, AfterAnyEnd: o.AfterAnyEnd,
		MinVersion: o.MinVersion, Debounce: debounce, LimitKey: o.LimitKey,
	}, nil
}

// payloadJSON checks a payload against the limits, and the schema of its type, and writes it.
func payloadJSON(p Payload, skipSchema bool) (json.RawMessage, error) {
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayloadInvalid, err)
	}
	if err := payload.Check(raw); err != nil {
		return nil, err
	}
	if _, schemaless := p.(RawPayload); schemaless || skipSchema {
		return raw, nil
	}
	schema, err := payload.SchemaFor(reflect.TypeOf(p))
	if err != nil {
		return nil, err
	}
	return raw, schema.Validate(raw)
}

// checkTexts checks what a job has of free text.
func checkTexts(j NewJob) error {
	o := j.Options
	err := cmp.Or(checkText("organization id", j.OrgID), checkText("idempotency key", o.IdempotencyKey),
		checkText("key of the sequence", o.Sequence), checkText("key of the limit", o.LimitKey))
	for _, id := range o.After {
		err = cmp.Or(err, checkText("ids of After", id))
	}
	for _, l := range o.Links {
		err = cmp.Or(err, checkText("links", l.Kind), checkText("links", l.ID))
	}
	return err
}

var errNilPayload = fmt.Errorf("%w: it is nil: give a struct with a JobType, or a queue.RawPayload", ErrPayloadInvalid)

// A background job has an organization and no document: its errors speak of the one alone.
var (
	errEmptyOrg = orgError{
		"the organization id must not be empty: name the organization that the job belongs to",
		ErrEmptyID,
	}
	errLongOrg = orgError{fmt.Sprintf("the organization id must not be longer than %d bytes", MaxIDBytes), ErrIDTooLong}
)

// orgError is an error about an organization id that is, for errors.Is, the one about both ids.
type orgError struct {
	message string
	is      error
}

// Error implements error.
func (e orgError) Error() string { return e.message }

// Unwrap returns the error about both ids.
func (e orgError) Unwrap() error { return e.is }

// linksJSON writes links as the database takes them; nil when there are none.
func linksJSON(links []Link) (json.RawMessage, error) {
	if len(links) == 0 {
		return nil, nil
	}
	if len(links) > models.MaxJobLinks {
		return nil, fmt.Errorf("%w: there are %d", ErrInvalidLink, len(links))
	}
	type link struct {
		Kind string `json:"kind"`
		ID   string `json:"id"`
	}
	out := make([]link, len(links))
	for i, l := range links {
		if l.Kind == "" || l.ID == "" || len(l.Kind) > models.MaxLinkKindBytes || len(l.ID) > models.MaxLinkIDBytes {
			return nil, fmt.Errorf("%w: kind %q, id %q", ErrInvalidLink, l.Kind, l.ID)
		}
		out[i] = link(l)
	}
	raw, err := json.Marshal(out)
	return raw, errors.Join(err)
}
