package store

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store/due"
	"github.com/daybook-dev/daybook/internal/store/hosts"
)

// DefaultLimit is how many rows a list has when its filter does not say.
const DefaultLimit = 100

// Querier is what a request needs: a pgx transaction, pool or connection, or an adapter over one of
// another library.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// DB is a Querier that can execute as well.
type DB interface {
	Querier
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// base is what every kind of queue has for its worker: transactions on a pool, and what becomes
// known of the schema and of jobs.
type base struct {
	pool *pgxpool.Pool
	// listening has the sessions that listen and hold locks; nil: pool.
	listening *pgxpool.Pool
	kind      *Kind
	// guard keeps the worker from a schema that is not this program's.
	guard guard
	// hosts are the servers of the pool's address, which have to agree on one primary.
	hosts *hosts.Watch
	// observe is told of changes; nil: nothing is.
	observe func([]Change)
	// spare is held while leases are renewed on a connection that is not the pool's.
	spare sync.Mutex
	// silent: the last renewal on the pool had no answer in its time.
	silent atomic.Bool
}

// Store runs the worker's statements on a pool.
type Store struct {
	base
	due *due.Partitions
	// polled is what the last poll found, until the turn that it was for has taken it.
	polled       atomic.Pointer[polled]
	doubts       doubts
	decidedWaits decidedWaits
}

// New returns a store of the accounting queue on pool, which stays the caller's to close, for a
// worker that reads daybook.documents and has no hooks.
func New(pool *pgxpool.Pool) *Store { return NewQueue(pool, Accounting) }

// NewQueue returns a store of a kind of queue.
func NewQueue(pool *pgxpool.Pool, kind *Kind) *Store {
	s := &Store{base: base{pool: pool, kind: kind, hosts: hosts.NewWatch(pool)}}
	s.due = due.New(due.Reader{Recent: s.readRecent, Part: s.readPart})
	return s
}

// Kind returns the kind of queue that the store was made for.
func (s *Store) Kind() *Kind { return s.kind }

// Pool returns the pool that the store was made with.
func (b *base) Pool() *pgxpool.Pool { return b.pool }

// ListenBy has the store listen, and hold locks that outlast a transaction, in sessions of another
// pool of the database, because a pooler gives those of its own to other clients; nil: in its own.
// Call it before the store is used.
func (b *base) ListenBy(pool *pgxpool.Pool) { b.listening = pool }

// Turn is who leases: one bounded pass of a lane.
type Turn struct {
	// ID is made of the workflow's run, the lane and a counter, with a slash between them: what
	// comes before the first slash is the run, nothing if there is none.
	ID string
	// Fence is the number that the running activity drew; it only grows.
	Fence int64
	// FirstFence is the first number that the running activity drew, if it drew another one since;
	// 0: it did not.
	FirstFence int64
	// Worker names the process, for people.
	Worker string
	// WorkflowRunID is the run of the workflow that the turn belongs to.
	WorkflowRunID string
	// Detached says that no activity works the turn: its process alone holds it.
	Detached bool
	// Begins says that background jobs which it leases are begun at once: they are charged if the
	// worker ends.
	Begins bool
}

// Detach returns the turn by which the process holds jobs that go on without the turn's activity.
// Its name has the fence: what the next attempt of the activity detaches, perhaps while these go
// on, is another turn's.
func (t Turn) Detach() Turn {
	t.ID, t.Detached = t.ID+"/detached-"+strconv.FormatInt(t.Fence, 10), true
	return t
}

// args adds the turn and its fence to the arguments of a statement.
func (t Turn) args(a Args) Args {
	a["turn"], a["fence"] = t.ID, t.Fence
	return a
}

const nextFence = `SELECT nextval('daybook.fence_seq')`

// NextFence implements engine.Transactions: it fails with ErrSchemaMismatch.
func (b *base) NextFence(ctx context.Context) (fence int64, err error) {
	if _, err := b.ready(ctx); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	err = b.pool.QueryRow(ctx, cmp.Or(b.kind.fence, nextFence)).Scan(&fence)
	return fence, Wrap("draw a fence", b.suspect(ctx, leaveSpoilt(b.pool, err)))
}

// statementLimit bounds a statement of the worker's own: a connection that does not answer any more
// must not hold up a turn that goes on sending heartbeats.
const statementLimit = 30 * time.Second

// LeaseLimit is the time after which a statement that leases has ended, also when its caller does
// not know how it ended.
const LeaseLimit = 10 * time.Second

// TableLockModes are those of a lock on a whole table that keep others from writing it.
var TableLockModes = []string{"ShareLock", "ShareRowExclusiveLock", "ExclusiveLock", "AccessExclusiveLock"}

// Answers implements engine.Transactions.
func (b *base) Answers(ctx context.Context) bool {
	const stmt = `
SELECT current_setting('transaction_read_only')::boolean, EXISTS (
    SELECT FROM pg_locks WHERE relation = to_regclass($1) AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND granted AND mode = ANY ($2))`
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var readOnly, locked bool
	err := b.pool.QueryRow(ctx, stmt, b.kind.table, TableLockModes).Scan(&readOnly, &locked)
	if readOnly {
		b.pool.Reset() // see leaveSpoilt
	}
	return err == nil && !readOnly && !locked
}

// seconds is what PostgreSQL's extract(epoch) says.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
