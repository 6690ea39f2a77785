// Package devstack runs a private PostgreSQL and a Temporal development server for the demo, for
// development and for tests.
//
// Both listen on loopback only and keep everything they write in one directory. Both end with the
// program that started them, however that program ends. A stack is for one machine and for
// development: it has no backups, no TLS and a single superuser password kept in a file.
package devstack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Environment variables that name a server to use instead of starting one.
const (
	EnvDatabaseURL     = "DAYBOOK_DATABASE_URL"
	EnvTemporalAddress = "TEMPORAL_ADDRESS"
)

// stopTimeout is how long Stop waits for each server before it ends it by force, if its context
// allows that long.
const stopTimeout = 20 * time.Second

// Options says what Start starts. The zero value is a stack of its own in a temporary directory, on
// free ports.
type Options struct {
	// Dir is where the stack keeps its data, its logs and its password; it is created if missing. A
	// second start in the same directory finds the data again. Empty: a temporary directory, which
	// Stop removes.
	Dir string
	// PostgresPort, TemporalPort and UIPort are the ports on 127.0.0.1. 0: a free one.
	PostgresPort, TemporalPort, UIPort int
	// InMemory keeps Temporal's state in memory, so that it is gone when the stack stops.
	InMemory bool
	// FastAndUnsafe turns PostgreSQL's durability off (fsync, synchronous_commit, full_page_writes).
	// For tests only: a crash of the machine may leave a database that does not start. A temporary
	// directory is in memory then, where there is room.
	FastAndUnsafe bool
	// PostgresSettings holds further settings of PostgreSQL, each "name=value". They come last and
	// win.
	PostgresSettings []string
	// PostgresEnv holds further variables of PostgreSQL's environment, each "NAME=value".
	PostgresEnv []string
	// DynamicConfig holds further settings of the Temporal server, each "key=value" with value in
	// JSON.
	DynamicConfig []string
	// NoTemporal, NoPostgres and NoUI leave out a part.
	NoTemporal, NoPostgres, NoUI bool
	// Private ignores DAYBOOK_DATABASE_URL and TEMPORAL_ADDRESS, which otherwise name servers to use
	// instead of starting them.
	Private bool
	// StandbyOf has PostgreSQL begin as a standby of another stack's, with its password; nil: it is a
	// server of its own. A second start in the same directory goes on with the data that is there.
	StandbyOf *Stack
	// NoInstall fails with ErrNoPostgres when PostgreSQL is not installed, also where root could
	// install it.
	NoInstall bool
	// Log gets what happens to the servers, such as one that ended by itself. Nil: nothing is logged.
	Log *slog.Logger
	// Progress gets one line for each step that may take a while. It may be called from several
	// goroutines. Nil: nothing is told.
	Progress func(string)
}

// Stack is a running stack. Its fields do not change after Start.
type Stack struct {
	// Dir is the directory that the stack keeps its files in; empty when it started nothing.
	Dir string
	// DatabaseURL is the address of database daybook for the role daybook, its owner. Or what
	// DAYBOOK_DATABASE_URL says.
	DatabaseURL string
	// AdminURL is the same database for the superuser postgres; empty when the stack did not start
	// PostgreSQL.
	AdminURL string
	// TemporalAddress is host:port of Temporal's front end. Or what TEMPORAL_ADDRESS says.
	TemporalAddress string
	// TemporalUI is the URL of Temporal's web interface; empty when the stack did not start it.
	TemporalUI string
	// TemporalCLI is the path of the Temporal CLI that runs the server; empty when the stack did not
	// start it. See TemporalCLI.
	TemporalCLI string

	temporary bool
	lock      *fileLock
	log       *slog.Logger
	progress  func(string)
	postgres  *child
	temporal  *child

	stopOnce sync.Once
	stopErr  error
}

// Start starts what the options ask for and returns when it answers. ctx bounds the start only: the
// servers run until Stop, or until this process ends. When Start fails it leaves nothing running.
func Start(ctx context.Context, o Options) (_ *Stack, err error) {
	s := &Stack{log: o.Log, progress: o.Progress}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.progress == nil {
		s.progress = func(string) {}
	}
	startPostgres, startTemporal := !o.NoPostgres, !o.NoTemporal
	if url := os.Getenv(EnvDatabaseURL); url != "" && startPostgres && !o.Private {
		s.DatabaseURL, startPostgres = url, false
		s.progress("Using the database that " + EnvDatabaseURL + " names.")
	}
	if address := os.Getenv(EnvTemporalAddress); address != "" && startTemporal && !o.Private {
		s.TemporalAddress, startTemporal = address, false
		s.progress("Using the Temporal server at " + address + " (" + EnvTemporalAddress + ").")
	}
	if !startPostgres && !startTemporal {
		return s, nil
	}

	if err := s.openDir(o.Dir, o.FastAndUnsafe); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
			defer cancel()
			err = errors.Join(err, s.Stop(stop))
		}
	}()
	group, groupCtx := errgroup.WithContext(ctx)
	if startPostgres {
		group.Go(func() error { return s.startPostgres(groupCtx, o) })
	}
	if startTemporal {
		group.Go(func() error { return s.startTemporal(groupCtx, o) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return s, nil
}

// Stop ends the servers in an orderly way and waits until they are gone; when ctx ends first, or
// after 20 seconds each, by force. A second call does nothing and returns what the first one did.
// Connections to the database are cut.
func (s *Stack) Stop(ctx context.Context) error {
	return s.stop(func(c *child) error { return c.stop(ctx, stopTimeout) })
}

// Kill ends the servers at once, as a crash of theirs would. It counts as Stop; the next start in
// the directory recovers.
func (s *Stack) Kill() error {
	return s.stop((*child).kill)
}

func (s *Stack) stop(end func(*child) error) error {
	s.stopOnce.Do(func() {
		var errs []error
		for _, c := range []*child{s.temporal, s.postgres} {
			if c != nil {
				errs = append(errs, end(c))
			}
		}
		errs = append(errs, s.closeDir())
		s.stopErr = errors.Join(errs...)
	})
	return s.stopErr
}

// openDir creates the directory if needed and locks it, so that no second stack runs in it.
func (s *Stack) openDir(dir string, inMemory bool) error {
	if dir == "" {
		parent := os.TempDir()
		if inMemory {
			parent = cmp.Or(temporaryParent(), parent)
		}
		sweepTemporary(parent)
		tmp, err := os.MkdirTemp(parent, temporaryPrefix)
		if err != nil {
			return fmt.Errorf("dev stack: %w", err)
		}
		dir, s.temporary = tmp, true
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("dev stack: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("dev stack: %w", err)
	}
	lock, err := tryLock(filepath.Join(dir, lockName))
	if errors.Is(err, errLocked) {
		return fmt.Errorf("dev stack: %w %s%s: stop it or choose another directory", ErrInUse, dir, lockHolder(dir))
	}
	if err != nil {
		return fmt.Errorf("dev stack: lock %s: %w", dir, err)
	}
	s.Dir, s.lock = dir, lock
	return nil
}

// closeDir removes a temporary directory and gives the lock back.
func (s *Stack) closeDir() error {
	if s.lock == nil {
		return nil
	}
	var err error
	if s.temporary {
		err = removeDir(s.Dir)
	}
	return errors.Join(err, s.lock.close())
}

const (
	temporaryPrefix = "daybook-stack-"
	lockName        = "lock"
)

// sweepTemporary removes the temporary directories of stacks whose program was killed before it
// could. A directory is left alone while its lock is held, and for its first minutes, when the lock
// may not be taken yet.
func sweepTemporary(parent string) {
	dirs, err := filepath.Glob(filepath.Join(parent, temporaryPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || !ownedByUs(info) || time.Since(info.ModTime()) < 10*time.Minute {
			continue
		}
		lock, err := tryLock(filepath.Join(dir, lockName))
		if err != nil {
			continue
		}
		// What cannot be removed now is tried again by the next stack.
		_ = removeDir(dir)
		_ = lock.close()
	}
}

// removeDir removes a stack's directory, and PostgreSQL's where that lies elsewhere.
func removeDir(dir string) error {
	var errs []error
	if target, err := os.Readlink(filepath.Join(dir, postgresName)); err == nil {
		errs = append(errs, os.RemoveAll(target))
	} else if !errors.Is(err, fs.ErrNotExist) && !isNotLink(err) {
		errs = append(errs, err)
	}
	errs = append(errs, os.RemoveAll(dir))
	return errors.Join(errs...)
}
