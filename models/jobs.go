package models

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/failure"
)

// What a payload may be at most; the database checks the same (daybook.check_job_payload).
const (
	// MaxPayloadBytes is the size of the payload as PostgreSQL writes it (payload::text): 128 KB.
	MaxPayloadBytes = 131072
	// MaxPayloadLevels is how deep objects and arrays may be nested; the payload itself is the first
	// level.
	MaxPayloadLevels = 10
	// MaxPayloadKeys is how many keys all objects of the payload may have together.
	MaxPayloadKeys = 500
)

// What a job's result, and its progress, may be at most.
const (
	// MaxResultBytes is the size of the JSON: 16 MB.
	MaxResultBytes = 16 << 20
	// MaxSteps is how many steps of a job may be kept, MaxStepBytes the size of the result of each, as
	// JSON: 1 MB, and MaxStepsBytes of all of them: 16 MB.
	MaxSteps      = 1000
	MaxStepBytes  = 1 << 20
	MaxStepsBytes = 16 << 20
	// MaxResultLevels is how deep objects and arrays may be nested.
	MaxResultLevels = 500
)

// Why a payload is refused; compare with errors.Is.
var (
	// ErrPayloadTooLarge: it has more than MaxPayloadBytes. Its code is CodePayloadTooLarge.
	ErrPayloadTooLarge = failure.New(failure.PayloadTooLarge, "the payload is too large")
	// ErrPayloadInvalid: it is not a JSON object, is nested too deep, has too many keys, or does not
	// match the schema of its type. Its code is CodePayloadInvalid.
	ErrPayloadInvalid = failure.New(failure.PayloadInvalid, "the payload is invalid")
)

// What the other columns of a background job may be at most.
const (
	MaxJobTypeBytes        = 64
	MaxIdempotencyKeyBytes = 255
	MaxJobAttempts         = 1000
	// MaxJobLinks is how many links a job may have; MaxLinkKindBytes and MaxLinkIDBytes bound each.
	MaxJobLinks      = 32
	MaxLinkKindBytes = 64
	MaxLinkIDBytes   = 255
	// MaxQueueNameBytes is the length of a named queue's name, MaxSequenceBytes that of a sequence's
	// key.
	MaxQueueNameBytes = 64
	MaxSequenceBytes  = 255
	// MaxLimitKeyBytes is the length of the key of a limit.
	MaxLimitKeyBytes = 255
	// MaxAwaited is how many other jobs a job may wait for.
	MaxAwaited = 100
)

// ValidQueueName reports whether a text can be the name of a named queue: it is made as the type of
// a job is.
func ValidQueueName(s string) bool { return ValidJobType(s) }

// ValidLimit reports whether a limit by key can be kept: parallel or rate is at least 1, and per, if it
// is given, is the time of a rate, a millisecond to 365 days. by is org_id, a member of the payload such
// as payload.account_id, or nothing.
func ValidLimit(by string, parallel, rate int, per time.Duration) bool {
	path, ofPayload := strings.CutPrefix(by, "payload.")
	switch {
	case parallel < 0 || rate < 0 || parallel == 0 && rate == 0 || max(parallel, rate) > math.MaxInt32:
		return false
	case per != 0 && (rate == 0 || per < time.Millisecond || per > 365*24*time.Hour):
		return false
	}
	return by == "" || by == "org_id" || ofPayload && len(by) <= 255 && !slices.Contains(strings.Split(path, "."), "")
}

// ValidJobType reports whether a text can be the type of a job: a letter and then letters, digits,
// '_', '.', ':' or '-', at most MaxJobTypeBytes.
func ValidJobType(s string) bool {
	if s == "" || len(s) > MaxJobTypeBytes {
		return false
	}
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		other := c >= '0' && c <= '9' || c == '_' || c == '.' || c == ':' || c == '-'
		if !letter && (i == 0 || !other) {
			return false
		}
	}
	return true
}

// Job is one row of daybook.jobs: a background job.
type Job struct {
	// ID is a UUID of version 7: ids are in the order of their creation.
	ID        string    `gorm:"column:id;primaryKey" json:"id"`
	CreatedAt time.Time `gorm:"column:created_at" json:"created_at"`
	UpdatedAt time.Time `gorm:"column:updated_at" json:"updated_at"`
	OrgID     string    `gorm:"column:org_id" json:"org_id"`
	// Type names the handler.
	Type string `gorm:"column:type" json:"type"`
	// Payload is a JSON object.
	Payload json.RawMessage `gorm:"column:payload" json:"payload"`
	// InputHash is the SHA-256 of type and payload as the job was enqueued: it tells whether a key is
	// used again with other input. Nil: the job has no key and need not be unique, or is debounced.
	InputHash      []byte  `gorm:"column:input_hash" json:"-"`
	IdempotencyKey *string `gorm:"column:idempotency_key" json:"idempotency_key,omitempty"`
	// UniqueHash is what no other open job of its organization may have: the SHA-256 of type and
	// payload when the job is to be the only one with these, or the hash of a key that keeps further
	// jobs out, such as a schedule's, or of DebounceKey.
	UniqueHash []byte   `gorm:"column:unique_hash" json:"-"`
	Priority   Priority `gorm:"column:priority" json:"priority"`
	// FleetID is the number of the fleet that works it (daybook.fleets), 0 that of the one without a
	// name.
	FleetID int16 `gorm:"column:fleet" json:"-"`
	// State: JobFailed is the dead letter.
	State JobState `gorm:"column:state" json:"state"`
	// ReadyAt is when the job is due next; FirstReadyAt when the present request was first due.
	ReadyAt      time.Time `gorm:"column:ready_at" json:"ready_at"`
	FirstReadyAt time.Time `gorm:"column:first_ready_at" json:"first_ready_at"`
	// RunCount counts attempts, the running one included.
	RunCount int `gorm:"column:run_count" json:"run_count"`
	// MaxAttempts is nil when the handler's policy says how many there are.
	MaxAttempts *int `gorm:"column:max_attempts" json:"max_attempts,omitempty"`
	// LastAttemptedAt is when the last lease was taken or renewed.
	LastAttemptedAt *time.Time `gorm:"column:last_attempted_at" json:"last_attempted_at,omitempty"`
	LastError       *string    `gorm:"column:last_error" json:"last_error,omitempty"`
	LastErrorCode   *ErrorCode `gorm:"column:last_error_code" json:"last_error_code,omitempty"`
	// Result is what the handler passed to SetResult when it completed the job; Progress what it last
	// passed to Progress.
	Result     json.RawMessage `gorm:"column:result" json:"result,omitempty"`
	Progress   json.RawMessage `gorm:"column:progress" json:"progress,omitempty"`
	FinishedAt *time.Time      `gorm:"column:finished_at" json:"finished_at,omitempty"`

	// Generation grows with each request; a completion ends only the generation that was leased.
	Generation      int64 `gorm:"column:generation" json:"generation"`
	CancelRequested bool  `gorm:"column:cancel_requested" json:"cancel_requested,omitempty"`
	// The lease; all nil unless State is JobLeased.
	TurnID           *string    `gorm:"column:turn_id" json:"turn_id,omitempty"`
	Fence            *int64     `gorm:"column:fence" json:"fence,omitempty"`
	LeasedGeneration *int64     `gorm:"column:leased_generation" json:"-"`
	Worker           *string    `gorm:"column:worker" json:"worker,omitempty"`
	AttemptStartedAt *time.Time `gorm:"column:attempt_started_at" json:"attempt_started_at,omitempty"`
	// Working is set while the row is being worked: when its lease is reclaimed, the lost attempt
	// counts.
	Working bool `gorm:"column:working" json:"working,omitempty"`
	// Detached says that the process that works it holds it beyond its turn, under a turn of its own
	// that no activity works.
	Detached bool `gorm:"column:detached" json:"detached,omitempty"`
	Reclaims int  `gorm:"column:reclaims" json:"reclaims,omitempty"`
	// Capped says that the last lease counted towards its organization's MaxInFlight.
	Capped bool `gorm:"column:capped" json:"capped,omitempty"`
	// Counted says that the last lease counted towards its type's limit over all workers.
	Counted bool `gorm:"column:counted" json:"counted,omitempty"`
	// TraceParent is the trace of the request that made the job, as W3C Trace Context writes it; nil:
	// it belonged to none. It is set from the setting daybook.traceparent.
	TraceParent *string `gorm:"->;column:traceparent" json:"traceparent,omitempty"`
	// Queue is the named queue; nil: the queue default.
	Queue *string `gorm:"column:queue" json:"queue,omitempty"`
	// MinVersion is the lowest version of the type's handler that may work it; nil: any.
	MinVersion *int `gorm:"column:min_version" json:"min_version,omitempty"`
	// Sequence is the key of its sequence: the jobs of one organization and key are worked one after
	// the other. Nil: it has none.
	Sequence *string `gorm:"column:sequence" json:"sequence,omitempty"`
	// DebounceKey is the key of the requests that the job has gathered; nil: it is not debounced.
	DebounceKey *string `gorm:"column:debounce_key" json:"debounce_key,omitempty"`
	// LimitKey is what it shares a limit with, LimitScope whose limit: its type's, or, as queue/ and the
	// name, its queue's. Nil: it has no limit.
	LimitKey   *string `gorm:"column:limit_key" json:"limit_key,omitempty"`
	LimitScope *string `gorm:"column:limit_scope" json:"limit_scope,omitempty"`
	// Awaited says that other jobs may wait for its end, also those of its LimitKey, that it has waited
	// for a callback, or that it has kept steps.
	Awaited bool `gorm:"column:awaited" json:"awaited,omitempty"`
	// Edits are the payloads that it had before, the first one first.
	Edits []JobEdit `gorm:"->;column:edits;serializer:json" json:"edits,omitempty"`
	// The attempt that completed the job: its turn, its fence, the worker, and when it began. All nil
	// unless State is JobCompleted, and of a job that was adopted as completed. RunCount is its
	// number and FinishedAt its end; JobAttempt has it in one.
	CompletedTurnID    *string    `gorm:"->;column:completed_turn_id" json:"completed_turn_id,omitempty"`
	CompletedFence     *int64     `gorm:"->;column:completed_fence" json:"-"`
	CompletedBy        *string    `gorm:"->;column:completed_by" json:"completed_by,omitempty"`
	CompletedStartedAt *time.Time `gorm:"->;column:completed_started_at" json:"completed_started_at,omitempty"`
}

// TableName implements GORM's Tabler.
func (Job) TableName() string { return "daybook.jobs" }

// JobLink is one row of daybook.job_links: what a background job is about, to find it by.
type JobLink struct {
	JobID string `gorm:"column:job_id;primaryKey" json:"-"`
	Kind  string `gorm:"column:kind;primaryKey" json:"kind"`
	ID    string `gorm:"column:id;primaryKey" json:"id"`
}

// TableName implements GORM's Tabler.
func (JobLink) TableName() string { return "daybook.job_links" }

// JobAttempt is a row of the view daybook.attempts as a background job has it.
type JobAttempt struct {
	ID    int64  `gorm:"column:id;primaryKey" json:"id"`
	JobID string `gorm:"column:job_id;primaryKey" json:"job_id"`
	OrgID string `gorm:"column:org_id" json:"org_id"`
	Type  string `gorm:"column:type" json:"type"`
	// Attempt is the job's run_count during this try, from 1; a retry with reset begins at 1 again.
	Attempt       int        `gorm:"column:attempt" json:"attempt"`
	Outcome       Outcome    `gorm:"column:outcome" json:"outcome"`
	ErrorCode     *ErrorCode `gorm:"column:error_code" json:"error_code,omitempty"`
	Error         *string    `gorm:"column:error" json:"error,omitempty"`
	StartedAt     time.Time  `gorm:"column:started_at" json:"started_at"`
	EndedAt       time.Time  `gorm:"column:ended_at" json:"ended_at"`
	Worker        string     `gorm:"column:worker" json:"worker"`
	TurnID        string     `gorm:"column:turn_id" json:"turn_id"`
	Fence         int64      `gorm:"column:fence" json:"fence"`
	WorkflowRunID string     `gorm:"column:workflow_run_id" json:"workflow_run_id"`
	// Times is how many attempts in a row the row stands for: those that were rescheduled for the
	// same reason are one row, whose other fields are the last one's. FirstStartedAt is when the
	// first of them began; nil when Times is 1.
	Times          int        `gorm:"column:times" json:"times"`
	FirstStartedAt *time.Time `gorm:"column:first_started_at" json:"first_started_at,omitempty"`
}

// TableName implements GORM's Tabler.
func (JobAttempt) TableName() string { return "daybook.attempts" }

// DeliveryState is what became of one channel of a job that sends by several.
type DeliveryState string

// The states of a delivery.
const (
	// DeliverySending: the channel was asked, and its answer is not on record yet.
	DeliverySending DeliveryState = "sending"
	// DeliverySent: the channel took the message. It is never sent again.
	DeliverySent DeliveryState = "sent"
	// DeliveryFailed: the message was not sent; the next attempt asks again.
	DeliveryFailed DeliveryState = "failed"
	// DeliveryRefused: the message was not sent, and no attempt asks again.
	DeliveryRefused DeliveryState = "refused"
	// DeliveryUnknown: the message was perhaps sent, and is not sent again.
	DeliveryUnknown DeliveryState = "unknown"
)
