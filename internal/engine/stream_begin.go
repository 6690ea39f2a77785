package engine

import (
	"context"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// notBegun are jobs that waited for room and are not begun although there is some now.
type notBegun struct {
	// not names all of them: they were cancelled while they waited, another turn has them, or another transaction holds their rows.
	not map[string]bool
	// held are those of the last kind, which wait on.
	held []store.Job
}

// of returns those of the jobs that are to be begun.
func (n notBegun) of(jobs []store.Job) []store.Job {
	if len(n.not) == 0 {
		return jobs
	}
	return slices.DeleteFunc(jobs, func(j store.Job) bool { return n.not[j.ID] })
}

// beginWaiting says that jobs which waited are worked now, and which of them are not to be begun.
func (s *stream) beginWaiting(work context.Context, resumed []store.Job) (notBegun, error) {
	if len(resumed) == 0 {
		return notBegun{}, nil
	}
	begun, err := s.engine.store.BeginWaiting(work, s.identity(), idsOf(resumed))
	if err != nil || len(begun.Working) == len(resumed) {
		return notBegun{}, err
	}
	working, held := setOf(begun.Working), setOf(begun.Held)
	n := notBegun{not: map[string]bool{}}
	for _, j := range resumed {
		if working[j.ID] {
			continue
		}
		n.not[j.ID] = true
		s.leaveRoom([]store.Job{j})
		if j.Room = false; held[j.ID] {
			n.held = append(n.held, j)
		}
	}
	if len(n.held) > 0 {
		s.wakeAt(time.Now().Add(skippedPause / 4))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Cancelled += begun.Cancelled
	return n, nil
}
