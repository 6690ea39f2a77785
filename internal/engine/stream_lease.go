package engine

import (
	"context"
	"time"
)

// startLeasing leases more jobs, or works them at once, if there is room and there may be some.
func (s *stream) startLeasing(work context.Context) {
	// What is leased beside a job that kills its worker may be charged with it.
	if s.leasing || s.careful {
		return
	}
	now := time.Now()
	if s.dry {
		if s.again.IsZero() || now.Before(s.again) {
			if !s.again.IsZero() {
				s.wakeAt(s.again)
			}
			return
		}
	}
	room := laneJobs - s.active - s.queued()
	if room <= 0 {
		return
	}
	expected := room
	if s.tight {
		expected = min(room, s.engine.room.regained())
	}
	if small := s.leasedAt.Add(smallLease); 4*expected < s.active && now.Before(small) {
		s.wakeAt(small)
		return
	}
	n := min(room, s.batch)
	s.leasing, s.leasedAt = true, now
	if s.direct != "" && now.After(s.notDirect) && !s.request.Crashed {
		s.startDirectly(work, s.direct, n)
		return
	}
	go func() { s.leases <- s.lease(work, n) }()
}

// lease leases up to n jobs.
func (s *stream) lease(work context.Context, n int) leasedJobs {
	turn := s.identity()
	turn.Begins = true
	leased, err := s.engine.leaseRoomy(work, turn, n)
	return leasedJobs{jobs: leased.Jobs, asked: n, again: leased.Wait(), capped: leased.Capped, passed: leased.Passed, err: err}
}

// noteLease takes in what a lease led to.
func (s *stream) noteLease(work context.Context, l leasedJobs) error {
	if l.call != nil && l.call.abandoned {
		return nil // another lease may be under way
	}
	s.leasing = false
	if l.err != nil {
		s.leaveRoom(l.jobs)
		s.dry = false
		s.doubt, s.reconcileAt = time.Now(), time.Time{}
		return s.endure(work, &s.own, l.err)
	}
	s.recovered(&s.own)
	found := len(l.jobs) + l.worked
	if l.notDirectly {
		s.direct, s.notDirect = "", time.Now().Add(directPause)
		if l.slow {
			s.notDirect = s.ends
		}
		if found == 0 {
			return nil
		}
	}
	s.dry, s.called, s.again = found == 0 && !s.called, false, time.Time{}
	s.capped, s.tight = l.capped, l.passed
	if l.again > 0 {
		s.again = time.Now().Add(l.again)
	}
	if len(l.jobs) > 0 {
		s.direct = s.onlyBulk(l.jobs)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Leased += found
	s.report.More = found >= l.asked
	s.queue = append(s.queue, l.jobs...)
	s.batch = s.nextBatch(found)
	return nil
}
