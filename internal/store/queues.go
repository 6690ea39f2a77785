package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// NamedQueue is a named queue of background jobs: its settings, and how it stands.
type NamedQueue struct {
	Name string
	// Fleet is the name of the fleet whose workers work it; empty: the one without a name.
	Fleet string
	// MaxParallel is how many of its jobs may be leased at a time, over all workers; 0: any number.
	MaxParallel int
	// PerProcess is how many of its jobs each worker process may have leased at a time; 0: any
	// number. A process is known by its worker's name.
	PerProcess int
	// Rate is how many attempts may begin in RateSeconds, over all workers; 0: any number. RateBurst
	// is how many of them may begin at once; 0: what the rate allows in 50 ms, at least one.
	Rate        int
	RateSeconds float64
	RateBurst   int
	// Owner is the team or contact responsible.
	Owner string
	// SetBy is which person has set these settings, at the time SetAt: then what programs ask for
	// waits. Empty: they are the programs'.
	SetBy string
	SetAt *time.Time
	// PausedAt is since when nothing of it is leased; nil: it is not paused.
	PausedAt *time.Time
	// Pending, Leased and Failed count its jobs, Due those of the pending that are due, since
	// OldestDue.
	Pending   int
	Due       int
	Leased    int
	Failed    int
	OldestDue *time.Time
	// Workers counts the workers of its fleet that were heard of in the last five minutes and have
	// not stopped.
	Workers int
}

// SetQueue makes a named queue, or gives it these settings; its pause and its counts are not among
// them. Open jobs go to the fleet that is named: 1,000 at once, the others by way of CheckWaits.
// With SetBy they count until ReleaseQueue; without, they wait while a person has set the queue. It
// reports whether those that count were changed, and returns ErrInvalid for settings that cannot be.
func SetQueue(ctx context.Context, q Querier, u NamedQueue) (changed bool, err error) {
	const stmt = `
SELECT daybook.set_queue(@name, nullif(@fleet, ''), nullif(@parallel::integer, 0), nullif(@rate::integer, 0), nullif(@seconds::float8, 0),
                         nullif(@burst::integer, 0), @owner, nullif(@process::integer, 0), nullif(@by, ''))`
	return value[bool](ctx, q, "set the queue "+u.Name, stmt, Args{
		"name": u.Name, "fleet": u.Fleet, "parallel": u.MaxParallel, "process": u.PerProcess, "rate": u.Rate,
		"seconds": u.RateSeconds, "burst": u.RateBurst, "owner": u.Owner, "by": u.SetBy,
	})
}

// PauseQueue pauses a named queue, or resumes it, and says whether that changed something. It
// returns ErrQueueNotFound where there is none of that name.
func PauseQueue(ctx context.Context, q Querier, name string, paused bool) (changed bool, err error) {
	changed, err = value[bool](ctx, q, "pause the queue "+name, `SELECT daybook.pause_queue($1, $2)`, name, paused)
	return changed, ofNoQueue(name, err)
}

// ReleaseQueue gives a named queue that a person has set back to the programs, and says whether a
// person had set it. It returns ErrQueueNotFound where there is none of that name.
func ReleaseQueue(ctx context.Context, q Querier, name string) (changed bool, err error) {
	changed, err = value[bool](ctx, q, "release the queue "+name, `SELECT daybook.release_queue($1)`, name)
	return changed, ofNoQueue(name, err)
}

// DeleteQueue deletes a named queue. It returns ErrQueueNotFound, or ErrQueueNotEmpty where it has
// open jobs.
func DeleteQueue(ctx context.Context, q Querier, name string) error {
	_, err := value[bool](ctx, q, "delete the queue "+name, `SELECT daybook.delete_queue($1) IS NULL`, name)
	return ofNoQueue(name, err)
}

// gatherStmt puts on record, for CheckWaits, the fleet's queues with open jobs that were enqueued
// for another fleet while their queue came to it. A queue that was not changed in the last hour has
// none.
const gatherStmt = `
INSERT INTO daybook.job_wait_checks (queue)
SELECT u.name
  FROM daybook.queues u
 WHERE u.fleet = $1 AND u.updated_at > statement_timestamp() - interval '1 hour'
   AND EXISTS (SELECT FROM daybook.jobs j
                WHERE j.queue = u.name AND j.state IN ('pending', 'leased', 'failed') AND j.fleet = ANY (ARRAY(SELECT f.id FROM daybook.fleets f WHERE f.id <> $1)))
RETURNING daybook.wake_job_queue($1)::text`

// QueuesPage says which named queues are listed. The zero value lists all.
type QueuesPage struct {
	// Name lists the queue of that name alone.
	Name string
	// Fleet lists the queues of that fleet alone; nil: of all fleets. The fleet without a name is the
	// empty one.
	Fleet *string
	// After begins the list after the queue of that name, for the next page.
	After string
	// Limit is how many are listed at most; 0: all.
	Limit int
}

// NamedQueues returns named queues in the order of their names. It returns ErrQueueNotFound where
// the page names one that there is not. A queue costs what it has of open jobs and dead letters:
// the index of queues is read, and nothing else of the jobs.
func NamedQueues(ctx context.Context, q Querier, p QueuesPage) ([]NamedQueue, error) {
	const stmt = `
SELECT u.name, u.fleet_name, coalesce(u.max_parallel, 0), coalesce(u.per_process, 0), coalesce(u.rate, 0), coalesce(u.rate_seconds, 0), coalesce(u.rate_burst, 0), u.owner, coalesce(u.set_by, ''), u.set_at, u.paused_at,
       c.pending, c.due, c.leased, c.failed, c.oldest,
       (SELECT count(DISTINCT w.name) FROM daybook.live_job_workers w WHERE w.fleet = u.fleet AND w.id <> 'async-operations')
  FROM (SELECT u.*, f.name AS fleet_name
          FROM daybook.queues u
          JOIN daybook.fleets f ON f.id = u.fleet
         WHERE (@name = '' OR u.name = @name) AND u.name > @after AND (@fleet::text IS NULL OR f.name = @fleet)
         ORDER BY u.name
         LIMIT nullif(@limit::integer, 0)) u
 CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE j.state = 'pending') AS pending,
              count(*) FILTER (WHERE j.state = 'pending' AND j.fleet <> -2 AND j.ready_at <= statement_timestamp()) AS due,
              count(*) FILTER (WHERE j.state = 'leased') AS leased, count(*) FILTER (WHERE j.state = 'failed') AS failed,
              min(j.ready_at) FILTER (WHERE j.state = 'pending' AND j.fleet <> -2 AND j.ready_at <= statement_timestamp()) AS oldest
         FROM daybook.jobs j
        WHERE j.queue = u.name AND j.state IN ('pending', 'leased', 'failed')) c
 ORDER BY u.name`
	queues, err := Collect(ctx, q, pgx.RowToStructByPos[NamedQueue], stmt,
		Args{"name": p.Name, "after": p.After, "fleet": p.Fleet, "limit": p.Limit})
	if err == nil && p.Name != "" && len(queues) == 0 {
		return nil, noQueue(p.Name)
	}
	return queues, Wrap("list the named queues", err)
}

// QueueOf returns the named queue of that name, or ErrQueueNotFound.
func QueueOf(ctx context.Context, q Querier, name string) (NamedQueue, error) {
	// Not even a name that is empty lists all.
	if name == "" {
		return NamedQueue{}, noQueue(name)
	}
	queues, err := NamedQueues(ctx, q, QueuesPage{Name: name})
	if err != nil {
		return NamedQueue{}, err
	}
	return queues[0], nil
}

// QueueFleets returns the names of the fleets that work these named queues, by the queues. It
// leaves out what the fleet without a name works, and what does not exist.
func QueueFleets(ctx context.Context, q Querier, queues []string) (map[string]string, error) {
	const stmt = `
SELECT u.name, f.name FROM daybook.queues u JOIN daybook.fleets f ON f.id = u.fleet WHERE u.name = ANY ($1) AND u.fleet <> 0`
	if len(queues) == 0 {
		return map[string]string{}, nil
	}
	fleets, err := Pairs[string, string](ctx, q, stmt, queues)
	return fleets, Wrap("read the fleets of queues", err)
}

// ofNoQueue says of a queue that is not there what helps a caller who does not enqueue: the
// database advises to make it.
func ofNoQueue(name string, err error) error {
	if errors.Is(err, ErrQueueNotFound) {
		return noQueue(name)
	}
	return err
}

func noQueue(name string) error {
	if name == "default" {
		return Refuse(ErrQueueNotFound, "'default' is where jobs are that are in no named queue",
			"it has no settings: pause an organization or the workflow instead")
	}
	return Refuse(ErrQueueNotFound, "there is no queue '"+name+"'", "`daybook queues list` shows which there are")
}

// LockQueue holds a named queue for the rest of the transaction, so that what is read of its
// settings is what is changed. It says whether there is one of that name.
func LockQueue(ctx context.Context, tx pgx.Tx, name string) (bool, error) {
	tag, err := tx.Exec(ctx, `SELECT FROM daybook.queues WHERE name = $1 FOR NO KEY UPDATE`, name)
	return tag.RowsAffected() == 1, Wrap("lock the queue "+name, err)
}
