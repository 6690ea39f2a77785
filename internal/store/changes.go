package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/models"
)

// Change is something that a method has done to a job, and committed, which its results count at
// most.
type Change struct {
	// What is the event: the job was given back, reclaimed, cancelled as its lease ended, or made a
	// dead letter without an attempt of its own.
	What events.Name
	// Job has what is known of it: at least its ID.
	Job Job
	// Worker and Turn held the lease that has ended.
	Worker, Turn string
	// Code and Message are those of an attempt that is lost, or of a dead letter.
	Code    models.ErrorCode
	Message string
	// Counted: the attempt was lost, and is logged as that.
	Counted bool
}

// The texts of an attempt that its worker did not end, in the log and in the row.
const (
	lostMessage     = "the worker ended while it worked on this job"
	lostLastMessage = "the worker ended while it worked on this job, for the last time that it may be tried"
)

// Observe implements engine.Kind.
func (b *base) Observe(f func([]Change)) { b.observe = f }

// changed tells of committed changes.
func (b *base) changed(all []Change) {
	if b.observe != nil && len(all) > 0 {
		b.observe(all)
	}
}

// backFrom reads what giveBackStmt returns of jobs that the turn gives back.
func backFrom(turn Turn) pgx.RowToFunc[Change] {
	return func(row pgx.CollectableRow) (Change, error) {
		c := Change{What: events.GivenBack, Worker: turn.Worker, Turn: turn.ID}
		var cancelled bool
		err := row.Scan(&c.Job.ID, &c.Job.OrgID, &c.Job.Type, &c.Job.DocumentID, &c.Job.Attempt, &cancelled)
		if cancelled {
			c.What = events.Cancelled
		}
		return c, err
	}
}

// ended are the changes by which a lease ended: of a kind, and what else became of its job. State
// is the job's now. The attempt is lost if c counts it.
func (c Change) ended(what events.Name, state string, code models.ErrorCode) []Change {
	c.What = what
	if c.Counted {
		c.What, c.Code, c.Message = events.Reclaimed, code, lostMessage
	}
	all := []Change{c}
	c.Counted = false
	switch state {
	case string(models.JobFailed):
		c.What, c.Message = events.Failed, lostLastMessage
		all = append(all, c)
	case string(models.JobCancelled):
		c.What, c.Code, c.Message = events.Cancelled, "", ""
		all = append(all, c)
	}
	return all
}

// readyHere is when a job was ready by the clock of this process, of which the database says when
// it was ready and when its attempt began.
func readyHere(received, ready, started time.Time) time.Time {
	if ready.IsZero() {
		return time.Time{}
	}
	return received.Add(-max(0, started.Sub(ready)))
}

// EventsChannel is the channel on which workers tell of events.
const EventsChannel = "daybook_events"

// MaxNotification is how many bytes a notification may have.
const MaxNotification = 7999

// NotifyEvents sends notifications to those that listen to events, in one statement.
func NotifyEvents(ctx context.Context, pool *pgxpool.Pool, payloads []string) error {
	const stmt = `SELECT pg_notify($1, p) FROM unnest($2::text[]) AS p`
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	_, err := pool.Exec(ctx, stmt, EventsChannel, payloads)
	return Wrap("tell of events", err)
}
