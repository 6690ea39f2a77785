package languages_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/queue"
)

// oddities are what a handler in Python or TypeScript may throw or return beside the cases of all
// languages.
var oddities = []struct{ do, want string }{
	{"retry after nan", `pending 1 HANDLER_ERROR by the policy`},
	{"retry after ages", `pending 1 HANDLER_ERROR after 1000000000`},
	{"unprintable", `pending 1 HANDLER_ERROR by the policy`},
	{"odd code", `pending 1 404 by the policy`},
	{"missing file", `pending 1 HANDLER_ERROR by the policy`},
	{"other database", `pending 1 HANDLER_ERROR by the policy`},
	{"conflict", `completed 1 effects bc`},
	{"looks lost", `pending 1 HANDLER_ERROR by the policy`},
	{"half a pair", `completed 1 RESULT_NOT_STORED`},
	{"half a pair as key", `completed 1 RESULT_NOT_STORED`},
	{"whole pair", `completed 1 {"text": "😀"}`},
	{"backslash", `completed 1 {"text": "\\u0000 \\\\ud83d \"{["}`},
	{"deep", `completed 1 RESULT_NOT_STORED`},
	{"deepest", `completed 1 ` + strings.Repeat("[", 500) + "1" + strings.Repeat("]", 500)},
}

// clientScenarios are what the workers in Python and TypeScript meet, which work by SQL. Those in Go
// meet the like in the tests of their own packages.
var clientScenarios = map[string]func(c *conformance){
	"odd outcomes": (*conformance).oddOutcomes, "locked neighbour": (*conformance).lockedNeighbour,
	"behind a pooler": (*conformance).behindAPooler, "hangs in a step": (*conformance).hangsInStep,
	"claim lost": (*conformance).claimLost, "claims fail": (*conformance).claimsFail, "claims wait": (*conformance).claimsWait,
	"lost while it stops": (*conformance).lostWhileItStops, "stops before it starts": (*conformance).stopsBeforeItStarts,
	"silent connections": (*conformance).silentConnections, "stale connections": (*conformance).staleConnections,
	"reads only": (*conformance).readsOnly, "deaf": (*conformance).deaf, "stops in a claim": (*conformance).stopsInClaim,
}

// takesOptions runs a program that gives a worker options, good ones and others.
func takesOptions(t *testing.T, command, env []string, program string) {
	t.Helper()
	t.Run("options", func(t *testing.T) {
		t.Parallel()
		cmd := exec.CommandContext(t.Context(), command[0], program)
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	})
}

// TestTypeScriptWorker has the worker in TypeScript meet what the others meet by other means.
func TestTypeScriptWorker(t *testing.T) {
	t.Parallel()
	languages := languages()
	command, env := languages[len(languages)-1].command(t)
	takesOptions(t, command, env, "testdata/options.mjs")
	t.Run("package", func(t *testing.T) {
		t.Parallel()
		_, module, _ := strings.Cut(env[0], "=")
		dir, npm := filepath.Dir(filepath.Dir(module)), found(t, "npm")
		pack := exec.CommandContext(t.Context(), npm, "pack", "--dry-run", "--json", "--ignore-scripts")
		pack.Dir = dir
		out, err := pack.Output()
		require.NoError(t, err)
		for _, file := range []string{"LICENSE", "dist/index.js", "dist/index.d.ts", "dist/worker.js", "dist/worker.d.ts"} {
			assert.Contains(t, string(out), `"`+file+`"`)
		}
		assert.NotContains(t, string(out), `"src/`)
		run(t, dir, npm, "ls", "@types/pg", "--omit=dev") // which the worker's types name
	})
	meets(t, command, env, clientScenarios)
	meets(t, command, env, map[string]func(c *conformance){"clock": (*conformance).clock})
}

func (c *conformance) oddOutcomes() {
	ids := make([]string, len(oddities))
	for i, k := range oddities {
		ids[i] = c.enqueue("quick", fmt.Sprintf(`{"do": %q, "note": "a"}`, k.do), queue.JobOptions{})
	}
	c.start()
	c.until("all are worked", workedStmt)
	for i, k := range oddities {
		assert.Equal(c.t, k.want, c.text(stateStmt, ids[i]), k.do)
	}
}

// lockedNeighbour: an attempt whose end waits for a transaction of an application keeps no other
// from having its lease renewed, and its job from ending when that transaction has.
func (c *conformance) lockedNeighbour() {
	locked := c.enqueue("quick", `{"do": "hang"}`, queue.JobOptions{})
	other := c.enqueue("patient", `{"do": "hang"}`, queue.JobOptions{})
	c.start()
	c.until("they run", `SELECT count(*) = 2 FROM daybook.jobs WHERE working`)
	tx, err := c.Pool.Begin(c.t.Context())
	require.NoError(c.t, err)
	_, err = tx.Exec(c.t.Context(), `SELECT FROM daybook.jobs WHERE id = $1 FOR UPDATE`, locked)
	require.NoError(c.t, err)
	const age = `SELECT extract(epoch FROM clock_timestamp() - last_attempted_at)`
	c.until("its lease is old", age+` > 8 FROM daybook.jobs WHERE id = $1`, locked)
	assert.Equal(c.t, "true", c.text(`SELECT ((`+age+` FROM daybook.jobs WHERE id = $1) < 5)::text`, other))
	require.NoError(c.t, tx.Rollback(c.t.Context()))
	c.until("its attempt ends", `SELECT state = 'pending' FROM daybook.jobs WHERE id = $1`, locked)
	assert.Equal(c.t, "pending 1 TIMEOUT by the policy", c.text(stateStmt, locked))
}

// hangsInStep: a handler that does not return from a step in a transaction holds up no stop, and
// leaves no transaction behind.
func (c *conformance) hangsInStep() {
	id := c.enqueue("patient", `{"do": "hang in step", "note": "a"}`, queue.JobOptions{})
	worker := c.start("GRACE=0.2")
	c.until("it has written", `
SELECT count(*) = 1 FROM pg_stat_activity
 WHERE datname = current_database() AND application_name = 'daybook worker' AND state = 'idle in transaction' AND query LIKE '%app.effects%'`)
	c.stopped(worker)
	c.until("its sessions have ended", `
SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'daybook worker'`)
	assert.Equal(c.t, "pending 0 SNOOZED", c.text(`SELECT concat_ws(' ', state, run_count, last_error_code) FROM daybook.jobs WHERE id = $1`, id))
}

// silentConnections: a server that is replaced without a word leaves connections that carry nothing.
// Leases are renewed by others before they expire.
func (c *conformance) silentConnections() {
	id := c.enqueue("patient", `{"do": "hang"}`, queue.JobOptions{})
	line := newLine(c.t, c.URL)
	c.start("DAYBOOK_DATABASE_URL=" + line.url)
	c.until("its lease is renewed", `SELECT coalesce(last_attempted_at > created_at + interval '3 seconds', false) FROM daybook.jobs WHERE id = $1`, id)
	began := time.Now()
	line.silence()
	before := c.text(`SELECT last_attempted_at::text FROM daybook.jobs WHERE id = $1`, id)
	c.until("its lease is renewed again", `SELECT last_attempted_at > $2::timestamptz + interval '3 seconds' FROM daybook.jobs WHERE id = $1`, id, before)
	assert.Less(c.t, time.Since(began), 15*time.Second, "and is good for 10 seconds")
}

// readsOnly: while the server takes no writes, as one that is the primary no more, a worker goes on,
// and completes what its handlers have done when it takes them again.
func (c *conformance) readsOnly() {
	id := c.enqueue("patient", `{"do": "slow note", "note": "a"}`, queue.JobOptions{})
	worker := c.start()
	c.until("it runs", runsStmt, id)
	readOnly := func(setting string) {
		err := pgx.BeginTxFunc(c.t.Context(), c.Pool, pgx.TxOptions{AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
			_, err := tx.Exec(c.t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = `+setting+`', current_database()); END $$`)
			return err
		})
		require.NoError(c.t, err)
		c.text(`SELECT count(pg_terminate_backend(pid))::text FROM pg_stat_activity WHERE application_name = 'daybook worker' AND datname = current_database()`)
	}
	readOnly("on")
	// Longer than the time in which what loses against other transactions is given up.
	c.until("nothing is written", `SELECT last_attempted_at < clock_timestamp() - interval '18 seconds' FROM daybook.jobs WHERE id = $1`, id)
	readOnly("off")
	c.until("it is completed", `SELECT state = 'completed' FROM daybook.jobs WHERE id = $1`, id)
	assert.Equal(c.t, "completed 1 effects a", c.text(stateStmt, id))
	c.stopped(worker)
}

// lostWhileItStops: a worker that is to stop does not wait for a job that it holds no more.
func (c *conformance) lostWhileItStops() {
	id := c.enqueue("patient", `{"do": "deaf"}`, queue.JobOptions{})
	worker := c.start("GRACE=3000000")
	c.until("it runs", runsStmt, id)
	require.NoError(c.t, worker.Process.Signal(syscall.SIGTERM))
	c.until("it knows", `SELECT clock_timestamp() > $1::timestamptz + interval '2 seconds'`, time.Now())
	_, err := c.Pool.Exec(c.t.Context(), `UPDATE daybook.jobs SET fence = fence + 1 WHERE id = $1`, id)
	require.NoError(c.t, err)
	c.stopped(worker)
	assert.Contains(c.t, worker.log.String(), id+", attempt 1: its lease is lost")
	assert.NotContains(c.t, worker.log.String(), "Overflow", "so long a grace period is none")
}

// stopsBeforeItStarts: a worker whose database is not there yet tries again, and can be stopped.
func (c *conformance) stopsBeforeItStarts() {
	listener, err := new(net.ListenConfig).Listen(c.t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = listener.Close() })
	worker := c.start("DAYBOOK_DATABASE_URL=postgresql://" + listener.Addr().String() + "/none")
	for range 3 {
		conn, err := listener.Accept()
		require.NoError(c.t, err)
		require.NoError(c.t, conn.Close())
	}
	require.NoError(c.t, listener.Close())
	c.stopped(worker)
}

// stopsInClaim: a worker that is to stop while it claims does not pause after that.
func (c *conformance) stopsInClaim() {
	tx, err := c.Pool.Begin(c.t.Context())
	require.NoError(c.t, err)
	_, err = tx.Exec(c.t.Context(), `LOCK TABLE daybook.job_wait_checks`)
	require.NoError(c.t, err)
	worker := c.start("POLL=50")
	c.until("it claims", `
SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%claim_jobs%'`)
	began := time.Now()
	require.NoError(c.t, worker.Process.Signal(syscall.SIGTERM))
	c.until("it knows", `SELECT clock_timestamp() > $1::timestamptz + interval '2 seconds'`, began)
	require.NoError(c.t, tx.Rollback(c.t.Context()))
	<-worker.ended
	assert.Less(c.t, time.Since(began), 40*time.Second)
}

// clock: the clock of the machine may be put forward; the time of an attempt is not over by that.
func (c *conformance) clock() {
	id := c.enqueue("patient", `{"do": "slow"}`, queue.JobOptions{})
	c.start("NODE_OPTIONS=--import=data:text/javascript,setTimeout(()=>{const/**/now=Date.now;Date.now=()=>now()+7200e3},1500).unref()")
	c.until("it is worked", `SELECT state <> 'leased' AND run_count > 0 FROM daybook.jobs WHERE id = $1`, id)
	assert.Equal(c.t, "completed 1", c.text(stateStmt, id))
}

// deaf: a handler that does not return when its time is over keeps no other job from being worked,
// and is told of.
func (c *conformance) deaf() {
	deaf := c.enqueue("quick", `{"do": "deaf"}`, queue.JobOptions{})
	worker := c.start("PARALLEL=1")
	c.until("it runs", runsStmt, deaf)
	next := c.enqueue("quick", `{"do": "note", "note": "a"}`, queue.JobOptions{})
	c.until("the next is worked", `SELECT state = 'completed' FROM daybook.jobs WHERE id = $1`, next)
	assert.Equal(c.t, "pending 1 TIMEOUT by the policy", c.text(stateStmt, deaf))
	c.until("there was time to return", `SELECT clock_timestamp() > updated_at + interval '6 seconds' FROM daybook.jobs WHERE id = $1`, deaf)
	c.stopped(worker)
	assert.Contains(c.t, worker.log.String(), deaf+", attempt 1: the attempt is over, but its handler of type quick has not returned")
}

// line leads to a database by connections that can be made to carry nothing.
type line struct {
	url   string
	mu    sync.Mutex
	conns []*atomic.Bool // whether each is silent
}

func newLine(t *testing.T, address string) *line {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	server := u.Host
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	u.Host = listener.Addr().String()
	l := &line{url: u.String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			behind, err := new(net.Dialer).DialContext(t.Context(), "tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			silent := &atomic.Bool{}
			l.mu.Lock()
			l.conns = append(l.conns, silent)
			l.mu.Unlock()
			go carry(behind, client, silent)
			go carry(client, behind, silent)
		}
	}()
	return l
}

// silence makes the connections of the moment carry nothing, not even their end; later ones are
// good.
func (l *line) silence() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, silent := range l.conns {
		silent.Store(true)
	}
}

func carry(to, from net.Conn, silent *atomic.Bool) {
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if silent.Load() {
			if err != nil {
				return
			}
			continue
		}
		_, _ = to.Write(buffer[:n]) // what cannot be written ends the reading too
		if err != nil {
			_ = to.Close()
			return
		}
	}
}
