package pgtest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// PoolMode is when PgBouncer gives a session to another client.
type PoolMode string

// The modes: after each transaction, and when the client ends.
const (
	PoolTransactions PoolMode = "transaction"
	PoolSessions     PoolMode = "session"
)

// Pooler is Pooler of the test's database.
func (db *DB) Pooler(tb testing.TB, mode PoolMode) string {
	tb.Helper()
	return Pooler(tb, db.URL, mode)
}

// Pooler starts a PgBouncer in front of a test's database, with three sessions at most, and returns
// the database's address through it. It ends with the test.
//
// PgBouncer is looked for on the PATH and where Debian puts it. Where it lacks the test is skipped;
// DAYBOOK_TEST_POOLER=all, as in CI, makes that a failure.
func Pooler(tb testing.TB, databaseURL string, mode PoolMode) string {
	tb.Helper()
	program := poolerProgram(tb)
	server, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	port := freePort(tb)
	file := filepath.Join(tb.TempDir(), "pgbouncer.ini")
	const text = `[databases]
* = host=%s port=%d user=%s password=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
ignore_startup_parameters = extra_float_digits, options
auth_type = any
pool_mode = %s
default_pool_size = 3
`
	if err := os.WriteFile(file, fmt.Appendf(nil, text, server.Host, server.Port, server.User, server.Password, port,
		mode), 0o600); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	args := []string{file}
	if os.Geteuid() == 0 { // as which it refuses to run
		args = []string{"-u", "daemon", file}
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(tb.Context()))
	command := exec.CommandContext(ctx, program, args...)
	var log bytes.Buffer
	command.Stderr = &log
	if err := command.Start(); err != nil {
		stop()
		tb.Fatalf("pgtest: %s: %v", program, err)
	}
	tb.Cleanup(func() {
		stop()
		_ = command.Wait()
	})
	address, err := url.Parse(databaseURL)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	address.Host = fmt.Sprintf("127.0.0.1:%d", port)
	awaitPooler(tb, address.Host, &log)
	return address.String()
}

func poolerProgram(tb testing.TB) string {
	tb.Helper()
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const lacks = "pgbouncer is not there: apt-get install pgbouncer"
	if os.Getenv("DAYBOOK_TEST_POOLER") == "all" {
		tb.Fatalf("pgtest: DAYBOOK_TEST_POOLER=all, and %s", lacks)
	}
	tb.Skipf("%s; DAYBOOK_TEST_POOLER=all makes that a failure", lacks)
	return ""
}

func freePort(tb testing.TB) int {
	tb.Helper()
	var config net.ListenConfig
	l, err := config.Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func awaitPooler(tb testing.TB, address string, log *bytes.Buffer) {
	tb.Helper()
	var dialer net.Dialer
	for began := time.Now(); ; {
		conn, err := dialer.DialContext(tb.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Since(began) > time.Minute {
			tb.Fatalf("pgtest: PgBouncer does not answer: %v\n%s", err, log)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
