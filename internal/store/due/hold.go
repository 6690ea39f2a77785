package due

import (
	"maps"
	"slices"
	"time"
)

// An organization that is held back is tried again after firstHold, and each time in a row twice as
// late, up to longestHold.
const (
	firstHold   = 100 * time.Millisecond
	longestHold = 5 * time.Second
)

// held is an organization whose jobs the worker leaves as they are for a while, because its rate is
// used up, or its configuration is being changed: to complete each job as put off would rewrite it
// each time.
type held struct {
	until time.Time
	pause time.Duration
	// aside are the partitions that were taken out of their rounds meanwhile.
	aside map[Key]Share
}

// HoldBack has an organization's jobs left as they are for a while, and returns until when. begun:
// it was not held back before.
func (p *Partitions) HoldBack(org string) (pause time.Duration, begun bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	h := p.held[org]
	if h == nil {
		h = &held{aside: map[Key]Share{}}
		p.held[org] = h
	}
	if begun = !now.Before(h.until); begun {
		h.pause = min(max(2*h.pause, firstHold), longestHold)
		h.until = now.Add(h.pause)
	}
	return time.Until(h.until), begun
}

// HoldFor has an organization's jobs left as they are for a time, up to longestHold, because its rate
// is used up.
func (p *Partitions) HoldFor(org string, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[org] == nil {
		p.held[org] = &held{aside: map[Key]Share{}}
	}
	p.held[org].until = time.Now().Add(min(wait, longestHold))
}

// withoutHeld takes the partitions of organizations that are held back out of their rounds, with
// their cursors where they were asked, and returns the others. It is called with mu held.
func (p *Partitions) withoutHeld(shares []Share) (free, setAside []Share) {
	if len(p.held) == 0 {
		return shares, nil
	}
	now := time.Now()
	for _, s := range shares {
		h := p.held[s.Org]
		if h == nil || !now.Before(h.until) {
			free = append(free, s)
			continue
		}
		h.aside[s.Key] = s
		setAside = append(setAside, s)
		if s.partition.cursor.After(s.Cursor) {
			s.partition.setCursor(s.Cursor)
		}
		p.park(s.partition)
	}
	return free, setAside
}

// ReleaseHeld puts the partitions of organizations that are held back no longer into their rounds
// again.
func (p *Partitions) ReleaseHeld() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for org, h := range p.held {
		if now.Before(h.until) {
			continue
		}
		p.takeBack(slices.Collect(maps.Values(h.aside)))
		clear(h.aside)
		if now.Sub(h.until) > longestHold {
			delete(p.held, org)
		}
	}
}

// AwaitHeld bounds the wait of an outlook by the next organization that is held back no longer.
func (p *Partitions) AwaitHeld(o Outlook) Outlook {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.held {
		wait := time.Until(h.until) + time.Millisecond
		if len(h.aside) > 0 && (o.Again == 0 || wait < o.Again) {
			o.Again = max(wait, time.Millisecond)
		}
	}
	return o
}

// LeaveAlone leaves the jobs that were picked of organizations that are held back as they are: they
// are due when those are tried again, which may be now. others says that other jobs were left as
// well: they are due as before, and their organizations have had their turn.
func (p *Partitions) LeaveAlone(shares []Share, others bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if others {
		p.takeBack(shares)
	}
	free, _ := p.withoutHeld(shares)
	p.takeBack(slices.DeleteFunc(slices.Clone(free), func(s Share) bool { return p.held[s.Org] == nil }))
}
