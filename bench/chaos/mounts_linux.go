package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// mountsEnv says that the process has mounts of its own.
const mountsEnv = "CHAOS_MOUNTS"

// ownMounts starts this program anew with mounts that no other program sees and that end with it, so that
// disks can be full; for a user who may not, it does nothing.
func ownMounts() error {
	if os.Getenv(mountsEnv) != "" || os.Geteuid() != 0 {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	// What a thread does not share is what the program has that it starts.
	runtime.LockOSThread()
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		runtime.UnlockOSThread()
		return nil //nolint:nilerr // then no disk is full
	}
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep the mounts apart: %w", err)
	}
	return syscall.Exec(self, os.Args, append(os.Environ(), mountsEnv+"=1"))
}

// mountSmall mounts a small disk in memory at a directory. It returns false where that is not
// allowed.
func mountSmall(dir string, bytes int64) (bool, error) {
	if os.Getenv(mountsEnv) == "" {
		return false, nil
	}
	if err := os.MkdirAll(dir, 0o711); err != nil { //nolint:gosec // PostgreSQL's user passes through
		return false, err
	}
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=711", bytes))
	if err != nil {
		return false, fmt.Errorf("mount a small disk: %w", err)
	}
	return true, nil
}

// fillDisk writes a file that takes what is left of a disk, and returns what removes it.
func fillDisk(path string) (empty func(), err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	block := make([]byte, 1<<20)
	for size := len(block); size > 0; {
		if _, err := f.Write(block[:size]); err != nil {
			size /= 16 // to the last page
		}
	}
	return func() { _ = os.Remove(path) }, nil
}
