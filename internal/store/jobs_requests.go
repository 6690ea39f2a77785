package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
)

// NewJob asks for a background job. The zero value of each field but the first three means what is
// left to the database.
type NewJob struct {
	OrgID   string
	Type    string
	Payload json.RawMessage

	IdempotencyKey string
	// ReadyAt is when it is due; nil is now.
	ReadyAt     *time.Time
	Priority    models.Priority
	MaxAttempts int
	// Links are [{"kind": …, "id": …}], or nil.
	Links json.RawMessage
	// Unique makes it the only open job of its organization with its type and payload.
	Unique bool
	// SkipWhileOpen is a key: while a job of the organization that was enqueued with it is open,
	// nothing is enqueued. EnqueueJob alone has it.
	SkipWhileOpen string
	// MinVersion is the lowest version of the handler that may work it; 0: any.
	MinVersion int
	// Queue is the named queue, Sequence the key of its sequence, After the ids of the jobs that it
	// waits for.
	Queue    string
	Sequence string
	After    []string
	// AfterAnyEnd: those may have ended in any way.
	AfterAnyEnd bool
	// LimitKey is what it shares the limit of its queue or its type with.
	LimitKey string
	// Debounce has it wait for further requests; nil: it does not.
	Debounce *Debounce
}

// Debounce is what daybook.debounce_job takes, with times in seconds.
type Debounce struct {
	Key     string  `json:"key"`
	Wait    float64 `json:"wait_seconds"`
	MaxWait float64 `json:"max_wait_seconds,omitempty"`
	Keep    string  `json:"keep,omitempty"`
	Merge   string  `json:"merge,omitempty"`
}

// json writes it as the database takes it; "" for nil.
func (d *Debounce) json() string {
	if d == nil {
		return ""
	}
	raw, _ := json.Marshal(d) // finite numbers and strings can be written
	return string(raw)
}

// compareDebounce orders debounced jobs as the database locks them, and others before them.
func (j *NewJob) compareDebounce(other *NewJob) int {
	if j.Debounce == nil || other.Debounce == nil {
		return boolOrder(j.Debounce == nil, other.Debounce == nil)
	}
	return cmp.Or(cmp.Compare(j.OrgID, other.OrgID), cmp.Compare(j.Type, other.Type),
		cmp.Compare(j.Debounce.Key, other.Debounce.Key))
}

// EnqueuedJob is the job that a request led to, whether it was there already, and what the request
// did.
type EnqueuedJob struct {
	JobID     string
	Duplicate bool
	Result    string
}

// EnqueueJob asks for a background job.
//
// Most requests say no more than what is to be done. They have a statement of their own, because
// each argument costs the database something, in each transaction. So have debounced ones.
func EnqueueJob(ctx context.Context, q Querier, j NewJob) (EnqueuedJob, error) {
	const plain = `SELECT job_id, duplicate, result FROM daybook.enqueue_job(@org, @type, @payload::text::jsonb)`
	const whole = `
SELECT job_id, duplicate, result
  FROM daybook.enqueue_job(@org, @type, @payload::text::jsonb, NULLIF(@key::text, ''), @ready_at, NULLIF(@priority::integer, 0),
                           NULLIF(@max_attempts::integer, 0), @links::text::jsonb, @is_unique, NULLIF(@queue::text, ''), NULLIF(@sequence::text, ''),
                           @after::text[], @after_any_end, NULLIF(@skip_while_open::text, ''),
                           NULLIF(@min_version::integer, 0), NULL, NULLIF(@limit_key::text, ''))`
	const debounced = `
SELECT job_id, duplicate, result
  FROM daybook.debounce_job(@org, @type, @payload::text::jsonb, @debounce::text::jsonb, NULLIF(@priority::integer, 0), NULLIF(@max_attempts::integer, 0),
                            @links::text::jsonb, NULLIF(@queue::text, ''), NULLIF(@limit_key::text, ''))`
	stmt, args := plain, Args{"org": j.OrgID, "type": j.Type, "payload": string(j.Payload)}
	if !j.plain() {
		stmt, args = whole, j.args()
	}
	if j.Debounce != nil {
		stmt, args["debounce"] = debounced, j.Debounce.json()
	}
	var r EnqueuedJob
	err := requestRow(ctx, q, stmt, args).Scan(&r.JobID, &r.Duplicate, &r.Result)
	return r, Wrap("enqueue the job", err)
}

// plain reports that all but the first three fields are left to the database.
func (j *NewJob) plain() bool {
	rest := *j
	rest.OrgID, rest.Type, rest.Payload = "", "", nil
	return reflect.ValueOf(rest).IsZero()
}

// args are the job as the arguments of a statement.
func (j *NewJob) args() Args {
	return Args{
		"org": j.OrgID, "type": j.Type, "payload": string(j.Payload), "key": j.IdempotencyKey, "ready_at": j.ReadyAt,
		"priority": int32(j.Priority), "max_attempts": int32(j.MaxAttempts), "links": textOrNil(j.Links),
		"is_unique": j.Unique,
		"queue":     j.Queue, "sequence": j.Sequence, "after": j.After, "after_any_end": j.AfterAnyEnd,
		"skip_while_open": j.SkipWhileOpen, "min_version": int32(j.MinVersion), "limit_key": j.LimitKey,
	}
}

// EnqueueJobs asks for many background jobs, up to limit in a statement; the answers are in the
// order of the jobs.
func EnqueueJobs(ctx context.Context, q Querier, jobs []NewJob, limit int) ([]EnqueuedJob, error) {
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	if len(jobs) > limit {
		// A statement sorts its own jobs; when they need several, the statements follow each other in
		// the same order. The hash that unique jobs are sorted by is the database's; its order is not
		// needed unless another transaction has jobs with the same payload that are enqueued by several
		// statements. Jobs of sequences keep their order.
		inOrder := slices.ContainsFunc(jobs, func(j NewJob) bool { return j.Sequence != "" })
		slices.SortStableFunc(order, func(x, y int) int {
			a, b := &jobs[x], &jobs[y]
			if c := a.compareDebounce(b); c != 0 || inOrder {
				return c
			}
			return cmp.Or(boolOrder(b.Unique, a.Unique), cmp.Compare(a.OrgID, b.OrgID),
				cmp.Compare(a.IdempotencyKey, b.IdempotencyKey))
		})
	}
	out := make([]EnqueuedJob, len(jobs))
	for part := range slices.Chunk(order, limit) {
		if err := enqueueJobs(ctx, q, jobs, part, out); err != nil {
			return nil, Wrap("enqueue jobs", err)
		}
	}
	return out, nil
}

// enqueueJobs asks for the jobs at the positions, and writes the answers to the same positions of
// out.
func enqueueJobs(ctx context.Context, q Querier, jobs []NewJob, positions []int, out []EnqueuedJob) error {
	const stmt = `
SELECT ordinal, job_id, duplicate, result
  FROM daybook.enqueue_jobs(@orgs, @types, @payloads::text[]::jsonb[], @keys, @ready_ats, @priorities, @max_attempts, @links::text[]::jsonb[], @are_unique,
                            @queues, @sequences, @afters::text[]::jsonb[], @afters_any_end, @min_versions, @debounces::text[]::jsonb[], @limit_keys)`
	n := len(positions)
	orgs, types, payloads := make([]string, n), make([]string, n), make([]string, n)
	// A column that no job asks for is not sent.
	var keys, links, queues, sequences, afters, debounces, limitKeys []*string
	var due []*time.Time
	var priorities, attempts, versions []*int32
	var unique, anyEnds []*bool
	for i, at := range positions {
		j := &jobs[at]
		orgs[i], types[i], payloads[i] = j.OrgID, j.Type, string(j.Payload)
		keys = setAt(keys, i, n, j.IdempotencyKey)
		due = setPointerAt(due, i, n, j.ReadyAt)
		priorities = setAt(priorities, i, n, int32(j.Priority))
		attempts = setAt(attempts, i, n, int32(j.MaxAttempts))
		versions = setAt(versions, i, n, int32(j.MinVersion))
		links = setAt(links, i, n, string(j.Links))
		queues = setAt(queues, i, n, j.Queue)
		sequences = setAt(sequences, i, n, j.Sequence)
		afters = setAt(afters, i, n, idsJSON(j.After))
		unique = setAt(unique, i, n, j.Unique)
		anyEnds = setAt(anyEnds, i, n, j.AfterAnyEnd)
		limitKeys = setAt(limitKeys, i, n, j.LimitKey)
		debounces = setAt(debounces, i, n, j.Debounce.json())
	}
	text, args := traced(ctx, stmt, Args{
		"orgs": orgs, "types": types, "payloads": payloads, "keys": keys, "ready_ats": due, "priorities": priorities,
		"max_attempts": attempts, "links": links, "are_unique": unique, "queues": queues, "sequences": sequences,
		"afters":         afters,
		"afters_any_end": anyEnds, "min_versions": versions, "debounces": debounces, "limit_keys": limitKeys,
	})
	var ordinal int
	var r EnqueuedJob
	return Each(ctx, q, []any{&ordinal, &r.JobID, &r.Duplicate, &r.Result}, func() error {
		out[positions[ordinal-1]] = r
		return nil
	}, text, args)
}

// setAt sets an element of a slice of n pointers, which is made when the first value that is not
// zero comes.
func setAt[T comparable](list []*T, i, n int, v T) []*T {
	var zero T
	if v == zero {
		return list
	}
	set := v // not &v, which would be made for each zero value as well
	return setPointerAt(list, i, n, &set)
}

func setPointerAt[T any](list []*T, i, n int, v *T) []*T {
	if v == nil {
		return list
	}
	if list == nil {
		list = make([]*T, n)
	}
	list[i] = v
	return list
}

// idsJSON writes ids as the database takes many lists of them; "" when there are none.
func idsJSON(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	raw, _ := json.Marshal(ids) // strings can be written
	return string(raw)
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func textOrNil(raw json.RawMessage) *string {
	if raw == nil {
		return nil
	}
	return new(string(raw))
}

// RetryJob tries a background job again: mode is now, later or reset. A delay of 0 is the mode's
// own.
func RetryJob(ctx context.Context, q Querier, id, mode string, delay time.Duration) (Requested, error) {
	const stmt = `
WITH found AS MATERIALIZED (SELECT j.id, j.state = 'completed' AS completed FROM daybook.jobs j WHERE j.id = $1 FOR NO KEY UPDATE)
SELECT r.job_id, r.result, coalesce(r.reason, '') FROM found f CROSS JOIN LATERAL daybook.retry_job(f.id, $2, NULLIF($3::float8, 0)) r WHERE NOT f.completed
UNION ALL
SELECT f.id, 'completed', '' FROM found f WHERE f.completed
UNION ALL
SELECT $1, 'absent', '' WHERE NOT EXISTS (SELECT FROM found)`
	return changeJob(ctx, q, "retry the job", "enqueue a new one", stmt, id, mode, delay.Seconds())
}

// CancelJob asks that a background job not be worked.
func CancelJob(ctx context.Context, q Querier, id string) (Requested, error) {
	const stmt = `
WITH found AS MATERIALIZED (SELECT j.id, j.state = 'completed' AS completed FROM daybook.jobs j WHERE j.id = $1 FOR NO KEY UPDATE)
SELECT c.job_id, c.result, coalesce(c.reason, '') FROM found f CROSS JOIN LATERAL daybook.cancel_job(f.id) c WHERE NOT f.completed
UNION ALL
SELECT f.id, 'completed', '' FROM found f WHERE f.completed
UNION ALL
SELECT $1, 'absent', '' WHERE NOT EXISTS (SELECT FROM found)`
	return changeJob(ctx, q, "cancel the job", "what it did has to be undone elsewhere", stmt, id)
}

// JobEdit is how a background job is to be changed.
type JobEdit struct {
	// Type is the type that the job must have.
	Type    string
	Payload json.RawMessage
	// By is who edits; empty: the role of the database.
	By string
	// Retry is RetryJob's mode; empty: the job is not tried again.
	Retry string
	// Generation is the one that the job must be at; nil: any.
	Generation *int64
}

// EditJob gives a background job another payload.
func EditJob(ctx context.Context, q Querier, id string, e JobEdit) (r Requested, err error) {
	const stmt = `
SELECT job_id, result, coalesce(reason, '')
  FROM daybook.edit_job(@id, @payload::text::jsonb, @by, NULLIF(@retry::text, ''), @generation, @type)`
	err = queryRow(ctx, q, stmt, Args{
		"id": id, "payload": string(e.Payload), "by": e.By, "retry": e.Retry, "generation": e.Generation, "type": e.Type,
	}).Scan(&r.JobID, &r.Result, &r.Reason)
	return r, Wrap("edit the job", err)
}

// OrganizationOfJob returns whose a background job is, or ErrJobNotFound.
func OrganizationOfJob(ctx context.Context, q Querier, id string) (org string, err error) {
	const stmt = `SELECT j.org_id FROM daybook.jobs j WHERE j.id = @id`
	err = queryRow(ctx, q, stmt, Args{"id": id}).Scan(&org)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", ErrJobNotFound
	}
	return org, Wrap("read whose the job is", err)
}

// changeJob runs a statement that answers with a job's id and a result, and returns the answer, or
// the error that stands for it.
func changeJob(ctx context.Context, q Querier, doing, completedHint, stmt string,
	args ...any,
) (r Requested, err error) {
	switch err = q.QueryRow(ctx, stmt, args...).Scan(&r.JobID, &r.Result, &r.Reason); {
	case err != nil:
		return Requested{}, Wrap(doing, err)
	case r.Result == absent:
		return Requested{}, NoJob(r.JobID)
	case r.Result == completed:
		return Requested{}, Refuse(ErrJobCompleted, "job "+r.JobID+" is completed", completedHint)
	default:
		return r, nil
	}
}

// RunBulk changes the batches of an operation that are left, each in a transaction of its own,
// until there is none or ctx ends. Several callers share them; what is counted is what was
// committed.
func RunBulk(ctx context.Context, q Querier, id string) error {
	for {
		more, err := WorkBulkBatch(ctx, q, id)
		if err != nil || !more {
			return err
		}
	}
}

// WorkBulkBatch changes the next batch of an operation, and reports whether there was one.
func WorkBulkBatch(ctx context.Context, q Querier, id string) (more bool, err error) {
	return value[bool](ctx, q, "change a batch of jobs", `SELECT daybook.work_bulk_batch($1)`, id)
}

// OpenBulkOperations are operations that are not finished and that no process has worked on for a
// while. Where the database's clock was set back, some were worked on in the future.
func OpenBulkOperations(ctx context.Context, q Querier, idle time.Duration) ([]string, error) {
	const stmt = `
SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM daybook.bulk_operations
 WHERE finished_at IS NULL AND updated_at NOT BETWEEN clock_timestamp() - make_interval(secs => $1) AND clock_timestamp() + make_interval(secs => $1)`
	return value[[]string](ctx, q, "look for bulk operations", stmt, idle.Seconds())
}
