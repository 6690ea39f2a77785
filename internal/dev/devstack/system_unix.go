//go:build unix

package devstack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// attributes puts a program into a process group of its own, so that Ctrl-C in a terminal reaches
// this process alone, which then stops the servers in order.
func attributes(c command) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if c.user != nil {
		a.Credential = &syscall.Credential{Uid: c.user.uid, Gid: c.user.gid, Groups: c.user.groups}
	}
	return a
}

func signalProcess(pid int, sig syscall.Signal) error { return syscall.Kill(pid, sig) }

func signalGroup(pid int, sig syscall.Signal) error { return syscall.Kill(-pid, sig) }

// alive reports whether a process exists.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

func isRoot() bool { return os.Geteuid() == 0 }

func ownedByUs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// ownerOf returns the user that a file belongs to.
func ownerOf(path string) (*identity, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, fmt.Errorf("the system does not tell who owns %s", path)
	}
	return &identity{name: fmt.Sprintf("number %d", st.Uid), uid: st.Uid, gid: st.Gid}, nil
}

func isNotLink(err error) bool { return errors.Is(err, syscall.EINVAL) }

var errLocked = errors.New("locked by another process")

// fileLock is an advisory lock; the kernel gives it back when the process ends.
type fileLock struct{ f *os.File }

// tryLock takes the lock at once or returns errLocked. It writes the process id into the file, for
// error messages.
func tryLock(path string) (*fileLock, error) { return lockFile(path, syscall.LOCK_NB) }

// waitLock waits for the lock.
func waitLock(path string) (*fileLock, error) { return lockFile(path, 0) }

func lockFile(path string, flags int) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|flags)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, err
	}
	if err := f.Truncate(0); err == nil {
		_, _ = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	return &fileLock{f}, nil
}

// close gives the lock back. It says so to the kernel: a program that another goroutine starts at
// this moment has the open file until it is loaded, and would keep the lock for so long.
func (l *fileLock) close() error {
	return errors.Join(syscall.Flock(int(l.f.Fd()), syscall.LOCK_UN), l.f.Close())
}

// lockHolder names the process that holds a directory's lock, for an error message.
func lockHolder(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, lockName))
	if pid := strings.TrimSpace(string(b)); err == nil && pid != "" {
		return " (process " + pid + ")"
	}
	return ""
}
