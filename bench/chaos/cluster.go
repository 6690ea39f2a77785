package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// The kinds of cluster.
const (
	clusterPlain   = "plain"
	clusterPatroni = "patroni"
)

// cluster is PostgreSQL as users have it: a primary, a standby that confirms each commit unless
// replication is asynchronous, and an address that leads to the primary. One call at a time.
type cluster interface {
	// start returns when both servers work.
	start(ctx context.Context) error
	// leader is host and port of what leads to the primary; it stays the same. It is what all use,
	// through a proxy.
	leader() string
	// url is the database's address there, for the owner of the schema; admin that of the primary of
	// the moment, for a superuser.
	url() string
	admin(ctx context.Context) (string, error)
	// primaryDir is the disk of the primary; empty: it has none of its own.
	primaryDir(ctx context.Context) string
	// troubles are what can befall it. Each returns when there is a primary again; what it leaves to be
	// mended, mend does.
	troubles() []trouble
	// mend returns when a primary and a standby work again.
	mend(ctx context.Context) error
	stop()
}

// trouble is a kind of thing that goes wrong.
type trouble struct {
	name string
	// what says it in the table.
	what string
	// strike does it, and returns when it is over.
	strike func(ctx context.Context) error
	// impedes: a kind of work cannot go on until it is over. That the primary takes no writes is noticed
	// without it.
	impedes bool
	// every is how often it comes in a long run; each comes once in a short one.
	every time.Duration
}

// onServer runs statements on the primary, as a superuser.
func onServer(ctx context.Context, address string, statements ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// await calls f until it returns nil, or patience or ctx has ended.
func await(ctx context.Context, patience time.Duration, what string, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: not within %s: %w", what, patience, err)
		}
		pause(ctx, 100*time.Millisecond)
	}
}

// streams returns nil when a standby follows the server and has what it has.
func streams(ctx context.Context, address string) error {
	try, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	conn, err := pgx.Connect(try, address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var n int
	if err := conn.QueryRow(try, `SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'`).Scan(&n); err != nil {
		return err
	}
	if n == 0 {
		return errors.New("no standby follows")
	}
	return nil
}

// family are the processes of the server whose data lies in dir: PostgreSQL's first one and its
// children, which are in no process group of its own.
func family(dir string) (pids []int) {
	first := postmaster(dir)
	if first == 0 {
		return nil
	}
	pids = append(pids, first)
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return pids
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it is gone
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(first) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// postmaster is PostgreSQL's first process; 0: there is none.
func postmaster(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return 0
	}
	// The number may be another program's by now.
	at, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	if resolved, fault := filepath.EvalSymlinks(dir); err != nil || fault != nil || at != resolved {
		return 0
	}
	return pid
}

// freeze stops a server's processes, the first one first, so that it makes no others.
func freeze(dir string) []int {
	if first := postmaster(dir); first != 0 {
		sendAll([]int{first}, syscall.SIGSTOP)
	}
	pids := family(dir)
	sendAll(pids, syscall.SIGSTOP)
	return pids
}

// sendAll sends a signal to each of the processes.
func sendAll(pids []int, sig syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig) // it may be gone
	}
}

// freePort is a port on which nothing listens.
func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
