package answers

import (
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// LimitSettings are a limit by key of a type of background jobs, or of a named queue.
type LimitSettings struct {
	By          string  `json:"by,omitempty" required:"false" maxLength:"255" doc:"What the key of a job is that was enqueued without a limitKey: org_id or a member of the payload; absent: such a job has none" example:"payload.account_id"`
	Parallel    int     `json:"parallel,omitempty" required:"false" minimum:"0" maximum:"2147483647" doc:"How many jobs of a key run at a time, over all workers; default any number"`
	Rate        int     `json:"rate,omitempty" required:"false" minimum:"0" maximum:"2147483647" doc:"How many attempts of a key begin in rateSeconds, over all workers; default any number"`
	RateSeconds float64 `json:"rateSeconds,omitempty" required:"false" minimum:"0" maximum:"31536000" doc:"The time of rate; default 1"`
}

// LimitScope is what a limit by key is of.
type LimitScope struct {
	Type  string `json:"type,omitempty" doc:"The type whose jobs it limits; absent: it is a queue's"`
	Queue string `json:"queue,omitempty" doc:"The named queue whose jobs it limits, of any type; absent: it is a type's"`
}

// KeyLimit is the limit by key of a type or a named queue.
type KeyLimit struct {
	LimitScope
	LimitSettings
	Declared  bool      `json:"declared" doc:"The policy of the type's handler says it, or the program that declares the queue; false: a person does"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// KeyLimitOf makes the answer of a limit.
func KeyLimitOf(l *store.KeyLimit) KeyLimit {
	return KeyLimit{
		LimitScope: LimitScope(l.LimitScope), Declared: l.Declared, UpdatedAt: l.UpdatedAt,
		LimitSettings: LimitSettings{By: l.By, Parallel: l.Parallel, Rate: l.Rate, RateSeconds: l.RateSeconds},
	}
}

// LimitedKey is a key of a limit that jobs wait for.
type LimitedKey struct {
	OrgID     string    `json:"orgId"`
	Key       string    `json:"key"`
	Admitted  int       `json:"admitted" doc:"Its jobs that run, or are about to"`
	Waiting   int       `json:"waiting" doc:"Its jobs that are due and wait for those"`
	OldestDue time.Time `json:"oldestDue" doc:"Since when the oldest of them is due"`
}

// LimitedKeyOf makes the answer of a key.
func LimitedKeyOf(k *store.LimitedKey) LimitedKey { return LimitedKey(*k) }
