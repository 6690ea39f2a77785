package store

import "github.com/daybook-dev/daybook/models"

// endedTask is a task whose lease was ended by another one than its holder. Lost: it was being worked; Failed: for the last time.
type endedTask struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Attempt int    `json:"attempt"`
	Worker  string `json:"worker"`
	Turn    string `json:"turn"`
	Lost    bool   `json:"lost"`
	Failed  bool   `json:"failed"`
}

// reclaimed tells of tasks whose leases were ended.
func (q *TaskQueue) reclaimed(gone []endedTask) {
	if q.observe == nil {
		return
	}
	var all []Change
	for _, t := range gone {
		state := ""
		if t.Failed {
			state = string(models.JobFailed)
		}
		c := Change{Job: Job{ID: t.ID, Type: t.Type, Attempt: t.Attempt}, Worker: t.Worker, Turn: t.Turn}
		all = append(all, c.ended(ChangeReclaimed, t.Lost, state, models.CodeWorkerLost)...)
	}
	q.changed(all)
}
