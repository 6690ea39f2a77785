package pgtest

import "time"

// Room is a store.Room for one lease or pick that has room for everything, but for named queues
// that turn out to be full.
type Room struct{ closed map[string]bool }

// Unbounded returns room for everything.
func Unbounded() Room { return Room{map[string]bool{}} }

// Handles implements store.Room.
func (Room) Handles(string, int) bool { return true }

// Free implements store.Room.
func (Room) Free(string) bool { return true }

// Reserve implements store.Room.
func (Room) Reserve(_ string, most int) int { return most }

// Return implements store.Room.
func (Room) Return(string, int) {}

// Everywhere implements store.Room.
func (Room) Everywhere(string) int { return 0 }

// Full implements store.Room.
func (Room) Full(string) {}

// Open implements store.Room.
func (r Room) Open(queue string) bool { return !r.closed[queue] }

// QueueFull implements store.Room.
func (r Room) QueueFull(queue string, _ time.Duration) { r.closed[queue] = true }
