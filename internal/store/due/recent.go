package due

import (
	"cmp"
	"slices"
	"time"
)

const (
	// recentSlots is of how many slots jobs may be that are picked so.
	recentSlots = 4
	// recentPause is for how long no recent pick is tried after one that met what it could not
	// take.
	recentPause = time.Second
)

// recentPicks decides when a pick may find and lock in one statement what has just fallen due.
//
// Under a steady load each recent scan finds a few jobs, and the pick that follows takes all of
// them. When all are taken there is nothing to divide, so one statement can do both. That saves the
// scan: for four jobs a pick takes 1.1 instead of 1.5 ms, and 0.68 instead of 0.96 ms of processor
// time, a seventh of all that the jobs cost from their enqueuing on (decision 2).
//
// It takes all or nothing, and a scan is due after farEvery all the same, so that nothing is left
// out for longer.
//
// The fields belong to Partitions.mu.
type recentPicks struct {
	// slots are those of the jobs that the last scan found; nil: the next pick follows a scan.
	slots []string
	// at is when the last scan or recent pick began, scanBy is when the next scan is due at the
	// latest.
	at, scanBy time.Time
	// paused is until when no recent pick is tried.
	paused time.Time
}

// scanned takes in what a scan that began at now has found.
func (r *recentPicks) scanned(read Recent, now time.Time) {
	r.slots, r.at = nil, now
	may := !read.More && !now.Before(r.paused)
	for _, f := range read.Found {
		if !slices.Contains(r.slots, f.Slot) {
			r.slots = append(r.slots, f.Slot)
		}
		may = may && !f.Capped && !f.Counted && f.Slot != ""
	}
	if !may || len(r.slots) > recentSlots {
		r.slots = nil
	}
}

// RecentPick returns of which slots jobs may be picked at now without a scan before it (recentPicks
// says why), and since when they fell due; none, if a scan is to come first.
func (p *Partitions) RecentPick(now time.Time, room Room) (slots []string, since time.Duration) {
	if !p.Idle(room) {
		return nil, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &p.recentPicks
	if !now.Before(r.scanBy) || len(p.held) > 0 || len(p.atCap) > 0 {
		return nil, 0
	}
	return r.slots, now.Sub(r.at) + recentLag
}

// EndRecentPick takes in what became of a recent pick that began at a time: the rows it took, and
// whether it met others, or failed. It moves the cursors behind the rows, and returns shares by
// which Undo takes that back.
func (p *Partitions) EndRecentPick(began time.Time, rows []Place, others bool) []Share {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r := &p.recentPicks; {
	case others:
		r.slots, r.paused = nil, began.Add(recentPause)
	case len(rows) == 0:
		r.slots = nil
	case began.After(r.at):
		r.at = began
	}
	return p.moveBehind(rows)
}

// moveBehind moves the cursors behind rows that were locked, in any order, and returns shares by
// which that is taken back. It is called with mu held.
func (p *Partitions) moveBehind(rows []Place) []Share {
	now := time.Now()
	var shares []Share
	index := make(map[*partition]int, len(rows))
	for _, row := range rows {
		at := p.at(row.Key)
		at.lastWork = now
		if row.Cursor.After(at.cursor) {
			at.cursor = row.Cursor
		}
		n, known := index[at]
		if !known {
			n = len(shares)
			index[at] = n
			shares = append(shares, Share{Place: row, partition: at, resets: at.resets})
		}
		if shares[n].Quota++; shares[n].Cursor.After(row.Cursor) {
			shares[n].Cursor = row.Cursor
		}
	}
	return shares
}

// InTurn returns the indexes of rows in the order in which they begin: high priorities first,
// within one the organizations in turn, within an organization its types in turn, the oldest of
// each first.
func InTurn(rows []Place) []int {
	order, turns := make([]int, len(rows)), make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := rows[a], rows[b]
		return cmp.Or(cmp.Compare(x.Priority, y.Priority), x.At.Compare(y.At), cmp.Compare(x.ID, y.ID))
	})
	for _, of := range []func(k Key) Key{
		func(k Key) Key { return k },
		func(k Key) Key { return Key{Priority: k.Priority, Org: k.Org} },
	} {
		taken := make(map[Key]int, len(rows))
		for _, i := range order {
			k := of(rows[i].Key)
			turns[i] = taken[k]
			taken[k]++
		}
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Or(cmp.Compare(rows[a].Priority, rows[b].Priority), cmp.Compare(turns[a], turns[b]))
		})
	}
	return order
}
