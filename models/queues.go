package models

import "time"

// Fleet is one row of daybook.fleets: a set of programs that work the same named queues.
type Fleet struct {
	// ID is what jobs and queues hold; 0 is the fleet without a name.
	ID        int16     `gorm:"column:id;primaryKey" json:"id"`
	Name      string    `gorm:"column:name" json:"name"`
	CreatedAt time.Time `gorm:"column:created_at" json:"created_at"`
}

// TableName implements GORM's Tabler.
func (Fleet) TableName() string { return "daybook.fleets" }

// Queue is one row of daybook.queues: a named queue of background jobs.
type Queue struct {
	Name string `gorm:"column:name;primaryKey" json:"name"`
	// Fleet is the number of the fleet whose workers work it.
	Fleet int16 `gorm:"column:fleet" json:"fleet"`
	// MaxParallel is how many of its jobs may be leased at a time, over all workers; nil: any number.
	MaxParallel *int `gorm:"column:max_parallel" json:"max_parallel,omitempty"`
	// Rate is how many attempts may begin in RateSeconds, over all workers, RateBurst how many of them at once; nil: any number, and what the rate
	// allows in 50 ms.
	Rate        *int     `gorm:"column:rate" json:"rate,omitempty"`
	RateSeconds *float64 `gorm:"column:rate_seconds" json:"rate_seconds,omitempty"`
	RateBurst   *int     `gorm:"column:rate_burst" json:"rate_burst,omitempty"`
	// Owner is the team or contact responsible; empty: it is not said.
	Owner string `gorm:"column:owner" json:"owner,omitempty"`
	// PausedAt is since when nothing of it is leased; nil: it is not paused.
	PausedAt  *time.Time `gorm:"column:paused_at" json:"paused_at,omitempty"`
	CreatedAt time.Time  `gorm:"column:created_at" json:"created_at"`
	UpdatedAt time.Time  `gorm:"column:updated_at" json:"updated_at"`
	// PerProcess is how many of its jobs each worker process may have leased at a time; nil: any number.
	PerProcess *int `gorm:"column:per_process" json:"per_process,omitempty"`
}

// TableName implements GORM's Tabler.
func (Queue) TableName() string { return "daybook.queues" }

// QueueRate is one row of daybook.queue_rates: what was left of a queue's rate when it was last leased from.
type QueueRate struct {
	Queue string `gorm:"column:queue;primaryKey" json:"queue"`
	// Starts is how many attempts could begin at that time.
	Starts float64   `gorm:"column:starts" json:"starts"`
	At     time.Time `gorm:"column:at" json:"at"`
}

// TableName implements GORM's Tabler.
func (QueueRate) TableName() string { return "daybook.queue_rates" }
