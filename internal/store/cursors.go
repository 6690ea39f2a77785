package store

import (
	"slices"
	"sync"
	"time"
)

const (
	// forgetAfter is how long a partition is remembered that has had no work.
	forgetAfter = 10 * time.Minute
	// manyPartitions is from how many partitions on those without work are forgotten at once.
	manyPartitions = 50_000
	// cappedFor is for how long a partition of a capped organization is tried again that gave less than it was asked for.
	cappedFor = 10 * time.Second
)

// partitionKey names a partition of the queue: the due rows of one organization at one priority and, for background jobs, of one slot.
type partitionKey struct {
	priority int16
	org      string
	// slot is "" where the kind of queue has no types.
	slot string
}

// cursor is a row's position in the order (ready_at, id): what comes before it has been leased, as far as is known. The zero
// cursor is before everything.
type cursor struct {
	at time.Time
	id string
}

func (m cursor) after(o cursor) bool {
	if !m.at.Equal(o.at) {
		return m.at.After(o.at)
	}
	return m.id > o.id
}

// partition is where the lease goes on in the rows of one partitionKey.
type partition struct {
	key    partitionKey
	cursor cursor
	// turns is the partition's organization in the round of its priority, while there was due work at the last scan; nil: it is
	// parked.
	turns *orgTurns
	// line has it, at this place, while it has its turns.
	line  *line
	place int
	// capped: the organization has a limit of jobs in flight. counted: the named queue has a limit of jobs in flight, or a rate.
	capped, counted bool
	// reset grows when a scan moves the cursor: what a lease learned from the cursor before does not move it forward again.
	reset int
	// moved is the number of the scan that found it last, or of the lease that was taken back: see cursors.moves.
	moved int
	// used is when it last had work.
	used time.Time
	// asked is its part of the lease that is being divided.
	asked int
}

// orgTurns are an organization's partitions in the round of one priority, which take turns.
type orgTurns struct {
	org        string
	partitions []*partition
	// next is whose turn it is.
	next int
	// number is the organization's in the order of the round: the lowest one's turn it is.
	number int
}

// round holds the organizations with work of one priority, in the order in which their turn comes.
type round struct {
	orgs map[string]*orgTurns
	// lines are the same by slot: however many organizations wait for room of one slot, the first that waits for another is found at once.
	lines map[string]*line
	// first and last are the lowest and the highest number of an organization so far.
	first, last int
	// owed is what the lower priorities have not got yet of their fifth, in fifths: of the leases ("") and of each type's room.
	owed map[string]int
}

// cursors remembers, for one worker, where the lease of each partition ended last, so that no lease walks the rows
// again that earlier leases took and that are dead now. The cursors decide nothing: a later scan finds a row that they
// skip, and the database alone decides which turn has which row.
type cursors struct {
	mu         sync.Mutex
	partitions map[partitionKey]*partition
	// rounds are those of the priorities, high first.
	rounds [priorities]round
	// atCap are partitions of capped organizations that gave less than they were asked for, perhaps because of the cap.
	atCap map[*partition]bool
	// moves counts what was found, and what was taken back. A full scan that began before does not move those cursors forward: it
	// has not seen what the cursor stands at.
	moves int
	// unhandled are partitions whose type the worker has no handler for, with the time when they were seen.
	unhandled map[partitionKey]time.Time
	// foreign are by type some of the same partitions, foreignKept of each, with the row that a scan found. Unlike unhandled they stay until their
	// rows are gone, however many partitions another type has.
	foreign map[string]map[partitionKey]cursor
}

// priorities is how many there are: high, normal, low.
const priorities = 3

func newCursors() *cursors {
	r := &cursors{partitions: map[partitionKey]*partition{}, atCap: map[*partition]bool{}, unhandled: map[partitionKey]time.Time{}, foreign: map[string]map[partitionKey]cursor{}}
	for p := range r.rounds {
		r.rounds[p] = round{orgs: map[string]*orgTurns{}, lines: map[string]*line{}, owed: map[string]int{}}
	}
	return r
}

// activate gives a partition its turns again, after those that have them.
func (r *cursors) activate(at *partition) {
	if at.turns != nil {
		return
	}
	rd := &r.rounds[at.key.priority-1]
	turns := rd.orgs[at.key.org]
	if turns == nil {
		rd.last++
		turns = &orgTurns{org: at.key.org, number: rd.last}
		rd.orgs[at.key.org] = turns
	}
	at.turns = turns
	turns.partitions = append(turns.partitions, at)
	rd.join(at)
}

// park takes a partition's turns from it.
func (r *cursors) park(at *partition) {
	turns := at.turns
	if turns == nil {
		return
	}
	rd := &r.rounds[at.key.priority-1]
	rd.leave(at)
	at.turns = nil
	i := slices.Index(turns.partitions, at)
	turns.partitions = slices.Delete(turns.partitions, i, i+1)
	if turns.next > i {
		turns.next--
	}
	if len(turns.partitions) == 0 {
		delete(rd.orgs, turns.org)
	}
	if len(r.partitions) > manyPartitions && !r.atCap[at] {
		delete(r.partitions, at.key)
	}
}

// idle reports whether there was no due work at the last scan of which one could be begun.
func (r *cursors) idle(room Room) bool {
	return !r.anySlot(func(slot string) bool { return roomIn(room, slot) })
}

// passes reports whether there is due work for which there is no room.
func (r *cursors) passes(room Room) bool {
	return r.anySlot(func(slot string) bool { return room.Handles(slotType(slot)) && !roomIn(room, slot) })
}

// anySlot reports whether there was due work at the last scan in a slot of which something is true.
func (r *cursors) anySlot(is func(slot string) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.rounds {
		for slot := range r.rounds[p].lines {
			if is(slot) {
				return true
			}
		}
	}
	return false
}

// took moves the cursors to the last rows that a lease took, and parks the partitions that had fewer than they were asked for.
func (r *cursors) took(shares []share, counts []int, last []cursor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for i, s := range shares {
		at := s.partition
		if counts[i] > 0 {
			at.used = now
		}
		if at.reset != s.reset {
			continue
		}
		if counts[i] > 0 && last[i].after(at.cursor) {
			at.cursor = last[i]
		}
		if counts[i] < s.quota {
			if at.capped {
				r.atCap[at] = true
			}
			r.park(at)
		}
	}
}

// rewind takes back what took did for shares whose jobs were not completed after all.
func (r *cursors) rewind(shares []share) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moveBack(shares)
}

// undo is rewind for shares that have got nothing: it is their organizations' turn again, and in each that of the type which came first.
func (r *cursors) undo(shares []share) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moveBack(shares)
	for _, s := range slices.Backward(shares) {
		if turns := s.partition.turns; turns != nil {
			turns.next = slices.Index(turns.partitions, s.partition)
			r.rounds[s.key.priority-1].toFront(turns)
		}
	}
}

// moveBack is called with mu held.
func (r *cursors) moveBack(shares []share) {
	r.moves++
	for _, s := range shares {
		s.partition.moved = r.moves
		if s.partition.cursor.after(s.cursor) {
			s.partition.moveTo(s.cursor)
		}
		if r.partitions[s.key] == nil {
			r.partitions[s.key] = s.partition // it was forgotten meanwhile
		}
		if r.partitions[s.key] == s.partition {
			r.activate(s.partition)
		}
	}
}

// seen is what a scan found at one partition: its first due row, or one of the first.
type seen struct {
	key   partitionKey
	first cursor
	// capped and counted are the partition's.
	capped, counted bool
}

// found applies the due rows that a scan found: no cursor stands behind one of them.
func (r *cursors) found(all []seen, room Room) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moves++
	r.apply(all, room, func(at *partition, first cursor) bool {
		at.moved = r.moves
		return at.cursor.after(first)
	})
}

// moved is the number of moves so far, for foundFirst.
func (r *cursors) moved() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.moves
}

// foundFirst applies what a part of the full scan found: the first pending row of each partition. began is the number of moves when the part
// began. A cursor moves forward to such a row only if no scan has found the partition since, because what the part saw is older.
func (r *cursors) foundFirst(all []seen, room Room, began int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.apply(all, room, func(at *partition, first cursor) bool {
		return at.cursor.after(first) || at.moved <= began && first.after(at.cursor)
	})
}

// apply gives partitions that have due rows their turns, with their cursor at the row where moves says so. Without a room all types count as handled.
func (r *cursors) apply(all []seen, room Room, moves func(at *partition, first cursor) bool) {
	now := time.Now()
	for _, s := range all {
		if room != nil && !room.Handles(slotType(s.key.slot)) {
			if len(r.unhandled) < manyPartitions {
				r.unhandled[s.key] = now
			}
			r.keepForeign(s)
			continue
		}
		at := r.partitions[s.key]
		if at == nil {
			at = &partition{key: s.key}
			r.partitions[s.key] = at
		}
		at.capped, at.counted = s.capped, s.counted
		at.used = now
		if moves(at, s.first) {
			at.moveTo(s.first)
		}
		delete(r.atCap, at)
		r.activate(at)
	}
}

// moveTo sets the cursor to a row that a scan found.
func (at *partition) moveTo(first cursor) {
	at.reset++
	at.cursor = first
}

// tryCapped gives partitions of capped organizations their turns again: jobs of theirs may have ended.
func (r *cursors) tryCapped(most int) {
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

// forget drops the partitions that have had no work for long.
func (r *cursors) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for key, at := range r.partitions {
		if at.turns == nil && now.Sub(at.used) > forgetAfter {
			delete(r.partitions, key)
			delete(r.atCap, at)
		}
	}
	for key, seen := range r.unhandled {
		if now.Sub(seen) > forgetAfter {
			delete(r.unhandled, key)
		}
	}
}
