package devstack

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// What the data of a server for tests has to find: a server takes some 200 MB, and several test
// programs run at once.
const (
	memoryFolder    = "/dev/shm"
	memoryFree      = 2 << 30 // in the folder, which has a size of its own
	memoryAvailable = 4 << 30 // of the machine
)

// temporaryParent is where the data of a server for tests goes: memory, where there is room for it.
// Each test has a database of its own, some 900 files, and making and dropping them in a file system
// on a disk takes more processor time than most tests do. Empty: where TMPDIR says.
func temporaryParent() string {
	var room syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Access(memoryFolder, 2) != nil || syscall.Statfs(memoryFolder, &room) != nil {
		return ""
	}
	if room.Bavail*uint64(room.Bsize) < memoryFree || availableMemory() < memoryAvailable {
		return ""
	}
	return memoryFolder
}

// availableMemory is what programs may still take, in bytes; 0 where the system does not tell.
func availableMemory() uint64 {
	b, _ := os.ReadFile("/proc/meminfo")
	_, after, _ := bytes.Cut(b, []byte("MemAvailable:"))
	var kilobytes uint64
	_, _ = fmt.Sscan(string(after), &kilobytes)
	return kilobytes << 10
}
