package queue

import (
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
)

// ErrInvalidDebounce: the options of a debounced job contradict each other, or its key or one of
// its times is out of range.
var ErrInvalidDebounce = failure.New(failure.Invalid,
	"a debounced job needs a key of 1 to 255 bytes, a Wait from 0 to "+
		"100 years, and a MaxWait that is 0 or no shorter; Keep is queue.KeepNewest, KeepFirst or KeepMerged, and Merge is "+
		"for the last; it has no IdempotencyKey, RunAt, Unique, Sequence, After or MinVersion")

// Keep says which payload a debounced job has after several requests.
type Keep string

const (
	// KeepNewest: that of the last request. A job that has failed and would be tried again is
	// cancelled for it (REPLACED).
	KeepNewest Keep = "newest"
	// KeepFirst: that of the first request since the last attempt began.
	KeepFirst Keep = "first"
	// KeepMerged: what Debounce.Merge makes of all of them.
	KeepMerged Keep = "merged"
)

// maxDebounce bounds the times of a Debounce, maxDebounceKey its key.
const (
	maxDebounce    = 100 * 365 * 24 * time.Hour
	maxDebounceKey = 255
)

// Debounce has a job wait for further requests of its organization and type with the same key,
// which change its payload and put it off. A request that comes after its first attempt has begun
// makes a job of its own, which begins when the one before it has ended. The zero value: the job
// is not debounced.
type Debounce struct {
	// Key says which requests are one: "customer-17".
	Key string
	// Wait is how long after the last request the job is due; 0: at once.
	Wait time.Duration
	// MaxWait is how long after the first request it is due at the latest, however many follow; 0:
	// there is no such time. With MaxWait equal to Wait the first request alone says when it is due.
	MaxWait time.Duration
	// Keep says which payload it has; empty: KeepNewest.
	Keep Keep
	// Merge is the name of a function of the database for KeepMerged, from the payload that waits and
	// the new one (jsonb, jsonb) to the one that both make (jsonb). It is found and called as in a
	// statement of the caller. Empty: the members of both, of those with one name the newer one.
	Merge string
}

// row checks the options of a debounced job, and returns them as package store takes them; nil:
// the job is not debounced.
func (d Debounce) row(o *JobOptions) (*store.Debounce, error) {
	if d == (Debounce{}) {
		return nil, nil
	}
	switch {
	case d.Key == "" || len(d.Key) > maxDebounceKey,
		d.Wait < 0 || d.Wait > maxDebounce,
		d.MaxWait != 0 && d.MaxWait < d.Wait || d.MaxWait > maxDebounce,
		d.Keep != "" && d.Keep != KeepNewest && d.Keep != KeepFirst && d.Keep != KeepMerged,
		d.Merge != "" && d.Keep != KeepMerged,
		o.IdempotencyKey != "" || !o.RunAt.IsZero() || o.Unique || o.Sequence != "" || len(o.After) > 0 || o.AfterAnyEnd ||
			o.MinVersion != 0:
		return nil, ErrInvalidDebounce
	}
	for what, text := range map[string]string{"key of Debounce": d.Key, "Merge of Debounce": d.Merge} {
		if err := checkText(what, text); err != nil {
			return nil, fmt.Errorf("debounce: %w", err)
		}
	}
	return &store.Debounce{
		Key: d.Key, Wait: d.Wait.Seconds(), MaxWait: d.MaxWait.Seconds(), Keep: string(d.Keep), Merge: d.Merge,
	}, nil
}
