package engine

import (
	"sync"
	"time"
)

const (
	// quick is how long an attempt takes at most that counts as a short one; openFor is for how
	// long a transaction that has picked jobs stays open for their handlers: what lasts longer is
	// leased.
	quick   = 5 * time.Millisecond
	openFor = 20 * time.Millisecond
	// learnAfter is after how many short attempts in a row a type is short; an attempt that lasts
	// longer than openFor costs a short type so many more.
	learnAfter = 10
	unlearn    = 100
)

// pace is what a process knows of how long attempts at single jobs of each type take. A type is
// short when its leased jobs end quickly, without asking for anything that needs a lease; jobs of
// short types are picked. It is safe for concurrent use.
type pace struct {
	mu    sync.Mutex
	types map[string]*typePace
}

// typePace is what is known of a type.
type typePace struct {
	// inARow counts the latest short attempts; below 0: so many are missing.
	inARow int
	// leases: the type needs leases, because it asks for a transaction of its own or stores
	// progress.
	leases bool
}

func newPace() *pace { return &pace{types: map[string]*typePace{}} }

// short reports whether jobs of the type are picked.
func (p *pace) short(jobType string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.types[jobType]
	return t != nil && t.inARow >= learnAfter && !t.leases
}

// note records how long the handler of an attempt took, and whether it asked for something that
// needs a lease.
func (p *pace) note(jobType string, took time.Duration, needsLease bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.types[jobType]
	if t == nil {
		t = &typePace{}
		p.types[jobType] = t
	}
	switch {
	case needsLease:
		t.leases = true
	case took > openFor:
		t.inARow = -unlearn
	case took < quick:
		t.inARow = min(t.inARow+1, learnAfter)
	case t.inARow < learnAfter:
		t.inARow = min(t.inARow, 0)
	}
}
