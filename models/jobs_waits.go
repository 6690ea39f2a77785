package models

import "time"

// waits is ReadyAt of a job that waits for its turn in a sequence or for other jobs.
var waits = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// Waits reports whether the job waits for its turn in its sequence or for other jobs. FirstReadyAt
// is when it is to be due after that.
func (j *Job) Waits() bool { return j.State == JobPending && j.ReadyAt.Equal(waits) }

// InLine reports whether the job's time has come, and it waits for the limit of its key.
func (j *Job) InLine() bool { return j.State == JobPending && j.FleetID == -2 }
