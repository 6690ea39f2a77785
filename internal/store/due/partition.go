package due

import (
	"strconv"
	"strings"
	"time"
)

// Key names a partition: the due jobs of one organization at one priority and, for background jobs,
// in one slot.
type Key struct {
	// Priority is 1 (high), 2 or 3 (low).
	Priority int16
	Org      string
	// Slot is what Slot says; "" where the kind of queue has no types.
	Slot string
}

// Slot returns the slot of a job: its type, for a job in a named queue type/queue, and for one with
// a lowest version of the handler type/queue/version. A type has no slash. The SQL function
// daybook.job_slot makes the same of a row. For a job with neither no new text is made.
func Slot(jobType, queue string, minVersion int) string {
	switch {
	case minVersion > 0:
		return jobType + "/" + queue + "/" + strconv.Itoa(minVersion)
	case queue == "":
		return jobType
	}
	return jobType + "/" + queue
}

// Type is the type of the partition's jobs.
func (k Key) Type() string { return slotType(k.Slot) }

// Queue is the named queue of the partition's jobs; "": they are in none.
func (k Key) Queue() string {
	_, queue := splitSlot(k.Slot)
	return queue
}

// MinVersion is the lowest version of the handler that may work the partition's jobs; 0: any.
func (k Key) MinVersion() int { return minVersion(k.Slot) }

// splitSlot returns the type and the queue of a slot, "" for none.
func splitSlot(slot string) (jobType, queue string) {
	jobType, queue, _ = strings.Cut(slot, "/")
	queue, _, _ = strings.Cut(queue, "/")
	return jobType, queue
}

// minVersion is the lowest version of the handler that may work the jobs of a slot; 0: any.
func minVersion(slot string) int {
	parts := strings.SplitN(slot, "/", 3)
	if len(parts) < 3 {
		return 0
	}
	version, _ := strconv.Atoi(parts[2])
	return version
}

// ability is what a worker must have for the jobs of a slot: a handler of the type, or of a version
// of it, which is written as the slot of a job without a queue.
func ability(slot string) string { return Slot(slotType(slot), "", minVersion(slot)) }

func slotType(slot string) string {
	jobType, _ := splitSlot(slot)
	return jobType
}

// Cursor is a row's position in the order (ready_at, id). The zero Cursor is before every row.
type Cursor struct {
	At time.Time
	ID string
}

// After reports whether c comes behind o.
func (c Cursor) After(o Cursor) bool {
	if !c.At.Equal(o.At) {
		return c.At.After(o.At)
	}
	return c.ID > o.ID
}

// Place is where a row is: its partition, and its position there.
type Place struct {
	Key
	Cursor
}

// Found is what a scan found at one partition: its first due row, or one of the first.
type Found struct {
	Place
	// Capped: the organization has a limit of leased jobs, or a rate. Counted: the named queue has a limit of
	// leased jobs, or a rate.
	Capped, Counted bool
}

// Share is what one lease asks of one partition: at most Quota jobs, from Cursor on.
type Share struct {
	Place
	Quota int
	// Capped and Counted are those of the last scan (Found).
	Capped, Counted bool
	partition       *partition
	// resets is the partition's when it was asked.
	resets int
}

// Got is what a lease got of a Share.
type Got struct {
	Jobs int
	// Last is the position of the last of them.
	Last Cursor
}

// partition is where leases go on in the rows of one Key.
type partition struct {
	key    Key
	cursor Cursor
	// org is the partition's organization in the round of its priority; nil: the partition is parked.
	org *activeOrg
	// line has it, at this place, while it is active.
	line  *line
	place int
	// capped and counted are those of the last scan (Found).
	capped, counted bool
	// resets counts how often a scan has set the cursor: what a lease learned from the cursor
	// before does not move it forward again.
	resets int
	// changed is the change (Partitions.changes) by which it was found last, or taken back.
	changed int
	// lastWork is when it last had work.
	lastWork time.Time
	// asked is its part of the lease that is being divided.
	asked int
}

// setCursor sets the cursor to a row that a scan found, or a lease gives back.
func (p *partition) setCursor(row Cursor) {
	p.resets++
	p.cursor = row
}

func (p *partition) share() Share {
	return Share{
		Place: Place{p.key, p.cursor}, Quota: p.asked, Capped: p.capped, Counted: p.counted,
		partition: p, resets: p.resets,
	}
}
