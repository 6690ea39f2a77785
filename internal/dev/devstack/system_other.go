//go:build !unix

package devstack

import (
	"errors"
	"io/fs"
	"os/exec"
	"syscall"
)

// errUnsupported is what platforms without the means to run the servers safely return.
var errUnsupported = errors.New("the dev stack needs Linux, macOS or another Unix: set " + EnvDatabaseURL + " and " +
	EnvTemporalAddress + " to use servers that run elsewhere")

// This file lets programs that embed the package compile where it cannot start servers.

type watchdog struct{}

func (*watchdog) release() {}

func startBound(*exec.Cmd, command) (*watchdog, error) { return nil, errUnsupported }

func signalProcess(int, syscall.Signal) error { return errUnsupported }

func signalGroup(int, syscall.Signal) error { return errUnsupported }

func alive(int) bool { return false }

func isRoot() bool { return false }

func ownedByUs(fs.FileInfo) bool { return false }

func ownerOf(string) (*identity, error) { return nil, errUnsupported }

func isNotLink(error) bool { return true }

var errLocked = errors.New("locked by another process")

type fileLock struct{}

func tryLock(string) (*fileLock, error) { return nil, errUnsupported }

func waitLock(string) (*fileLock, error) { return nil, errUnsupported }

func (*fileLock) close() error { return nil }

func lockHolder(string) string { return "" }
