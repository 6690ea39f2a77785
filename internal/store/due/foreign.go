package due

import (
	"maps"
	"slices"
	"time"
)

const (
	// foreignKept is how many partitions are kept of a type that the worker has no handler for, and
	// foreignTypes of how many types.
	foreignKept  = 100
	foreignTypes = 1000
)

// foreign are partitions whose type the worker has no handler for.
type foreign struct {
	// seenAt is when each was seen since WithoutHandler took them.
	seenAt map[Key]time.Time
	// kept are some of the same by ability, with the row that a scan found. They stay until their rows
	// are gone, however many partitions another type has.
	kept map[string]map[Key]Cursor
}

func newForeign() foreign {
	return foreign{seenAt: map[Key]time.Time{}, kept: map[string]map[Key]Cursor{}}
}

// add notes a partition that a scan found.
func (f *foreign) add(row Place, now time.Time) {
	if len(f.seenAt) < manyPartitions {
		f.seenAt[row.Key] = now
	}
	kept := f.kept[ability(row.Slot)]
	if kept == nil {
		if len(f.kept) >= foreignTypes {
			return
		}
		kept = map[Key]Cursor{}
		f.kept[ability(row.Slot)] = kept
	}
	if _, known := kept[row.Key]; !known && len(kept) >= foreignKept {
		for key := range kept { // whichever comes first: none of them is known to be worth more
			delete(kept, key)
			break
		}
	}
	kept[row.Key] = row.Cursor
}

func (f *foreign) forget(now time.Time) {
	for key, seen := range f.seenAt {
		if now.Sub(seen) > forgetAfter {
			delete(f.seenAt, key)
		}
	}
}

// WithoutHandler takes the partitions in which scans have found jobs that the worker has no handler
// for.
func (p *Partitions) WithoutHandler() (partitions []Share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.foreign.seenAt {
		partitions = append(partitions, Share{Place: Place{Key: key}})
		delete(p.foreign.seenAt, key)
	}
	return partitions
}

// ForeignTypes are the types that the worker has no handler for of which partitions are known; of a
// type whose handler is too old the slot of a job without a queue.
func (p *Partitions) ForeignTypes() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.foreign.kept))
}

// Foreign are the partitions of ForeignTypes that are kept of the types among these, as shares that
// are asked for nothing.
func (p *Partitions) Foreign(types []string) (shares []Share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range types {
		for key, first := range p.foreign.kept[t] {
			shares = append(shares, Share{Place: Place{key, first}})
		}
	}
	return shares
}

// DropForeign forgets those of the partitions of which no scan has found another row since.
func (p *Partitions) DropForeign(gone []Share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range gone {
		if kept := p.foreign.kept[ability(s.Slot)]; kept[s.Key] == s.Cursor {
			if delete(kept, s.Key); len(kept) == 0 {
				delete(p.foreign.kept, ability(s.Slot))
			}
		}
	}
}
