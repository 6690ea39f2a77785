// Package events has what the engine tells of jobs and of its own work, for those that observe a
// worker: metrics, logs, traces, the history and an application's subscriptions. It imports nothing
// of Daybook's, so that each of them may import it.
package events
