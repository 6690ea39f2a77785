package due

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rooms is the room that there is of each type, and the named queues that are closed.
type rooms struct {
	free   map[string]int
	closed map[string]bool
}

func (r rooms) Handles(string, int) bool { return true }

func (r rooms) Free(jobType string) bool { return r.free[jobType] > 0 }

func (r rooms) Reserve(jobType string, most int) int { return min(most, r.free[jobType]) }

func (rooms) Return(string, int) {}

func (r rooms) Open(queue string) bool { return !r.closed[queue] }

// dealtSimply is what deal says, for a round that asks each organization in its turn whether there
// is room for one of its slots.
func dealtSimply(rd *round, part int, b *budget) (asked []*partition) {
	dealt := 0
	give := func(org *activeOrg) bool {
		at := org.takeNext(b)
		if at == nil {
			return false
		}
		if at.asked++; at.asked == 1 {
			asked = append(asked, at)
		}
		dealt++
		return true
	}
	var more []*activeOrg
	for _, org := range slices.SortedFunc(maps.Values(rd.orgs),
		func(a, b *activeOrg) int { return a.number - b.number }) {
		if dealt == part {
			return asked
		}
		if give(org) {
			rd.last++
			org.number = rd.last
			more = append(more, org)
		}
	}
	for len(more) > 0 {
		of := more
		more = nil
		for _, org := range of {
			if dealt == part {
				return asked
			}
			if give(org) {
				more = append(more, org)
			}
		}
	}
	return asked
}

// shape is what a lease asks of each partition, which it takes back.
func shape(asked []*partition) (all []string) {
	for _, at := range asked {
		all = append(all, fmt.Sprintf("%s %s: %d", at.key.Org, at.key.Slot, at.asked))
		at.asked = 0
	}
	return all
}

// assertOrdered: each line of a round is a heap that knows where its partitions are.
func assertOrdered(t *testing.T, rd *round) {
	t.Helper()
	n := 0
	for slot, l := range rd.lines {
		for i, at := range l.partitions {
			n++
			require.Equal(t, slot, at.key.Slot)
			require.Equal(t, i, at.place)
			require.Same(t, l, at.line)
			if i > 0 {
				require.Less(t, l.partitions[(i-1)/2].org.number, at.org.number)
			}
		}
	}
	for _, org := range rd.orgs {
		n -= len(org.partitions)
	}
	require.Zero(t, n, "each partition is in one line")
}

// TestDealGoesByTurns: whatever is full, closed, parked, found and taken back, a lease asks the
// organizations in their turn.
func TestDealGoesByTurns(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	slots := []string{"mail", "report", "report/nightly", "mail/nightly", "call"}
	both := [2]*Partitions{New(Reader{}), New(Reader{})}
	at := func(r *Partitions, org int, slot string) *partition {
		key := Key{Priority: 1, Org: fmt.Sprint("org-", org), Slot: slot}
		return r.at(key)
	}
	dealt := 0
	for range 5000 {
		room := rooms{
			map[string]int{"mail": random.IntN(8), "report": random.IntN(8), "call": random.IntN(8)},
			map[string]bool{"nightly": random.IntN(2) == 0},
		}
		part, org, slot, action := random.IntN(12), random.IntN(30), slots[random.IntN(len(slots))], random.IntN(8)
		var shapes [2][]string
		for i, r := range both {
			switch action {
			case 0:
				r.park(at(r, org, slot))
			case 1, 2:
				r.activate(at(r, org, slot))
			case 3:
				if p := at(r, org, slot); p.org != nil {
					r.Undo([]Share{p.share()})
				}
			default:
				b := &budget{room: room, most: part, left: map[string]int{}}
				n := 100
				if i == 0 {
					shapes[i] = shape(r.rounds[0].deal(part, b, nil, &n))
					assert.LessOrEqual(t, 100-n, part)
				} else {
					shapes[i] = shape(dealtSimply(&r.rounds[0], part, b))
					for _, l := range r.rounds[0].lines { // it knows nothing of lines
						slices.SortFunc(l.partitions, func(a, b *partition) int { return a.org.number - b.org.number })
						for i, p := range l.partitions {
							p.place = i
						}
					}
				}
				dealt += len(shapes[i])
			}
			assertOrdered(t, &r.rounds[0])
		}
		require.Equal(t, shapes[1], shapes[0])
	}
	assert.Greater(t, dealt, 10_000)
}

// TestFullTypeKeepsItsTurn: organizations for which there is no room stay before those that have
// had their turn.
func TestFullTypeKeepsItsTurn(t *testing.T) {
	t.Parallel()
	r := New(Reader{})
	for _, key := range []Key{{1, "first", "full"}, {1, "second", "free"}, {1, "third", "free"}, {1, "fourth", "full"}} {
		r.activate(r.at(key))
	}
	orgs := func(n int, free map[string]int) (all []string) {
		for _, s := range r.Divide(n, rooms{free: free}) {
			all = append(all, s.Org)
		}
		return all
	}
	assert.Equal(t, []string{"second"}, orgs(1, map[string]int{"free": 1}))
	assert.Equal(t, []string{"third"}, orgs(1, map[string]int{"free": 1}))
	assert.Equal(t, []string{"first", "fourth", "second"}, orgs(3, map[string]int{"free": 3, "full": 3}))
}
