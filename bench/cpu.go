package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticksPerSecond is the unit of /proc/PID/stat, which Linux fixes for programs.
const ticksPerSecond = 100

// processorTime is a line of /proc/PID/stat, in seconds.
type processorTime struct {
	parent int
	// own is what the process has used, children what those have used that ended and that it has
	// waited for.
	own, children float64
}

// readProcessorTime reads /proc/PID/stat.
func readProcessorTime(pid int) (t processorTime, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return t, err
	}
	// The program's name stands in parentheses, and may hold any.
	end := strings.LastIndexByte(string(text), ')')
	fields := strings.Fields(string(text)[end+1:])
	if end < 0 || len(fields) < 15 {
		return t, fmt.Errorf("/proc/%d/stat is not understood", pid)
	}
	const parent, user, system, childrenUser, childrenSystem = 1, 11, 12, 13, 14
	number := func(field int) float64 {
		n, numberErr := strconv.ParseFloat(fields[field], 64)
		err = errors.Join(err, numberErr)
		return n
	}
	t.parent = int(number(parent))
	t.own = (number(user) + number(system)) / ticksPerSecond
	t.children = (number(childrenUser) + number(childrenSystem)) / ticksPerSecond
	return t, err
}

// familyTime is what a process and its children have used, in seconds, those included that have
// ended.
func familyTime(pid int) (float64, error) {
	for {
		before, err := readProcessorTime(pid)
		if err != nil {
			return 0, err
		}
		all := before.own + before.children
		stats, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			return 0, err
		}
		for _, path := range stats {
			child, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				continue
			}
			// A process that has ended since is counted by its parent.
			if t, err := readProcessorTime(child); err == nil && t.parent == pid {
				all += t.own + t.children
			}
		}
		after, err := readProcessorTime(pid)
		if err != nil {
			return 0, err
		}
		// A child that ended meanwhile may be counted twice, or not at all.
		if after.children == before.children {
			return all, nil
		}
	}
}
