package models

import (
	"fmt"
	"slices"
)

// JobState is the state of a job. Transitions has the changes from one to another.
type JobState string

const (
	JobPending   JobState = "pending"
	JobLeased    JobState = "leased"
	JobCompleted JobState = "completed"
	JobFailed    JobState = "failed"
	JobCancelled JobState = "cancelled"
)

// JobStates lists every state in the order of a job's life.
func JobStates() []JobState {
	return []JobState{JobPending, JobLeased, JobCompleted, JobFailed, JobCancelled}
}

// ParseJobState returns the state with that name.
func ParseJobState(s string) (JobState, error) {
	if st := JobState(s); slices.Contains(JobStates(), st) {
		return st, nil
	}
	return "", fmt.Errorf("unknown state %q: want pending, leased, completed, failed or cancelled", s)
}

// Transition is one arrow of a job's life.
type Transition struct {
	From, To JobState
	// By says in words what changes the state.
	By string
}

// Transitions is every change of state there is; docs/states.md is tested against it.
func Transitions() []Transition {
	return []Transition{
		{JobPending, JobLeased, "a turn leases the job: it is due and no other turn holds it"},
		{JobPending, JobCompleted, "a turn locks, works and completes the job in one transaction, without a lease"},
		{JobPending, JobPending, "the same, and the attempt is to be repeated; or a request moves the job's time"},
		{JobPending, JobFailed, "the same, and the error is permanent, or the attempts are used up; or the job's row " +
			"cannot be read"},
		{JobLeased, JobCompleted, "the attempt commits its effect and completes the job in one transaction"},
		{JobLeased, JobPending, "the attempt is to be repeated (backoff, not ready, version mismatch, locked), is given " +
			"back uncounted, something newer was asked for meanwhile, or the lease expired: its holder has not renewed it " +
			"for ten seconds, or for four and its process has died"},
		{JobLeased, JobFailed, "the error is permanent, or the attempts are used up"},
		{JobLeased, JobCancelled, "the document is deleted, or Cancel was asked for during the attempt"},
		{JobLeased, JobLeased, "another turn, or a later activity of the same turn, reclaims the job"},
		{JobPending, JobCancelled, "Cancel; or a turn works the job without a lease, and its document is deleted"},
		{JobFailed, JobCancelled, "Cancel"},
		{JobCompleted, JobPending, "Enqueue with a newer version, or MarkAccountingJobPending"},
		{JobFailed, JobPending, "Enqueue with a newer version, MarkAccountingJobPending, or the cause is gone (rule set " +
			"activated, account added, period opened)"},
		{JobCancelled, JobPending, "Enqueue with the same or a newer version, or MarkAccountingJobPending"},
	}
}

// Priority orders due jobs: 1 is highest. The zero value means PriorityNormal.
type Priority int16

const (
	PriorityHigh   Priority = 1
	PriorityNormal Priority = 2
	PriorityLow    Priority = 3
)
