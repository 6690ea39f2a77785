package models

import (
	"encoding/json"
	"time"
)

// waits is ReadyAt of a job that waits for its turn in a sequence or for other jobs.
var waits = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// Waits reports whether the job waits for its turn in its sequence or for other jobs. FirstReadyAt is when it is to be due after that.
func (j *Job) Waits() bool { return j.State == JobPending && j.ReadyAt.Equal(waits) }

// JobWait is one row of daybook.job_waits: a job that must be completed, or must have ended, before another one is due.
type JobWait struct {
	JobID string `gorm:"column:job_id;primaryKey" json:"job_id"`
	// Awaits is the id of the other job.
	Awaits string `gorm:"column:awaits;primaryKey" json:"awaits"`
	// AnyEnd: any end of the other job will do, also as a dead letter.
	AnyEnd bool `gorm:"column:any_end" json:"any_end"`
	// EndedAs is completed, failed, cancelled or removed, if AnyEnd is true; nil: the other job has not ended.
	EndedAs *string `gorm:"column:ended_as" json:"ended_as"`
}

// TableName implements GORM's Tabler.
func (JobWait) TableName() string { return "daybook.job_waits" }

// JobSequence is one row of daybook.job_sequences: whose turn it is in a sequence.
type JobSequence struct {
	OrgID string `gorm:"column:org_id;primaryKey" json:"org_id"`
	Key   string `gorm:"column:key;primaryKey" json:"key"`
	// Holder is the id of the job whose turn it is: the others wait until it is completed, cancelled or removed.
	Holder string `gorm:"column:holder" json:"holder"`
}

// TableName implements GORM's Tabler.
func (JobSequence) TableName() string { return "daybook.job_sequences" }

// JobWaitCheck is one row of daybook.job_wait_checks: what a worker has to decide. Exactly one of Sequence, Awaits and JobID is set.
type JobWaitCheck struct {
	ID        int64     `gorm:"column:id;primaryKey" json:"id"`
	CreatedAt time.Time `gorm:"column:created_at" json:"created_at"`
	// OrgID and Sequence name a sequence in which it is to be decided whose turn it is.
	OrgID    *string `gorm:"column:org_id" json:"org_id,omitempty"`
	Sequence *string `gorm:"column:sequence" json:"sequence,omitempty"`
	// Awaits is the id of a job that others wait for.
	Awaits *string `gorm:"column:awaits" json:"awaits,omitempty"`
	// JobID is the id of a job that may be due.
	JobID *string `gorm:"column:job_id" json:"job_id,omitempty"`
}

// TableName implements GORM's Tabler.
func (JobWaitCheck) TableName() string { return "daybook.job_wait_checks" }

// JobCallback is one row of daybook.job_callbacks: a callback that a job has asked for.
type JobCallback struct {
	// TokenHash is the SHA-256 of the token.
	TokenHash []byte `gorm:"column:token_hash;primaryKey" json:"-"`
	JobID     string `gorm:"column:job_id" json:"job_id"`
	// Name is the handler's for it.
	Name      string    `gorm:"column:name" json:"name"`
	CreatedAt time.Time `gorm:"column:created_at" json:"created_at"`
	Deadline  time.Time `gorm:"column:deadline" json:"deadline"`
	// CalledAt is when it came, with Data; nil: it has not.
	CalledAt *time.Time      `gorm:"column:called_at" json:"called_at,omitempty"`
	Data     json.RawMessage `gorm:"column:data" json:"data,omitempty"`
	// Seen says that an attempt has read it.
	Seen bool `gorm:"column:seen" json:"seen,omitempty"`
}

// TableName implements GORM's Tabler.
func (JobCallback) TableName() string { return "daybook.job_callbacks" }
