package due

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
	// cappedFor is for how long a partition of a capped organization is tried again that gave less
	// than it was asked for.
	cappedFor = 10 * time.Second
	// priorities is how many there are: high, normal, low.
	priorities = 3
)

// Room says which jobs a worker can begin. What is leased is reserved first, so that it can be
// begun at once. It is safe for concurrent use.
type Room interface {
	// Handles reports whether the worker has a handler for the type, of the version at least; without
	// one its jobs are left alone.
	Handles(jobType string, version int) bool
	// Free reports whether a job of the type could be begun.
	Free(jobType string) bool
	// Reserve reserves room for at most so many jobs of the type, and returns for how many. When
	// that is none, the type is passed over, and the holder of the room has jobs leased again as
	// soon as there is some.
	Reserve(jobType string, most int) int
	// Return gives back room that was reserved and is not used.
	Return(jobType string, n int)
	// Open reports whether jobs of a named queue may be leased.
	Open(queue string) bool
}

// roomIn reports whether a job of the slot could be begun.
func roomIn(room Room, slot string) bool {
	jobType, queue := splitSlot(slot)
	return room.Free(jobType) && (queue == "" || room.Open(queue))
}

// activeOrg is an organization with active partitions in the round of one priority.
type activeOrg struct {
	id         string
	partitions []*partition
	// next is which of them is asked next.
	next int
	// number is the organization's in the order of the round: the lowest is asked first.
	number int
}

// round holds the organizations with work of one priority, in the order in which their turn comes.
type round struct {
	orgs map[string]*activeOrg
	// lines are the same by slot: however many organizations wait for room of one slot, the first
	// that waits for another is found at once.
	lines map[string]*line
	// first and last are the lowest and the highest number of an organization so far.
	first, last int
	// lowersPart is what the lower priorities have not got yet of their fifth, in fifths: of the
	// leases ("") and of each type's room.
	lowersPart map[string]int
}

// Partitions are those of one queue, as one worker knows them. They decide nothing: a later scan
// finds a row that a cursor skips, and the database alone decides which turn has which row. They
// are safe for concurrent use.
type Partitions struct {
	mu    sync.Mutex
	byKey map[Key]*partition
	// rounds are those of the priorities, high first.
	rounds [priorities]round
	// atCap are partitions of capped organizations that gave less than they were asked for, perhaps
	// because of the cap.
	atCap map[*partition]bool
	// held are the organizations that are held back.
	held map[string]*held
	// changes counts the scans that found rows, and what was taken back. A part of the full scan
	// that began before does not move those cursors forward: it has not seen what the cursor stands
	// at.
	changes int
	foreign foreign

	scans       scans
	full        fullScan
	recentPicks recentPicks
}

// New returns the partitions of a queue that is read by these.
func New(read Reader) *Partitions {
	p := &Partitions{
		byKey: map[Key]*partition{}, atCap: map[*partition]bool{}, held: map[string]*held{}, foreign: newForeign(),
		scans: scans{read: read},
	}
	for i := range p.rounds {
		p.rounds[i] = round{orgs: map[string]*activeOrg{}, lines: map[string]*line{}, lowersPart: map[string]int{}}
	}
	return p
}

// at returns the partition of a key, a new one if it is not known. It is called with mu held.
func (p *Partitions) at(key Key) *partition {
	at := p.byKey[key]
	if at == nil {
		at = &partition{key: key}
		p.byKey[key] = at
	}
	return at
}

// activate makes a parked partition active. An organization that had none goes behind the others.
func (p *Partitions) activate(at *partition) {
	if at.org != nil {
		return
	}
	rd := &p.rounds[at.key.Priority-1]
	org := rd.orgs[at.key.Org]
	if org == nil {
		rd.last++
		org = &activeOrg{id: at.key.Org, number: rd.last}
		rd.orgs[at.key.Org] = org
	}
	at.org = org
	org.partitions = append(org.partitions, at)
	rd.join(at)
}

// park has leases leave a partition out until a scan finds work in it again.
func (p *Partitions) park(at *partition) {
	org := at.org
	if org == nil {
		return
	}
	rd := &p.rounds[at.key.Priority-1]
	rd.leave(at)
	at.org = nil
	i := slices.Index(org.partitions, at)
	org.partitions = slices.Delete(org.partitions, i, i+1)
	if org.next > i {
		org.next--
	}
	if len(org.partitions) == 0 {
		delete(rd.orgs, org.id)
	}
	if len(p.byKey) > manyPartitions && !p.atCap[at] {
		delete(p.byKey, at.key)
	}
}

// Idle reports whether there was no due work at the last scan of which one could be begun.
func (p *Partitions) Idle(room Room) bool {
	return !p.anySlot(func(slot string) bool { return roomIn(room, slot) })
}

// LacksRoom reports whether there is due work for which there is no room.
func (p *Partitions) LacksRoom(room Room) bool {
	return p.anySlot(func(slot string) bool { return room.Handles(slotType(slot), minVersion(slot)) && !roomIn(room, slot) })
}

// anySlot reports whether there was due work at the last scan in a slot of which something is true.
func (p *Partitions) anySlot(is func(slot string) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.rounds {
		for slot := range p.rounds[i].lines {
			if is(slot) {
				return true
			}
		}
	}
	return false
}

// Took moves the cursors behind the rows that a lease got of each share, and parks the partitions
// that had fewer than they were asked for.
func (p *Partitions) Took(shares []Share, got []Got) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for i, g := range got {
		at := shares[i].partition
		if g.Jobs > 0 {
			at.lastWork = now
		}
		if at.resets != shares[i].resets {
			continue
		}
		if g.Jobs > 0 && g.Last.After(at.cursor) {
			at.cursor = g.Last
		}
		if g.Jobs < shares[i].Quota {
			if at.capped {
				p.atCap[at] = true
			}
			p.park(at)
		}
	}
}

// Undo takes back what Took did for shares that have completed nothing: it is their organizations'
// turn again, and in each that of the type which came first.
func (p *Partitions) Undo(shares []Share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.takeBack(shares)
	for _, s := range slices.Backward(shares) {
		if org := s.partition.org; org != nil {
			org.next = slices.Index(org.partitions, s.partition)
			p.rounds[s.Priority-1].toFront(org)
		}
	}
}

// takeBack has the jobs of shares found again. It is called with mu held.
func (p *Partitions) takeBack(shares []Share) {
	p.changes++
	for _, s := range shares {
		s.partition.changed = p.changes
		if s.partition.cursor.After(s.Cursor) {
			s.partition.setCursor(s.Cursor)
		}
		if p.byKey[s.Key] == nil {
			p.byKey[s.Key] = s.partition // it was forgotten meanwhile
		}
		if p.byKey[s.Key] == s.partition {
			p.activate(s.partition)
		}
	}
}

// FoundDue applies due rows: no cursor stands behind one of them. Without a room all types count as
// handled, and what needs a version of a handler is left to a scan.
func (p *Partitions) FoundDue(all []Found, room Room) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes++
	p.apply(all, room, func(at *partition, row Cursor) bool {
		at.changed = p.changes
		return at.cursor.After(row)
	})
}

// foundFirst applies what a part of the full scan found: the first pending row of each partition.
// began is the number of changes when the part began. A cursor moves forward to such a row only if
// no scan has found the partition since, because what the part saw is older.
func (p *Partitions) foundFirst(all []Found, room Room, began int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.apply(all, room, func(at *partition, row Cursor) bool {
		return at.cursor.After(row) || at.changed <= began && row.After(at.cursor)
	})
}

// changesSoFar is for foundFirst.
func (p *Partitions) changesSoFar() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changes
}

// apply makes partitions active that have due rows, with their cursor at the row where moves
// says so.
func (p *Partitions) apply(all []Found, room Room, moves func(at *partition, row Cursor) bool) {
	now := time.Now()
	for _, f := range all {
		version := minVersion(f.Slot)
		if room == nil && version > 0 {
			continue // whether the worker may work it is known to a scan
		}
		if room != nil && !room.Handles(f.Type(), version) {
			p.foreign.add(f.Place, now)
			continue
		}
		at := p.at(f.Key)
		at.capped, at.counted = f.Capped, f.Counted
		at.lastWork = now
		if moves(at, f.Cursor) {
			at.setCursor(f.Cursor)
		}
		delete(p.atCap, at)
		p.activate(at)
	}
}

// tryCapped makes partitions of capped organizations active again, so many at most: jobs of
// theirs may have ended.
func (p *Partitions) tryCapped(most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at := range p.atCap {
		delete(p.atCap, at)
		if time.Since(at.lastWork) < cappedFor {
			p.activate(at)
			most--
		}
		if most == 0 {
			return
		}
	}
}

// forget drops the partitions that have had no work for long.
func (p *Partitions) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for key, at := range p.byKey {
		if at.org == nil && now.Sub(at.lastWork) > forgetAfter {
			delete(p.byKey, key)
			delete(p.atCap, at)
		}
	}
	p.foreign.forget(now)
}
