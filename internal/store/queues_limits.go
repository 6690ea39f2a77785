package store

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store/due"
	"github.com/daybook-dev/daybook/models/locks"
)

// contendedQueue is for how long a named queue is passed over of which another worker is leasing
// just now.
const contendedQueue = 10 * time.Millisecond

// queueRoom is how many jobs of a named queue a transaction may lease.
type queueRoom struct {
	// left is what is not asked for, asked what is.
	left, asked int
	// rated: the queue has a rate. starts is how many attempts could begin at the time at, and each
	// is how long one more takes to be allowed.
	rated  bool
	starts float64
	at     time.Time
	each   time.Duration
	// wait is for how long the queue is passed over if nothing is left; 0: until one of its jobs
	// ends, or for a while.
	wait time.Duration
}

// queueRooms are those of the named queues that one transaction leases from.
type queueRooms map[string]*queueRoom

// inQueues reports whether one of the shares is of a named queue.
func inQueues(shares []due.Share) bool {
	return slices.ContainsFunc(shares, func(sh due.Share) bool { return sh.Queue() != "" })
}

// withinQueues locks the named queues of the shares that have a limit or a rate, reads what is left
// of them to the worker, and divides that among the shares. It leaves out those of queues of which
// nothing is left, or that another worker is leasing from.
func (s *Store) withinQueues(ctx context.Context, tx pgx.Tx, worker string, shares []due.Share) ([]due.Share,
	queueRooms, error,
) {
	rooms := queueRooms{}
	var names []string
	for _, sh := range shares {
		if queue := sh.Queue(); sh.Counted && rooms[queue] == nil {
			rooms[queue] = &queueRoom{wait: contendedQueue}
			names = append(names, queue)
		}
	}
	if len(names) == 0 {
		return shares, nil, nil
	}
	locked, err := tryLocks(ctx, tx, locks.QueueLeases, names)
	if err != nil {
		return nil, nil, err
	}
	if err := rooms.read(ctx, tx, worker, locked); err != nil {
		return nil, nil, err
	}
	open := shares[:0]
	for _, sh := range shares {
		if sh.Counted {
			room := rooms[sh.Queue()]
			sh.Quota = min(sh.Quota, room.left)
			room.left, room.asked = room.left-sh.Quota, room.asked+sh.Quota
		}
		if sh.Quota > 0 {
			open = append(open, sh)
		}
	}
	return open, rooms, nil
}

// read reads what is left of the queues, whose locks the transaction holds: the statement's
// snapshot is younger than they are.
func (r queueRooms) read(ctx context.Context, tx pgx.Tx, worker string, queues []string) error {
	const stmt = `
SELECT u.name, least(coalesce(u.max_parallel - (SELECT count(*) FROM daybook.jobs q WHERE q.queue = u.name AND q.state = 'leased'), 1000000),
                     coalesce(u.per_process - (SELECT count(*) FROM daybook.jobs q WHERE q.queue = u.name AND q.state = 'leased' AND q.worker = $2), 1000000),
                     CASE WHEN u.rate IS NOT NULL THEN floor(x.starts) ELSE 1000000 END)::integer,
       u.rate IS NOT NULL, coalesce(x.starts, 0)::float8, x.at, coalesce(u.rate_seconds / u.rate, 0)::float8
  FROM daybook.queues u
  LEFT JOIN daybook.queue_rates r ON r.queue = u.name
 CROSS JOIN LATERAL (
       SELECT n.at, least(b.most, coalesce(r.starts + greatest(extract(epoch FROM n.at - r.at), 0)::float8 * u.rate / u.rate_seconds, b.most)) AS starts
         FROM (SELECT clock_timestamp() AS at) n
        CROSS JOIN (SELECT coalesce(u.rate_burst, greatest(1, ceil(u.rate * 0.05 / u.rate_seconds)))::float8 AS most) b) x
 WHERE u.name = ANY ($1)`
	if len(queues) == 0 {
		return nil
	}
	var name string
	var room queueRoom
	var each float64
	_, err := byKey(ctx, tx, eachRow([]any{&name, &room.left, &room.rated, &room.starts, &room.at, &each}, func() {
		of := room
		of.left, of.each = max(of.left, 0), seconds(each)
		if of.rated && of.starts < 1 {
			of.wait = of.after(0)
		}
		r[name] = &of
	}), stmt, queues, worker)
	return err
}

// after is how long it takes until one more attempt may begin, when so many have begun now.
func (r *queueRoom) after(began int) time.Duration {
	return max(time.Duration((1-(r.starts-float64(began)))*float64(r.each)), time.Millisecond)
}

// take counts the attempts that begin towards the rates of their queues, and notes of which nothing
// is left.
func (r queueRooms) take(ctx context.Context, tx pgx.Tx, jobs []Job) error {
	const stmt = `
INSERT INTO daybook.queue_rates AS r (queue, starts, at)
SELECT * FROM unnest(@queues::text[], @starts::float8[], @ats::timestamptz[])
ON CONFLICT (queue) DO UPDATE SET starts = excluded.starts, at = excluded.at`
	began := map[string]int{}
	for _, j := range jobs {
		if r[j.Queue] != nil {
			began[j.Queue]++
		}
	}
	var queues []string
	var starts []float64
	var ats []time.Time
	for queue, room := range r {
		n := began[queue]
		room.left, room.asked = room.left+room.asked-n, 0
		if room.rated && n > 0 {
			queues, starts, ats = append(queues, queue), append(starts, room.starts-float64(n)), append(ats, room.at)
			if room.starts-float64(n) < 1 {
				room.wait = room.after(n)
			}
		}
	}
	if len(queues) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, stmt, Args{"queues": queues, "starts": starts, "ats": ats})
	return err
}

// close has the queues passed over of which nothing is left.
func (r queueRooms) close(room Room) {
	for queue, of := range r {
		if of.left <= 0 {
			room.QueueFull(queue, of.wait)
		}
	}
}
