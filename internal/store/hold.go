package store

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// An organization that is held back is tried again after firstHold, and each time in a row twice as late, up to longestHold.
const (
	firstHold   = 100 * time.Millisecond
	longestHold = 5 * time.Second
)

// holds are the organizations whose jobs a worker leaves as they are for a while, because their configuration is being changed: to
// complete each job as put off would rewrite it each time.
type holds struct {
	mu   sync.Mutex
	orgs map[string]*hold
}

type hold struct {
	until time.Time
	pause time.Duration
	// aside are the partitions that were taken out of their rounds meanwhile.
	aside map[partitionKey]share
}

// HoldBack implements engine.Picker.
func (s *Store) HoldBack(org string) (pause time.Duration, begun bool) {
	h := &s.holds
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	o := h.orgs[org]
	if o == nil {
		o = &hold{aside: map[partitionKey]share{}}
		if h.orgs == nil {
			h.orgs = map[string]*hold{}
		}
		h.orgs[org] = o
	}
	if begun = !now.Before(o.until); begun {
		o.pause = min(max(2*o.pause, firstHold), longestHold)
		o.until = now.Add(o.pause)
	}
	return time.Until(o.until), begun
}

// ask divides n leases among the partitions that are not held back.
func (s *Store) ask(n int, room Room) []share {
	for {
		shares := s.cursors.ask(n, room)
		free := s.setAside(shares)
		returnUnused(room, without(shares, free), nil)
		if len(free) > 0 || len(shares) == 0 {
			return free
		}
	}
}

// without returns the shares that are not among the free ones, which are in the same order.
func without(shares, free []share) []share {
	var held []share
	for _, sh := range shares {
		if len(free) > 0 && free[0].partition == sh.partition {
			free = free[1:]
			continue
		}
		held = append(held, sh)
	}
	return held
}

// setAside takes the partitions of organizations that are held back out of their rounds, from where they were asked, and returns the others.
func (s *Store) setAside(shares []share) []share {
	h := &s.holds
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.orgs) == 0 {
		return shares
	}
	now := time.Now()
	var free, held []share
	for _, sh := range shares {
		if o := h.orgs[sh.key.org]; o != nil && now.Before(o.until) {
			o.aside[sh.key] = sh
			held = append(held, sh)
		} else {
			free = append(free, sh)
		}
	}
	s.cursors.setAside(held)
	return free
}

// release puts the partitions of organizations that are held back no longer into their rounds again.
func (s *Store) release() {
	h := &s.holds
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for org, o := range h.orgs {
		if now.Before(o.until) {
			continue
		}
		s.cursors.rewind(slices.Collect(maps.Values(o.aside)))
		clear(o.aside)
		if now.Sub(o.until) > longestHold {
			delete(h.orgs, org)
		}
	}
}

// awaitHolds bounds the wait of an outlook by the next organization that is held back no longer.
func (s *Store) awaitHolds(o Outlook) Outlook {
	h := &s.holds
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, held := range h.orgs {
		wait := time.Until(held.until) + time.Millisecond
		if len(held.aside) > 0 && (o.Again == 0 || wait < o.Again) {
			o.Again = max(wait, time.Millisecond)
		}
	}
	return o
}

// setAside takes partitions out of their rounds, with their cursors where they were asked.
func (r *cursors) setAside(shares []share) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range shares {
		if s.partition.cursor.after(s.cursor) {
			s.partition.moveTo(s.cursor)
		}
		r.park(s.partition)
	}
}

// LeaveAlone leaves the picked jobs of organizations that are held back as they are: they are due when those are tried again, which may be
// now. others says that other jobs were left as well: they are due as before, and their organizations have had their turn.
func (p *Pick) LeaveAlone(others bool) {
	s := p.store
	if others {
		s.cursors.rewind(p.shares)
	}
	free := s.setAside(p.shares)
	s.holds.mu.Lock()
	defer s.holds.mu.Unlock()
	if len(s.holds.orgs) == 0 {
		return
	}
	s.cursors.rewind(slices.DeleteFunc(slices.Clone(free), func(sh share) bool { return s.holds.orgs[sh.key.org] == nil }))
}
