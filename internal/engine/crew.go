package engine

import (
	"context"
	"time"
)

// enlarge has n more goroutines work an open pick.
func (r *runner) enlarge(work context.Context, o *openPick, n int) {
	o.crew, o.more = o.crew+n, time.Now().Add(crewFor)
	for range n {
		r.spawn(func() { r.workPicked(work, o) })
	}
}

// workPicked works jobs of an open pick, in their order, as long as there are some that have not begun.
func (r *runner) workPicked(work context.Context, o *openPick) {
	over := false
	defer func() {
		if !over { // a handler has ended its goroutine
			go r.workPicked(work, o)
		}
	}()
	for c := o.next(); c != nil; c = o.next() {
		r.workAndTell(work, c)
	}
	over = true
}

// next is the next call that begins; nil: there is none.
func (o *openPick) next() *call {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun == len(o.calls) {
		return nil
	}
	o.begun++
	return o.calls[o.begun-1]
}

// take records how a call ended. late: the transaction has been told to end. all: there is no other call that it waits for.
func (o *openPick) take(c *call, e ended) (late, all bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.finishing {
		return true, false
	}
	c.over = true
	o.ended = append(o.ended, e)
	return false, len(o.ended) == len(o.calls)
}

// tellPicked tells the loop of a picked job that has ended: at once if it is late, and otherwise when all have ended.
func (r *runner) tellPicked(c *call, e ended) {
	switch late, all := c.from.take(c, e); {
	case late:
		r.tellOver(returned{call: c, jobs: []ended{e}})
	case all:
		select {
		case r.hurry <- c.from:
		case <-c.from.over:
		}
	}
}

// spawn runs f beside the loop, which calls it: in a goroutine that has ended another f, whose stack has grown already, or in a new one. To grow
// their stacks takes new goroutines longer than a short job does. Goroutines wait for another f until the turn begins no more jobs.
func (r *runner) spawn(f func()) {
	select {
	case r.hand <- f:
	default:
		go func() {
			for f != nil {
				f()
				f = nil // what waits keeps nothing
				select {
				case f = <-r.hand:
				case <-r.quiet:
				}
			}
		}()
	}
}

// spawnNoMore ends the goroutines that wait for another part of the turn.
func (r *runner) spawnNoMore() {
	if !r.ending {
		r.ending = true
		close(r.quiet)
	}
}
