package devstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// postgresUser returns the user that PostgreSQL runs as: this one, or, because PostgreSQL refuses
// to run as root, the owner of the data, and for new data user postgres or else nobody. home is
// empty for new data.
func postgresUser(home string) (*identity, error) {
	if !isRoot() {
		return nil, nil
	}
	if home != "" {
		// Not the user that would be chosen today: installing PostgreSQL's package creates user
		// postgres.
		return ownerOf(filepath.Join(home, dataName))
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		id := &identity{name: name}
		if id.uid, err = parseID(u.Uid); err != nil {
			return nil, err
		}
		if id.gid, err = parseID(u.Gid); err != nil {
			return nil, err
		}
		return id, nil
	}
	return nil, fmt.Errorf("PostgreSQL refuses to run as root, and there is no user postgres or nobody to run it as: "+
		"create one, run as another user or set %s", EnvDatabaseURL)
}

func parseID(s string) (uint32, error) {
	id, err := strconv.ParseUint(s, 10, 32)
	return uint32(id), err
}

// existingHome returns the directory that holds the data of an earlier start; empty when there is
// none. What a start left that was killed before the data was complete is removed.
func (s *Stack) existingHome() (string, error) {
	link := filepath.Join(s.Dir, postgresName)
	home, err := filepath.EvalSymlinks(link)
	if errors.Is(err, os.ErrNotExist) {
		// The data may be gone behind its link, as when the system cleaned its temporary directory.
		if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(home, dataName, versionName)); err == nil {
		return home, nil
	}
	return "", errors.Join(os.RemoveAll(home), os.RemoveAll(link))
}

// newHome makes the directory for PostgreSQL's data. It lies in the stack's directory, unless the
// user that PostgreSQL runs as cannot get there, as when root works below /root: then a link there
// leads to a directory of its own.
func (s *Stack) newHome(ctx context.Context, id *identity) (string, error) {
	home := filepath.Join(s.Dir, postgresName)
	if err := makeHome(home, id); err != nil {
		return "", err
	}
	if checkAccess(ctx, home, id) == nil {
		return home, nil
	}
	if err := os.Remove(home); err != nil {
		return "", err
	}
	for _, parent := range []string{"/var/tmp", os.TempDir()} {
		elsewhere, err := os.MkdirTemp(parent, "daybook-postgres-")
		if err != nil {
			continue
		}
		if err := give(elsewhere, id); err == nil && checkAccess(ctx, elsewhere, id) == nil {
			s.progress("PostgreSQL's data is in " + elsewhere + ", because user " + id.name + " may not enter " + s.Dir + ".")
			return elsewhere, os.Symlink(elsewhere, home)
		}
		_ = os.Remove(elsewhere)
	}
	return "", fmt.Errorf("user %s, as whom PostgreSQL runs, may not enter %s: choose a directory that every user may "+
		"search",
		id.name, s.Dir)
}

// makeHome creates the directory for its user only, and opens the stack's directory for passing
// through: what lies there stays readable for its owner alone.
func makeHome(home string, id *identity) error {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	if id == nil {
		return nil
	}
	if err := os.Chmod(filepath.Dir(home), 0o711); err != nil { //nolint:gosec // see above
		return err
	}
	return give(home, id)
}

func give(path string, id *identity) error {
	if id == nil {
		return nil
	}
	return os.Chown(path, int(id.uid), int(id.gid))
}

// checkAccess tries, as the user that PostgreSQL runs as, to work in the directory.
func checkAccess(ctx context.Context, dir string, id *identity) error {
	if id == nil {
		return nil
	}
	return run(ctx, command{
		name: "sh", path: "/bin/sh", args: []string{"-c", `cd "$1" && [ -w . ]`, "sh", dir}, dir: "/", user: id,
	})
}

// waitForPredecessor waits until a server that still shuts down in the data directory is gone, and
// removes what a crash left.
func waitForPredecessor(ctx context.Context, data string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	pidFile := filepath.Join(data, "postmaster.pid")
	for {
		b, err := os.ReadFile(pidFile)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		first, _, _ := strings.Cut(string(b), "\n")
		pid, err := strconv.Atoi(strings.TrimSpace(first))
		if err != nil || !servesFrom(pid, data) {
			// No server works there: this process holds the stack's lock. PostgreSQL would refuse to
			// start if its process id is another program's now.
			if err := os.Remove(pidFile); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL (process %d) still runs in %s: end it, or choose another directory: %w", pid, data,
				ctx.Err())
		case <-tick.C:
		}
	}
}

// servesFrom reports whether the process is a server whose working directory is the data directory,
// as PostgreSQL's is. Where the system does not tell, a living process counts.
func servesFrom(pid int, data string) bool {
	if !alive(pid) {
		return false
	}
	if runtime.GOOS != "linux" {
		return true
	}
	cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		// Another user's process is not ours; a process without a directory is ending.
		return false
	}
	resolved, err := filepath.EvalSymlinks(data)
	return err != nil || cwd == resolved
}
