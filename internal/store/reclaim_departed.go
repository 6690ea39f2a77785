package store

import (
	"slices"
	"time"
)

const (
	// departedAfter is the age from which the lease of a worker that has departed ends. A living one
	// lets its leases grow to 3.5 s: it renews every RenewEvery what is older than a sixth of that. It
	// may wait for a connection for half a second more.
	departedAfter = 4200 * time.Millisecond
	// departedPatience is for how long a Reclaimer sees, in uninterrupted contact with the database,
	// that a worker has departed and its lease is neither renewed nor locked. A living one whose
	// sessions were ended is connected again by then.
	departedPatience = 1500 * time.Millisecond
	// departedPause is the pause between checks meanwhile.
	departedPause = 200 * time.Millisecond
)

// departed are the workers that a Reclaimer has seen hold their locks (locks.Workers), by the locks'
// keys: the zero time, or when the lock was first seen to be gone, by the database's clock. Then no
// process of that name is connected any more.
//
// A worker that was never seen, of an older version for instance, is not in it. What is renewed
// after the lock was seen to be gone belongs to a process that lives without one.
type departed map[uint32]time.Time

// look notes which locks are held now.
func (d departed) look(now time.Time, held []uint32) {
	for key, since := range d {
		switch {
		case slices.Contains(held, key):
		case since.IsZero():
			d[key] = now
		case now.Sub(since) > StaleAfter:
			delete(d, key) // what it held has expired
		}
	}
	for _, key := range held {
		d[key] = time.Time{}
	}
}

// gone returns the keys of the workers that have departed, and when the last one was seen to be
// gone.
func (d departed) gone() (keys []uint32, last time.Time) {
	keys = []uint32{}
	for key, since := range d {
		if since.IsZero() {
			continue
		}
		keys = append(keys, key)
		if since.After(last) {
			last = since
		}
	}
	return keys, last
}

// held reports whether a lease that was last renewed then is one that the worker left behind.
func (d departed) held(key uint32, renewed time.Time) bool {
	since := d[key]
	return !since.IsZero() && renewed.Before(since)
}

// ends reports whether such a lease ends, at a time of the database's clock.
func (d departed) ends(key uint32, renewed, now time.Time) bool {
	return d.held(key, renewed) && now.Sub(renewed) >= departedAfter && now.Sub(d[key]) >= departedPatience
}
