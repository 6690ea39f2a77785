package store

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// ringLag is how far behind its mark a place is looked at again: a transaction that took its time before it committed may
// leave a row behind the mark.
const ringLag = 3 * time.Second

// forgetAfter is how long a place is remembered that has had no work.
const forgetAfter = 10 * time.Minute

// placeKey names a place of the ring: the due rows of one organization at one priority.
type placeKey struct {
	priority int16
	org      string
}

// mark is a row's position in the order (ready_at, id): what comes before it has been leased, as far as is known. The zero
// mark is before everything.
type mark struct {
	at time.Time
	id string
}

func (m mark) after(o mark) bool {
	if !m.at.Equal(o.at) {
		return m.at.After(o.at)
	}
	return m.id > o.id
}

// place is where the lease goes on in one organization's rows of one priority.
type place struct {
	key  placeKey
	mark mark
	// lag is where the mark stood at least ringLag ago; nextLag becomes lag at the next turn of the clock.
	lag, nextLag mark
	// active: there was due work at the last look. The others are parked.
	active bool
	// capped: the organization has a limit of jobs in flight.
	capped bool
	// reset grows when a look moves the mark: what a lease learned from the mark before does not move it forward again.
	reset int
	used  time.Time
}

// ring remembers, for one worker, where the lease of each organization ended last, so that no lease walks the rows
// again, dead by now, that earlier ones took. It is a memory and nothing more: a row that it hides is found by a
// later look, and which row is leased by whom is settled in the database alone.
type ring struct {
	mu     sync.Mutex
	places map[placeKey]*place
	// active holds the active places by priority, high first, in the order in which their turn comes.
	active [priorities][]*place
	turned time.Time
}

// priorities is how many there are: high, normal, low.
const priorities = 3

func newRing() *ring { return &ring{places: map[placeKey]*place{}} }

// share is what one lease asks of one place.
type share struct {
	place *place
	key   placeKey
	mark  mark
	quota int
	// capped and reset are the place's when it was asked.
	capped bool
	reset  int
}

// idle reports whether there was no due work anywhere at the last look.
func (r *ring) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.active {
		if len(a) > 0 {
			return false
		}
	}
	return true
}

// ask divides n leases among the active places. A higher priority comes first, but leaves a fifth to the lower ones, so
// that nothing waits for ever. Within a priority the organizations take turns in equal shares.
func (r *ring) ask(n int) []share {
	r.mu.Lock()
	defer r.mu.Unlock()
	var shares []share
	for p := range r.active {
		if n <= 0 || len(r.active[p]) == 0 {
			continue
		}
		part := n
		if slices.ContainsFunc(r.active[p+1:], func(a []*place) bool { return len(a) > 0 }) && n > 1 {
			part = n - max(1, n/5)
		}
		shares = append(shares, r.askPriority(p, part)...)
		n -= part
	}
	return shares
}

// askPriority divides n leases among the places of one priority and moves those that got most to the end.
func (r *ring) askPriority(p, n int) []share {
	places := r.active[p]
	k := min(n, len(places))
	each, more := n/k, n%k
	shares := make([]share, k)
	for i, at := range places[:k] {
		quota := each
		if i < more {
			quota++
		}
		shares[i] = share{place: at, key: at.key, mark: at.mark, quota: quota, capped: at.capped, reset: at.reset}
	}
	// Those that were asked for one more, or at all, come last the next time.
	shift := k
	if k == len(places) {
		shift = more
	}
	r.active[p] = slices.Concat(places[shift:], places[:shift])
	return shares
}

// took moves the marks to the last rows that a lease took, and parks the places that had fewer than they were asked for.
func (r *ring) took(shares []share, counts []int, last []mark) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for i, s := range shares {
		at := s.place
		if counts[i] > 0 {
			at.used = now
		}
		if at.reset != s.reset {
			continue
		}
		if counts[i] > 0 && last[i].after(at.mark) {
			at.mark = last[i]
		}
		if counts[i] < s.quota {
			at.active = false
		}
	}
	r.dropParked()
}

// rewind takes back what took did for shares whose jobs were not settled after all.
func (r *ring) rewind(shares []share) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range shares {
		if s.place.mark.after(s.mark) {
			s.place.moveTo(s.mark)
		}
		r.activate(s.place)
	}
}

// activate puts a place into the round of its priority.
func (r *ring) activate(at *place) {
	if at.active {
		return
	}
	at.active = true
	p := at.key.priority - 1
	r.active[p] = append(r.active[p], at)
}

// dropParked takes the places that have become inactive out of their rounds.
func (r *ring) dropParked() {
	for p := range r.active {
		r.active[p] = slices.DeleteFunc(r.active[p], func(at *place) bool { return !at.active })
	}
}

// seen is what a look found at one place: its first due row, or that it has none that is due yet.
type seen struct {
	key    placeKey
	first  mark
	due    bool
	capped bool
}

// found takes in what a look found. After a complete one what was not found is parked; a partial one leaves it alone.
func (r *ring) found(all []seen, complete bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	stays := make(map[placeKey]bool, len(all))
	for _, s := range all {
		at := r.places[s.key]
		if at == nil {
			at = &place{key: s.key, used: now}
			r.places[s.key] = at
		}
		at.capped = s.capped
		if !s.due {
			continue
		}
		stays[s.key] = true
		at.used = now
		if complete || at.mark.after(s.first) {
			at.moveTo(s.first)
		}
		r.activate(at)
	}
	if !complete {
		return
	}
	r.turnClock(now)
	for key, at := range r.places {
		if stays[key] {
			continue
		}
		at.active = false
		if now.Sub(at.used) > forgetAfter {
			delete(r.places, key)
		}
	}
	r.dropParked()
}

// moveTo sets the mark to a row that a look found.
func (at *place) moveTo(first mark) {
	at.reset++
	at.mark = first
	if at.lag.after(first) {
		at.lag = first
	}
	if at.nextLag.after(first) {
		at.nextLag = first
	}
}

// turnClock lets the lagging marks follow.
func (r *ring) turnClock(now time.Time) {
	if now.Sub(r.turned) < ringLag {
		return
	}
	r.turned = now
	for _, at := range r.places {
		at.lag, at.nextLag = at.nextLag, at.mark
	}
}

// known is a place to look at again, from its mark's lag on.
type known struct {
	key  placeKey
	from mark
}

// remembered returns all known places in the index's order.
func (r *ring) remembered() []known {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turnClock(time.Now())
	all := make([]known, 0, len(r.places))
	for key, at := range r.places {
		all = append(all, known{key: key, from: at.lag})
	}
	slices.SortFunc(all, func(a, b known) int { return comparePlaces(a.key, b.key) })
	return all
}

func comparePlaces(a, b placeKey) int {
	return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.org, b.org))
}
