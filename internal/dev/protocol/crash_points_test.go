package protocol_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// crash is one point at which a process loses its connection, or dies.
type crash struct {
	// statement: before the how-many-th statement is sent; answer: when what the server has done is
	// known to it alone. One of them is set; 0: it does not happen.
	statement, answer int
	// dies: all connections end, and no more can be made. Otherwise the one is cut.
	dies bool
	// ends: only what begins and ends transactions counts, which pgx sends as simple queries.
	ends bool

	mu                  sync.Mutex
	statements, answers int
	happened, dead      bool
	open                map[net.Conn]bool
	// died is called when the process dies.
	died func()
}

var errCrashed = errors.New("the test has cut the connection")

// pool reaches the database as the process does that is to crash.
func (c *crash) pool(t *testing.T, db *pgtest.DB) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(db.URL)
	require.NoError(t, err)
	dial := config.ConnConfig.DialFunc
	c.open = map[net.Conn]bool{}
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.dead {
			return nil, errCrashed
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c.open[conn] = true
		return &crashing{Conn: conn, crash: c}, nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	return pool
}

// happens ends the connection, or all. It is called with the lock.
func (c *crash) happens(conn net.Conn) {
	c.happened = true
	_ = conn.Close()
	if c.dies {
		c.dead = true
		for conn := range c.open {
			_ = conn.Close()
		}
		c.died()
	}
}

// crashing counts the messages of PostgreSQL's protocol on a connection.
type crashing struct {
	net.Conn
	crash *crash
	// begun: the startup message was sent. ready: the server has said that it is ready.
	begun, ready bool
	// sent is the type of the last message that asked for something.
	sent byte
	// header and rest are of the message that is being read.
	header []byte
	rest   int
}

// Write implements net.Conn: it is called with whole messages.
func (c *crashing) Write(p []byte) (int, error) {
	if !c.begun {
		c.begun = true
		return c.Conn.Write(p)
	}
	c.crash.mu.Lock()
	for at := 0; at+5 <= len(p); at += 1 + int(binary.BigEndian.Uint32(p[at+1:])) {
		if p[at] == 'E' || p[at] == 'Q' {
			c.sent = p[at]
		}
		if p[at] != 'Q' && (p[at] != 'E' || c.crash.ends) {
			continue
		}
		if c.crash.statements++; c.crash.statements == c.crash.statement {
			_, _ = c.Conn.Write(p[:at])
			c.crash.happens(c.Conn)
			c.crash.mu.Unlock()
			return 0, errCrashed
		}
	}
	c.crash.mu.Unlock()
	return c.Conn.Write(p)
}

// Read implements net.Conn.
func (c *crashing) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.crash.mu.Lock()
	defer c.crash.mu.Unlock()
	for left := p[:n]; len(left) > 0; {
		if c.rest > 0 {
			part := min(c.rest, len(left))
			c.rest, left = c.rest-part, left[part:]
			continue
		}
		part := min(5-len(c.header), len(left))
		c.header, left = append(c.header, left[:part]...), left[part:]
		if len(c.header) < 5 {
			continue
		}
		c.rest = int(binary.BigEndian.Uint32(c.header[1:])) - 4
		done := c.header[0] == 'Z'
		c.header = nil
		switch {
		case done && !c.ready:
			c.ready = true // it is connected
		case done && (c.sent == 'Q' || !c.crash.ends):
			if c.crash.answers++; c.crash.answers == c.crash.answer {
				c.crash.happens(c.Conn)
				return 0, io.ErrUnexpectedEOF
			}
		}
	}
	return n, err
}

// process is what is crashed: it works with a pool, and ends with its context.
type process func(ctx context.Context, pool *pgxpool.Pool)

// shards are side by side, each with a database and a share of the points: a process that has lost
// its connection waits for half a second before it goes on.
const shards = 4

// shortSteps: with -short, as in CI, a shard takes one point in so many.
const shortSteps = 3

func sharded(t *testing.T, test func(t *testing.T, shard int)) {
	t.Helper()
	for shard := range shards {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			test(t, shard)
		})
	}
}

// eachCrash runs a process once for each point, of a shard, at which it can lose its connection or
// die. begin is called before each run, and survives after it: it has another process finish the
// work.
//
// With ends, it is once for each beginning and end of a transaction, and a process does not die.
func eachCrash(t *testing.T, shard int, db *pgtest.DB, ends bool, begin func(run int), run process, survives func(run int, dies bool)) {
	t.Helper()
	once := func(n int, c *crash) *crash {
		begin(n)
		pool := c.pool(t, db)
		ctx, cancel := context.WithTimeout(t.Context(), pgtest.Patience)
		c.died = cancel
		run(ctx, pool)
		cancel()
		pool.Close()
		survives(n, c.dies)
		return c
	}
	whole := once(0, &crash{ends: ends})
	require.Positive(t, whole.statements)
	n, met, began := 0, 0, time.Now()
	kinds := []bool{false, true}
	if ends {
		kinds = kinds[:1]
	}
	for _, dies := range kinds {
		var points []*crash
		for i := range whole.statements {
			points = append(points, &crash{statement: i + 1, dies: dies, ends: ends})
		}
		for i := range whole.answers {
			// To die with an answer is to die before the next statement.
			if !dies || i == whole.answers-1 {
				points = append(points, &crash{answer: i + 1, dies: dies, ends: ends})
			}
		}
		for i, c := range points {
			if i%shards != shard || testing.Short() && i/shards%shortSteps != 0 {
				continue
			}
			n++
			if once(n, c).happened {
				met++
			}
			if t.Failed() {
				t.Fatalf("statement %d, answer %d, dies %t", c.statement, c.answer, c.dies)
			}
		}
	}
	// How many statements there are depends on the moment: the first run may have had a few more.
	require.Greater(t, met, n/2, "the points were met")
	t.Logf("%d of %d points met, %s", met, n, time.Since(began).Round(time.Second))
}

// TestCrashWhileEnqueuing: an application writes an order and asks for a job in one transaction, and
// does so again when it does not know whether it was committed. There are both, or none, and in the
// end one of each.
func TestCrashWhileEnqueuing(t *testing.T) {
	t.Parallel()
	sharded(t, crashWhileEnqueuing)
}

func crashWhileEnqueuing(t *testing.T, shard int) {
	t.Helper()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `CREATE TABLE orders (id integer PRIMARY KEY)`)
	require.NoError(t, err)
	var number int
	request := func(ctx context.Context, pool *pgxpool.Pool) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `INSERT INTO orders VALUES ($1) ON CONFLICT DO NOTHING`, number); err != nil {
				return err
			}
			for i, o := range []queue.JobOptions{
				{IdempotencyKey: fmt.Sprint("key-", number)},
				{Unique: true},
				{Debounce: queue.Debounce{Key: fmt.Sprint("key-", number)}},
			} {
				if _, err := queue.EnqueueJob(ctx, tx, "org", payload(10*number+i), o); err != nil {
					return err
				}
			}
			return nil
		})
	}
	count := func(sql string) int { return fixture.Count(t, db.Pool, sql, number) }
	const orders, asked = `SELECT count(*) FROM orders WHERE id = $1`, `SELECT count(*) FROM daybook.jobs WHERE (payload ->> 'n')::integer / 10 = $1`
	eachCrash(t, shard, db, false, func(run int) { number = run },
		func(ctx context.Context, pool *pgxpool.Pool) { _ = request(ctx, pool) },
		func(int, bool) {
			require.Equal(t, 3*count(orders), count(asked), "the order and its jobs, or none")
			require.NoError(t, request(t.Context(), db.Pool))
			require.Equal(t, 1, count(orders))
			require.Equal(t, 3, count(asked))
		})
}

// The payloads of the jobs that are worked while their process crashes.
type (
	plainWork  struct{ Run int }
	ownWork    struct{ Run int }
	sharedWork struct{ Run int }
	stepsWork  struct{ Run int }
)

func (plainWork) JobType() string  { return "plain" }
func (ownWork) JobType() string    { return "own" }
func (sharedWork) JobType() string { return "shared" }
func (stepsWork) JobType() string  { return "steps" }

// registry has handlers that write what they do in their transactions, or in steps.
func registry() *jobs.Registry {
	r := jobs.NewRegistry()
	const write = `INSERT INTO done (job_id) VALUES ($1)`
	jobs.Register(r, jobs.Policy{}, func(context.Context, *jobs.Job[plainWork]) error { return nil })
	jobs.Register(r, jobs.Policy{}, func(_ context.Context, job *jobs.Job[ownWork]) error {
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, write, job.ID)
			return err
		})
		return nil
	})
	jobs.Register(r, jobs.Policy{SharedTransaction: true}, func(_ context.Context, job *jobs.Job[sharedWork]) error {
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, write, job.ID)
			return err
		})
		return nil
	})
	jobs.Register(r, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[stepsWork]) error {
		if _, err := jobs.Step(ctx, job, "read", func(context.Context) (int, error) { return 1, nil }); err != nil {
			return err
		}
		_, err := jobs.StepInTx(ctx, job, "book", func(ctx context.Context, tx pgx.Tx) (int, error) {
			_, err := tx.Exec(ctx, write, job.ID)
			return 2, err
		})
		return err
	})
	return r
}

// workOnce works what is due as one turn; crashed: as its next activity, after one that has died.
func workOnce(ctx context.Context, e *engine.Engine, turn int, crashed bool) {
	defer e.Close()
	_, _ = e.Process(ctx, engine.TurnRequest{
		Turn: store.Turn{ID: fmt.Sprint("run/0/", turn), Worker: "test", WorkflowRunID: "run"}, Batch: 50,
		Length: pgtest.Patience, Fresh: !crashed, Crashed: crashed,
	})
}

// quiet says nothing, and gives up soon when it is to stop: a process that has died does not go on.
var quiet = engine.Options{Log: slog.New(slog.DiscardHandler), Grace: time.Millisecond}

// TestCrashWhileWorking: a turn leases and works jobs that write in no transaction, in their own, in
// a shared one and in steps. Each has its effect once. A process that has only lost its connection
// charges none of them; one that dies charges those at most that it was working, once. After every
// other crash the turn's next activity goes on, as Temporal has it. What became of the jobs' rows is
// replayed against lease.pml.
func TestCrashWhileWorking(t *testing.T) {
	t.Parallel()
	sharded(t, crashWhileWorking)
}

func crashWhileWorking(t *testing.T, shard int) {
	t.Helper()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `CREATE TABLE done (job_id text NOT NULL)`)
	require.NoError(t, err)
	_, err = db.Pool.Exec(t.Context(), recordTraces)
	require.NoError(t, err)
	turn := 0
	work := func(ctx context.Context, pool *pgxpool.Pool, crashed bool) {
		if !crashed {
			turn++
		}
		workOnce(ctx, engine.NewJobs(store.NewQueue(pool, store.Jobs), registry(), quiet), turn, crashed)
	}
	const open = `SELECT count(*) FROM daybook.jobs WHERE (payload ->> 'Run')::integer = $1 AND state <> 'completed'`
	eachCrash(t, shard, db, false, func(run int) {
		for _, p := range []queue.Payload{plainWork{run}, ownWork{run}, sharedWork{run}, sharedWork{run}, stepsWork{run}} {
			_, err := queue.EnqueueJob(t.Context(), db.Pool, "org", p, queue.JobOptions{})
			require.NoError(t, err)
		}
	}, func(ctx context.Context, pool *pgxpool.Pool) { work(ctx, pool, false) }, func(run int, dies bool) {
		if run%2 == 0 {
			work(t.Context(), db.Pool, true)
		}
		finishAll(t, db, store.Jobs, func() { work(t.Context(), db.Pool, false) }, func() int { return fixture.Count(t, db.Pool, open, run) })
		require.Zero(t, fixture.Count(t, db.Pool, `
SELECT count(*) FROM daybook.jobs j WHERE (payload ->> 'Run')::integer = $1
   AND (SELECT count(*) FROM done d WHERE d.job_id = j.id) <> (type <> 'plain')::integer`, run), "each has its effect once")
		charged := fixture.Count(t, db.Pool, `
SELECT coalesce(max(run_count), 0) FROM daybook.jobs WHERE (payload ->> 'Run')::integer = $1`, run)
		if dies {
			require.LessOrEqual(t, charged, 2, "the attempt that was lost, and one more")
		} else {
			require.Equal(t, 1, charged, "an outage is no attempt")
		}
	})
	for _, trace := range traces(t, db) {
		t.Log(trace)
		assert.True(t, allows(t, trace), "the model has no way through %s", trace)
	}
}

// finishAll is what other processes do when one has died: its leases expire, and they work what is
// open, until there is nothing.
func finishAll(t *testing.T, db *pgtest.DB, kind *store.Kind, work func(), open func() int) {
	t.Helper()
	for range 50 {
		if open() == 0 {
			return
		}
		for _, table := range []string{"jobs", "accounting_work_queue"} {
			_, err := db.Pool.Exec(t.Context(), `
UPDATE daybook.`+table+` SET last_attempted_at = last_attempted_at - interval '20 seconds'
 WHERE id IN (SELECT id FROM daybook.`+table+` WHERE state = 'leased' FOR UPDATE SKIP LOCKED)`)
			require.NoError(t, err)
		}
		_, err := store.NewQueue(db.Pool, kind).ReclaimExpired(t.Context())
		require.NoError(t, err)
		work()
	}
	require.Zero(t, open(), "work is stuck")
}

// TestCrashWhilePosting: documents are posted once, and balanced.
func TestCrashWhilePosting(t *testing.T) {
	t.Parallel()
	sharded(t, crashWhilePosting)
}

func crashWhilePosting(t *testing.T, shard int) {
	t.Helper()
	db := pgtest.New(t)
	fixture.Organization(t, db.Pool, "org")
	turn := 0
	work := func(ctx context.Context, pool *pgxpool.Pool) {
		turn++
		workOnce(ctx, engine.New(store.New(pool), ledger.New(nil), quiet), turn, false)
	}
	const open = `SELECT count(*) FROM daybook.accounting_work_queue WHERE state <> 'completed'`
	posted := 0
	eachCrash(t, shard, db, false, func(run int) {
		for i := range 2 {
			fixture.Ready(t, db.Pool, fixture.Invoice("org", fmt.Sprintf("doc-%d-%d", run, i), 1000))
			posted++
		}
	}, work, func(_ int, dies bool) {
		finishAll(t, db, store.Accounting, func() { work(t.Context(), db.Pool) }, func() int { return fixture.Count(t, db.Pool, open) })
		require.Equal(t, posted, fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.impacts`), "each is posted once")
		require.Equal(t, 3*posted, fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.entries`))
		most := 1
		if dies {
			most = 2
		}
		require.LessOrEqual(t, fixture.Count(t, db.Pool, `SELECT max(run_count) FROM daybook.accounting_work_queue`), most)
		_, err := db.Pool.Exec(t.Context(), `UPDATE daybook.accounting_work_queue SET run_count = 1`)
		require.NoError(t, err)
	})
	report, err := audit.Run(t.Context(), db.Pool, audit.Options{})
	require.NoError(t, err)
	for _, c := range report.Checks {
		require.Zero(t, c.Count, "%s: %v", c.Kind, c.Findings)
	}
}
