package due

import (
	"container/heap"
	"slices"
)

// Divide divides n leases among the partitions with work for which there is room, and reserves
// that. A higher priority comes first, but leaves a fifth to the lower ones, over time, so that
// nothing waits for ever: of the leases, and of each type's room. Within a priority the
// organizations take turns, and within an organization its types. Organizations that are held back
// get nothing.
func (p *Partitions) Divide(n int, room Room) []Share {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		shares := p.divide(n, room)
		free, setAside := p.withoutHeld(shares)
		for _, s := range setAside {
			room.Return(s.Type(), s.Quota)
		}
		if len(free) > 0 || len(shares) == 0 {
			return free
		}
	}
}

// budget is what one lease may take of each type.
type budget struct {
	room Room
	most int
	// left is what is left of the room that was reserved for each type. kept is the part of it that
	// the priority which is being dealt must leave to lower ones.
	left, kept map[string]int
	// closed are the named queues of which nothing may be leased, as far as it was asked.
	closed map[string]bool
}

// reserved is how many more jobs of the type may be begun.
func (b *budget) reserved(jobType string) int {
	left, known := b.left[jobType]
	if !known {
		left = b.room.Reserve(jobType, b.most)
		b.left[jobType] = left
	}
	return left
}

// free is how many more jobs of the slot may be asked for.
func (b *budget) free(slot string) int {
	jobType, queue := splitSlot(slot)
	if queue != "" && b.isClosed(queue) {
		return 0
	}
	return b.reserved(jobType) - b.kept[jobType]
}

// isClosed reports whether nothing of a named queue may be leased. One lease gets one answer.
func (b *budget) isClosed(queue string) bool {
	closed, known := b.closed[queue]
	if !known {
		if b.closed == nil {
			b.closed = map[string]bool{}
		}
		closed = !b.room.Open(queue)
		b.closed[queue] = closed
	}
	return closed
}

// divide is Divide, as if no organization were held back.
func (p *Partitions) divide(n int, room Room) []Share {
	b := &budget{room: room, most: n, left: map[string]int{}}
	var asked []*partition
	for i := range p.rounds {
		part := n
		if p.rounds[i].any(b) && slices.ContainsFunc(p.rounds[i+1:], func(lower round) bool { return lower.any(b) }) {
			part = p.keep(i, n, b)
		}
		asked = p.rounds[i].deal(part, b, asked, &n)
		b.kept = nil
	}
	// What the lower priorities had no use for goes to the higher ones first.
	for i := range p.rounds {
		asked = p.rounds[i].deal(n, b, asked, &n)
	}
	for jobType, left := range b.left {
		if left > 0 {
			room.Return(jobType, left)
		}
	}
	shares := make([]Share, len(asked))
	for i, at := range asked {
		shares[i] = at.share()
		at.asked = 0
	}
	return shares
}

// priorityPart: one lease in five is left to lower priorities.
const priorityPart = 5

// keep returns how many of n leases the round at an index may have, and has the budget keep what it
// leaves of each type's room.
func (p *Partitions) keep(index, n int, b *budget) int {
	rd := &p.rounds[index]
	fifths := rd.lowersPart[""] + n
	rd.lowersPart[""] = fifths % priorityPart
	b.kept = map[string]int{}
	for slot := range rd.lines {
		jobType := slotType(slot)
		if _, done := b.kept[jobType]; done {
			continue // another queue has jobs of the type
		}
		if room := b.reserved(jobType); room > 0 && room < n && p.below(index, jobType) {
			ofType := rd.lowersPart[jobType] + room
			b.kept[jobType], rd.lowersPart[jobType] = ofType/priorityPart, ofType%priorityPart
		}
	}
	return n - fifths/priorityPart
}

// below reports whether a lower priority has work of the type.
func (p *Partitions) below(index int, jobType string) bool {
	for i := index + 1; i < len(p.rounds); i++ {
		for slot := range p.rounds[i].lines {
			if slotType(slot) == jobType {
				return true
			}
		}
	}
	return false
}

// any reports whether there is work for which there is room.
func (rd *round) any(b *budget) bool {
	for slot := range rd.lines {
		if b.free(slot) > 0 {
			return true
		}
	}
	return false
}

// deal asks the partitions of one priority for up to part of the n leases that are left, one by one
// in their order, and adds those that it asks first to asked. What the budget has left only shrinks:
// a slot that has nothing to give is passed over with all that wait for it, and the others go on
// among those that were given something.
func (rd *round) deal(part int, b *budget, asked []*partition, n *int) []*partition {
	if part <= 0 || len(rd.lines) == 0 {
		return asked
	}
	dealt := 0
	give := func(org *activeOrg) bool {
		at := org.takeNext(b)
		if at == nil {
			return false
		}
		if at.asked == 0 {
			asked = append(asked, at)
		}
		at.asked++
		dealt++
		*n--
		return true
	}
	var more []*activeOrg
	lines := rd.merge()
	for before := rd.last; len(lines) > 0; {
		if b.free(lines[0].slot) <= 0 {
			heap.Pop(&lines)
			continue
		}
		org := lines[0].first()
		if org.number > before {
			break // each was asked
		}
		give(org)
		rd.toBack(org, &lines)
		if dealt == part {
			return asked
		}
		more = append(more, org)
	}
	for len(more) > 0 {
		of := more
		more = more[:0]
		for _, org := range of {
			if give(org) {
				more = append(more, org)
			}
			if dealt == part {
				return asked
			}
		}
	}
	return asked
}

// takeNext returns the next of the organization's partitions for which there is room, or nil, and
// takes the room.
func (o *activeOrg) takeNext(b *budget) *partition {
	for i := range o.partitions {
		k := (o.next + i) % len(o.partitions)
		at := o.partitions[k]
		if b.free(at.key.Slot) <= 0 {
			continue
		}
		b.left[slotType(at.key.Slot)]--
		o.next = (k + 1) % len(o.partitions)
		return at
	}
	return nil
}
