package models

import (
	"encoding/json"
	"time"
)

// JobEdit is a payload that a background job had until it was edited.
type JobEdit struct {
	// At is when it was edited, By who did it.
	At time.Time `json:"at"`
	By string    `json:"by"`
	// Attempts is the job's run_count then: so many attempts had this payload, or an earlier one.
	Attempts int `json:"attempts"`
	// Payload is what it was until then; the next edit has what it became, and after the last one the
	// job itself.
	Payload json.RawMessage `json:"payload"`
}
