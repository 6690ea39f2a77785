package models

import "time"

// TurnTrouble is what a turn's heartbeats say while the database fails its statements.
type TurnTrouble struct {
	// Says is the newest error, Since when the first came, by the worker's clock.
	Says  string    `json:"says"`
	Since time.Time `json:"since"`
}

// TurnHeartbeat is the part of a turn's heartbeat that others than the activity's next attempt read.
type TurnHeartbeat struct {
	// Trouble is nil while the database answers.
	Trouble *TurnTrouble `json:"trouble,omitempty"`
}
