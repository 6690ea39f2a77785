package store

import (
	"container/heap"
	"slices"
	"strings"
	"time"
)

// Room says which jobs a worker can begin. What is leased is reserved first, so that it can be begun at once. It is safe for concurrent use.
type Room interface {
	// Handles reports whether the worker has a handler for the type; without one its jobs are left alone.
	Handles(jobType string) bool
	// Free reports whether a job of the type could be begun.
	Free(jobType string) bool
	// Reserve reserves room for at most so many jobs of the type, and returns for how many. When that is none, the type is
	// passed over, and the holder of the room has jobs leased again as soon as there is some.
	Reserve(jobType string, most int) int
	// Return gives back room that was reserved and is not used.
	Return(jobType string, n int)
	// Everywhere is how many jobs of the type may be leased at a time, over all workers; 0: any number.
	Everywhere(jobType string) int
	// Full says that so many are leased: the type is passed over for a while.
	Full(jobType string)
	// Open reports whether jobs of a named queue may be leased. QueueFull says that none may be for so long, because of the queue's rate; 0: because as many
	// are leased as may be, until one of them ends, or for a while.
	Open(queue string) bool
	QueueFull(queue string, wait time.Duration)
}

// share is what one lease asks of one partition.
type share struct {
	partition *partition
	key       partitionKey
	cursor    cursor
	quota     int
	// capped, counted and reset are the partition's when it was asked.
	capped, counted bool
	reset           int
}

// budget is what one lease may take of each type.
type budget struct {
	room Room
	most int
	// left is what is left of the room that was reserved for each type. kept is the part of it that the priority which is being dealt
	// must leave to lower ones.
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

// ask divides n leases among the partitions with work for which there is room, and reserves that. A higher priority comes first,
// but leaves a fifth to the lower ones, over time, so that nothing waits for ever: of the leases, and of each type's room.
// Within a priority the organizations take turns, and within an organization its types.
func (r *cursors) ask(n int, room Room) []share {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := &budget{room: room, most: n, left: map[string]int{}}
	var asked []*partition
	for p := range r.rounds {
		part := n
		if r.rounds[p].any(b) && slices.ContainsFunc(r.rounds[p+1:], func(lower round) bool { return lower.any(b) }) {
			part = r.keep(p, n, b)
		}
		asked = r.rounds[p].deal(part, b, asked, &n)
		b.kept = nil
	}
	// What the lower priorities had no use for goes to the higher ones first.
	for p := range r.rounds {
		asked = r.rounds[p].deal(n, b, asked, &n)
	}
	for jobType, left := range b.left {
		if left > 0 {
			room.Return(jobType, left)
		}
	}
	shares := make([]share, len(asked))
	for i, at := range asked {
		shares[i] = share{partition: at, key: at.key, cursor: at.cursor, quota: at.asked, capped: at.capped, counted: at.counted, reset: at.reset}
		at.asked = 0
	}
	return shares
}

// priorityPart: one lease in five is left to lower priorities.
const priorityPart = 5

// keep returns how many of n leases a priority may have, and has the budget keep what it leaves of each type's room.
func (r *cursors) keep(p, n int, b *budget) int {
	rd := &r.rounds[p]
	owed := rd.owed[""] + n
	rd.owed[""] = owed % priorityPart
	b.kept = map[string]int{}
	for slot := range rd.lines {
		jobType := slotType(slot)
		if _, done := b.kept[jobType]; done {
			continue // another queue has jobs of the type
		}
		if room := b.reserved(jobType); room > 0 && room < n && r.below(p, jobType) {
			owedOfType := rd.owed[jobType] + room
			b.kept[jobType], rd.owed[jobType] = owedOfType/priorityPart, owedOfType%priorityPart
		}
	}
	return n - owed/priorityPart
}

// below reports whether a lower priority has work of the type.
func (r *cursors) below(p int, jobType string) bool {
	for i := p + 1; i < len(r.rounds); i++ {
		for slot := range r.rounds[i].lines {
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

// deal asks the partitions of one priority for up to part of the n leases that are left, one by one in their turn, and adds those
// that it asks first to asked. What the budget has left only shrinks: a slot that has nothing to give is passed over with all that wait for it, and
// the others go on among those that were given something.
func (rd *round) deal(part int, b *budget, asked []*partition, n *int) []*partition {
	if part <= 0 || len(rd.lines) == 0 {
		return asked
	}
	dealt := 0
	give := func(turns *orgTurns) bool {
		at := turns.turn(b)
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
	var more []*orgTurns
	lines := rd.merge()
	for before := rd.last; len(lines) > 0; {
		if b.free(lines[0].slot) <= 0 {
			heap.Pop(&lines)
			continue
		}
		turns := lines[0].first()
		if turns.number > before {
			break // each has had its turn
		}
		give(turns)
		rd.toBack(turns, &lines)
		if dealt == part {
			return asked
		}
		more = append(more, turns)
	}
	for len(more) > 0 {
		of := more
		more = more[:0]
		for _, turns := range of {
			if give(turns) {
				more = append(more, turns)
			}
			if dealt == part {
				return asked
			}
		}
	}
	return asked
}

// turn returns the next of the organization's partitions for which there is room, or nil.
func (o *orgTurns) turn(b *budget) *partition {
	for i := range o.partitions {
		k := (o.next + i) % len(o.partitions)
		at := o.partitions[k]
		if b.free(at.key.slot) <= 0 {
			continue
		}
		b.left[slotType(at.key.slot)]--
		o.next = (k + 1) % len(o.partitions)
		return at
	}
	return nil
}

// A slot is what the due jobs of an organization and a priority are divided by: the type of a job, or, for a job in a named queue, type/queue. A type
// has no slash. The SQL function daybook.job_slot makes the same of a row.

// slotOf returns the slot of a job. It makes no new text for a job without a queue.
func slotOf(jobType, queue string) string {
	if queue == "" {
		return jobType
	}
	return jobType + "/" + queue
}

// splitSlot returns the type and the queue of a slot, "" for none.
func splitSlot(slot string) (jobType, queue string) {
	jobType, queue, _ = strings.Cut(slot, "/")
	return jobType, queue
}

func slotType(slot string) string {
	jobType, _ := splitSlot(slot)
	return jobType
}

func slotQueue(slot string) string {
	_, queue := splitSlot(slot)
	return queue
}

// roomIn reports whether a job of the slot could be begun.
func roomIn(room Room, slot string) bool {
	jobType, queue := splitSlot(slot)
	return room.Free(jobType) && (queue == "" || room.Open(queue))
}
