package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// beginning is one call of a handler.
type beginning struct {
	at     time.Time
	worker string
	ended  bool
}

// journal collects what the handlers of all workers tell, by the numbers of their jobs.
type journal struct {
	mu    sync.Mutex
	begun map[int][]beginning
	// counted is how many jobs are done by the workers that tell no more than that.
	counted map[string]int64
	broken  error
}

func newJournal() *journal {
	return &journal{begun: map[int][]beginning{}, counted: map[string]int64{}}
}

// follow reads the lines of a worker until it is gone. ready is called when the worker says that it
// works.
func (j *journal) follow(worker string, lines io.Reader, ready func()) {
	scanner := bufio.NewScanner(lines)
	for scanner.Scan() {
		if scanner.Text() == "ready" {
			ready()
			continue
		}
		if err := j.note(worker, scanner.Text()); err != nil {
			j.mu.Lock()
			j.broken = err
			j.mu.Unlock()
		}
	}
}

// note keeps a line: b (begins) or e (ends), the job's number, and the time in nanoseconds; or d
// (done) and how many jobs are.
func (j *journal) note(worker, line string) error {
	fields := strings.Fields(line)
	if len(fields) == 2 && fields[0] == "d" {
		n, err := strconv.ParseInt(fields[1], 10, 64)
		j.mu.Lock()
		defer j.mu.Unlock()
		j.counted[worker] = n
		return err
	}
	if len(fields) != 3 || fields[0] != "b" && fields[0] != "e" {
		return fmt.Errorf("worker %s said %q", worker, line)
	}
	number, err := strconv.Atoi(fields[1])
	if err != nil {
		return fmt.Errorf("worker %s said %q: %w", worker, line, err)
	}
	nanoseconds, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return fmt.Errorf("worker %s said %q: %w", worker, line, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	calls := j.begun[number]
	if fields[0] == "b" {
		j.begun[number] = append(calls, beginning{at: time.Unix(0, nanoseconds), worker: worker})
		return nil
	}
	for i := range calls {
		if calls[i].worker == worker && !calls[i].ended {
			calls[i].ended = true
			break
		}
	}
	return nil
}

// done is how many jobs are done by the workers that count them.
func (j *journal) done() (n int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, counted := range j.counted {
		n += counted
	}
	return n
}

// first is when the first handler began; the zero time: none has.
func (j *journal) first() (first time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, calls := range j.begun {
		for _, c := range calls {
			if first.IsZero() || c.at.Before(first) {
				first = c.at
			}
		}
	}
	return first
}

// inHand returns the jobs that a worker has begun and not ended.
func (j *journal) inHand(worker string) []int {
	j.mu.Lock()
	defer j.mu.Unlock()
	var numbers []int
	for number, calls := range j.begun {
		for _, c := range calls {
			if c.worker == worker && !c.ended {
				numbers = append(numbers, number)
				break
			}
		}
	}
	return numbers
}

// all returns what was told so far, and whether a line was not understood.
func (j *journal) all() (map[int][]beginning, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	begun := make(map[int][]beginning, len(j.begun))
	for number, calls := range j.begun {
		begun[number] = append([]beginning(nil), calls...)
	}
	return begun, j.broken
}
