package engine

import (
	"sync"
	"time"
)

const (
	// quick is how long an attempt takes at most that counts as a short one; openFor is for how long a transaction that has picked jobs stays
	// open for their handlers: what lasts longer is leased.
	quick   = 5 * time.Millisecond
	openFor = 20 * time.Millisecond
	// learnAfter is after how many short attempts in a row a type is short; an attempt that lasts longer than openFor costs a short type
	// so many more.
	learnAfter = 10
	unlearn    = 100
)

// pace is what a process has learnt of how long attempts at single jobs of each type take. What is leased first and ends quickly, without
// asking for anything that needs a lease, is of a short type, whose jobs are picked. It is safe for concurrent use.
type pace struct {
	mu sync.Mutex
	// inARow counts, by type, the latest short attempts; below 0: so many are missing.
	inARow map[string]int
	// leases are the types that ask for what needs a lease: a transaction of their own, or progress.
	leases map[string]bool
}

func newPace() *pace { return &pace{inARow: map[string]int{}, leases: map[string]bool{}} }

// short reports whether jobs of the type are picked.
func (p *pace) short(jobType string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inARow[jobType] >= learnAfter && !p.leases[jobType]
}

// note takes in how long the handler of an attempt took, and whether it asked for what needs a lease.
func (p *pace) note(jobType string, took time.Duration, needsLease bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case needsLease:
		p.leases[jobType] = true
	case took > openFor:
		p.inARow[jobType] = -unlearn
	case took < quick:
		p.inARow[jobType] = min(p.inARow[jobType]+1, learnAfter)
	case p.inARow[jobType] < learnAfter:
		p.inARow[jobType] = min(p.inARow[jobType], 0)
	}
}
