package store

import "strings"

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
	if room == nil {
		return true
	}
	jobType, queue := splitSlot(slot)
	return room.Free(jobType) && (queue == "" || room.Open(queue))
}
