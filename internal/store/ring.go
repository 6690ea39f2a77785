package store

import (
	"sync"
	"time"
)

const (
	// forgetAfter is how long a place is remembered that has had no work.
	forgetAfter = 10 * time.Minute
	// manyPlaces is from how many places on those without work are forgotten at once.
	manyPlaces = 50_000
	// cappedFor is for how long a place of a capped organization is tried again that gave less than it was asked for.
	cappedFor = 10 * time.Second
)

// placeKey names a place of the ring: the due rows of one organization at one priority and, for background jobs, of one type.
type placeKey struct {
	priority int16
	org      string
	// jobType is "" where the kind of queue has no types.
	jobType string
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

// place is where the lease goes on in the rows of one placeKey.
type place struct {
	key  placeKey
	mark mark
	// turns is the place's organization in the round of its priority, while there was due work at the last look; nil: it is
	// parked.
	turns *orgTurns
	// capped: the organization has a limit of jobs in flight.
	capped bool
	// reset grows when a look moves the mark: what a lease learned from the mark before does not move it forward again.
	reset int
	// used is when it last had work.
	used time.Time
	// asked is its part of the lease that is being divided.
	asked int
}

// orgTurns are an organization's places in the round of one priority, which take turns.
type orgTurns struct {
	org    string
	places []*place
	// next is whose turn it is.
	next          int
	before, after *orgTurns
}

// round holds the organizations with work of one priority, in the order in which their turn comes.
type round struct {
	// head is whose turn it is; nil: there is no work.
	head *orgTurns
	orgs map[string]*orgTurns
	// types counts the places by type.
	types map[string]int
	// owed is what the lower priorities have not got yet of their fifth, in fifths: of the leases ("") and of each type's room.
	owed map[string]int
}

// ring remembers, for one worker, where the lease of each place ended last, so that no lease walks the rows
// again, dead by now, that earlier ones took. It is a memory and nothing more: a row that it hides is found by a
// later look, and which row is leased by whom is settled in the database alone.
type ring struct {
	mu     sync.Mutex
	places map[placeKey]*place
	// rounds are those of the priorities, high first.
	rounds [priorities]round
	// atCap are places of capped organizations that gave less than they were asked for, perhaps because of the cap.
	atCap map[*place]bool
	// unhandled are places whose type the worker has no handler for, with the time when they were seen.
	unhandled map[placeKey]time.Time
}

// priorities is how many there are: high, normal, low.
const priorities = 3

func newRing() *ring {
	r := &ring{places: map[placeKey]*place{}, atCap: map[*place]bool{}, unhandled: map[placeKey]time.Time{}}
	for p := range r.rounds {
		r.rounds[p] = round{orgs: map[string]*orgTurns{}, types: map[string]int{}, owed: map[string]int{}}
	}
	return r
}

// activate gives a place its turns again, after those that have them.
func (r *ring) activate(at *place) {
	if at.turns != nil {
		return
	}
	rd := &r.rounds[at.key.priority-1]
	turns := rd.orgs[at.key.org]
	if turns == nil {
		turns = &orgTurns{org: at.key.org}
		rd.orgs[at.key.org] = turns
		if rd.head == nil {
			turns.before, turns.after, rd.head = turns, turns, turns
		} else {
			turns.before, turns.after = rd.head.before, rd.head
			turns.before.after, turns.after.before = turns, turns
		}
	}
	turns.places = append(turns.places, at)
	at.turns = turns
	rd.types[at.key.jobType]++
}

// park takes a place's turns from it.
func (r *ring) park(at *place) {
	turns := at.turns
	if turns == nil {
		return
	}
	at.turns = nil
	rd := &r.rounds[at.key.priority-1]
	if rd.types[at.key.jobType]--; rd.types[at.key.jobType] == 0 {
		delete(rd.types, at.key.jobType)
	}
	for i, other := range turns.places {
		if other == at {
			turns.places = append(turns.places[:i], turns.places[i+1:]...)
			if turns.next > i {
				turns.next--
			}
			break
		}
	}
	if len(turns.places) == 0 {
		delete(rd.orgs, turns.org)
		if turns.after == turns {
			rd.head = nil
		} else {
			turns.before.after, turns.after.before = turns.after, turns.before
			if rd.head == turns {
				rd.head = turns.after
			}
		}
	}
	if len(r.places) > manyPlaces && !r.atCap[at] {
		delete(r.places, at.key)
	}
}

// idle reports whether there was no due work at the last look of which one could be begun.
func (r *ring) idle(room Room) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.rounds {
		for jobType := range r.rounds[p].types {
			if room == nil || room.Free(jobType) {
				return false
			}
		}
	}
	return true
}

// passes reports whether there is due work for which there is no room.
func (r *ring) passes(room Room) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.rounds {
		for jobType := range r.rounds[p].types {
			if room != nil && room.Handles(jobType) && !room.Free(jobType) {
				return true
			}
		}
	}
	return false
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
			if at.capped {
				r.atCap[at] = true
			}
			r.park(at)
		}
	}
}

// rewind takes back what took did for shares whose jobs were not settled after all.
func (r *ring) rewind(shares []share) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range shares {
		if s.place.mark.after(s.mark) {
			s.place.moveTo(s.mark)
		}
		if r.places[s.key] == nil {
			r.places[s.key] = s.place // it was forgotten meanwhile
		}
		if r.places[s.key] == s.place {
			r.activate(s.place)
		}
	}
}

// seen is what a look found at one place: its first due row, or one of the first.
type seen struct {
	key    placeKey
	first  mark
	capped bool
	// begins: nothing pending is before first.
	begins bool
}

// found takes in due rows that a look found.
func (r *ring) found(all []seen, room Room) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, s := range all {
		if room != nil && !room.Handles(s.key.jobType) {
			if len(r.unhandled) < manyPlaces {
				r.unhandled[s.key] = now
			}
			continue
		}
		at := r.places[s.key]
		if at == nil {
			at = &place{key: s.key}
			r.places[s.key] = at
		}
		at.capped = s.capped
		at.used = now
		if at.mark.after(s.first) || s.begins && s.first.after(at.mark) {
			at.moveTo(s.first)
		}
		delete(r.atCap, at)
		r.activate(at)
	}
}

// moveTo sets the mark to a row that a look found.
func (at *place) moveTo(first mark) {
	at.reset++
	at.mark = first
}

// tryCapped gives places of capped organizations their turns again: jobs of theirs may have ended.
func (r *ring) tryCapped(most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for at := range r.atCap {
		delete(r.atCap, at)
		if time.Since(at.used) < cappedFor {
			r.activate(at)
			most--
		}
		if most == 0 {
			return
		}
	}
}

// forget drops the places that have had no work for long.
func (r *ring) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for key, at := range r.places {
		if at.turns == nil && now.Sub(at.used) > forgetAfter {
			delete(r.places, key)
			delete(r.atCap, at)
		}
	}
	for key, seen := range r.unhandled {
		if now.Sub(seen) > forgetAfter {
			delete(r.unhandled, key)
		}
	}
}
