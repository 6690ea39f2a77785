package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/daybook-dev/daybook/bench/proxy"
	"github.com/daybook-dev/daybook/internal/dev/devstack"
)

// diskSize is the size of a server's disk, where it has one of its own.
const diskSize = 600 << 20

// clockSeconds is how far the clock of a server is from the right one at most.
const clockSeconds = 3

// plain are two servers. Who runs them promotes the standby, and has the address lead there.
type plain struct {
	dir     string
	async   bool
	clocks  bool          // servers whose clocks differ
	frozen  time.Duration // how long a primary is
	random  *rand.Rand
	say     func(string, ...any)
	proxy   *proxy.Proxy
	primary *server
	standby *server // nil: it is to be made anew
	made    int
}

// server is one of the two.
type server struct {
	*devstack.Stack
	dir  string
	port int
	env  []string
	disk bool
}

func (s *server) data() string { return filepath.Join(s.dir, "postgres", "data") }

func (p *plain) start(ctx context.Context) (err error) {
	if p.primary, err = p.newServer(ctx); err != nil {
		return err
	}
	if err := p.launch(ctx, p.primary, nil); err != nil {
		return err
	}
	if p.proxy, err = proxy.New(context.WithoutCancel(ctx), loopback(p.primary.port)); err != nil {
		return err
	}
	return p.mend(ctx)
}

func (p *plain) leader() string { return p.proxy.Address }

func (p *plain) url() string { return p.primary.DatabaseURL }

func (p *plain) admin(context.Context) (string, error) { return p.primary.AdminURL, nil }

func (p *plain) primaryDir(context.Context) string {
	if !p.primary.disk {
		return ""
	}
	return p.primary.dir
}

// newServer makes the disk of a server, and chooses its clock.
func (p *plain) newServer(ctx context.Context) (*server, error) {
	p.made++
	s := &server{dir: filepath.Join(p.dir, fmt.Sprintf("server-%d", p.made))}
	var err error
	if s.disk, err = mountSmall(s.dir, diskSize); err != nil {
		return nil, err
	}
	if s.port, err = freePort(ctx); err != nil {
		return nil, err
	}
	if library := fakeTime(); library != "" && p.clocks && p.made > 1 {
		ahead := p.random.IntN(2*clockSeconds+1) - clockSeconds
		s.env = []string{
			"LD_PRELOAD=" + library, fmt.Sprintf("FAKETIME=%+ds", ahead), "FAKETIME_DONT_FAKE_MONOTONIC=1",
			"FAKETIME_NO_CACHE=1",
		}
		p.say("server %d has a clock that is %+d s ahead", p.made, ahead)
	}
	return s, nil
}

// fakeTime is the library by which a program has another time; empty: it is not installed.
func fakeTime() string {
	found, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[0]
}

func (p *plain) launch(ctx context.Context, s *server, of *devstack.Stack) (err error) {
	s.Stack, err = devstack.Start(ctx, devstack.Options{
		Dir: s.dir, PostgresPort: s.port, NoTemporal: true, Private: true, StandbyOf: of, PostgresEnv: s.env,
		PostgresSettings: []string{
			"max_connections=150", "shared_buffers=64MB", "max_wal_size=128MB", "min_wal_size=32MB", "wal_keep_size=64MB",
			"wal_receiver_timeout=3s", "wal_sender_timeout=3s", "wal_retrieve_retry_interval=200ms",
		},
	})
	return err
}

// mend makes the standby that lacks.
func (p *plain) mend(ctx context.Context) error {
	if p.standby == nil {
		s, err := p.newServer(ctx)
		if err != nil {
			return err
		}
		if err := p.launch(ctx, s, p.primary.Stack); err != nil {
			return err
		}
		p.standby = s
	}
	err := await(ctx, time.Minute, "a standby follows", func(ctx context.Context) error { return streams(ctx, p.primary.AdminURL) })
	if err != nil || p.async {
		return err
	}
	return onServer(ctx, p.primary.AdminURL, `ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`)
}

func (p *plain) troubles() []trouble {
	return []trouble{
		{name: "restart", what: "PostgreSQL restarted at once", strike: p.restart, every: 50 * time.Second},
		{name: "switchover", what: "switchover to the standby", strike: p.switchover, every: 70 * time.Second},
		{name: "failover", what: "primary crashed, standby promoted", strike: p.failover, every: 70 * time.Second},
		{name: "freeze", what: fmt.Sprintf("primary frozen for %s, standby promoted", p.frozen), strike: p.freeze, every: 100 * time.Second},
	}
}

// restart ends the primary without a word and starts it again.
func (p *plain) restart(ctx context.Context) error {
	if err := p.primary.Kill(); err != nil {
		return err
	}
	return p.launch(ctx, p.primary, nil)
}

// reviveEnded starts the primary if it has ended by itself.
func (p *plain) reviveEnded(ctx context.Context) error {
	return await(ctx, time.Minute, "the primary takes writes", func(ctx context.Context) error {
		if postmaster(p.primary.data()) == 0 {
			return p.restart(ctx)
		}
		return onServer(ctx, p.primary.AdminURL, `CREATE TEMP TABLE written ()`)
	})
}

func (p *plain) switchover(ctx context.Context) error {
	// The standby gets all before the primary ends.
	if err := p.primary.Stop(ctx); err != nil {
		return err
	}
	return p.replace(ctx)
}

func (p *plain) failover(ctx context.Context) error {
	if err := p.primary.Kill(); err != nil {
		return err
	}
	return p.replace(ctx)
}

// freeze stops the primary's processes, and the standby is promoted. Who is connected to the frozen
// primary learns nothing of that until it is ended.
func (p *plain) freeze(ctx context.Context) error {
	old, until := p.primary, time.Now().Add(p.frozen)
	pids := freeze(old.data())
	pause(ctx, time.Duration(3+p.random.IntN(4))*time.Second)
	err := p.promote(ctx, p.proxy.Lead)
	if err == nil {
		pause(ctx, time.Until(until))
	}
	sendAll(pids, syscall.SIGKILL)
	return errors.Join(err, p.drop(old))
}

// promote makes the standby the primary, and the address lead there.
func (p *plain) promote(ctx context.Context, lead func(address string)) error {
	next := p.standby
	if next == nil {
		return errors.New("there is no standby to promote")
	}
	if err := onServer(ctx, next.AdminURL, `SELECT pg_promote(true, 30)`,
		// Nothing confirms its commits until it has a standby of its own.
		`ALTER SYSTEM SET synchronous_standby_names = ''`, `SELECT pg_reload_conf()`); err != nil {
		return fmt.Errorf("promote the standby: %w", err)
	}
	p.primary, p.standby = next, nil
	lead(loopback(next.port))
	return nil
}

// replace makes the standby the primary, which is gone, and whose data is not used again.
func (p *plain) replace(ctx context.Context) error {
	old := p.primary
	if err := p.promote(ctx, p.proxy.Aim); err != nil {
		return err
	}
	return p.drop(old)
}

func (p *plain) drop(s *server) error {
	err := s.Kill() // nothing, where it is gone
	removeDisk(s)
	return err
}

func removeDisk(s *server) {
	if s.disk {
		_ = syscall.Unmount(s.dir, 0) // what is left ends with this program
	}
	_ = os.RemoveAll(s.dir)
}

func (p *plain) stop() {
	// The primary would wait for the standby to confirm its last words.
	for _, s := range []*server{p.primary, p.standby} {
		if s != nil && s.Stack != nil {
			_ = s.Kill() // it is gone then
			removeDisk(s)
		}
	}
	if p.proxy != nil {
		_ = p.proxy.Cut()
	}
}
