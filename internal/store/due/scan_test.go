package due

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// queue is what scans read.
type queue struct {
	recent []Found
	part   Part
	// slow holds up parts of the full scan until it is closed; nil: they are fast.
	slow chan struct{}
}

func (q *queue) partitions() *Partitions {
	return New(Reader{
		Recent: func(context.Context, time.Duration, int, bool) (Recent, error) { return Recent{Found: q.recent}, nil },
		Part: func(context.Context, Key, int) (Part, error) {
			part := q.part
			if q.slow != nil {
				<-q.slow
			}
			return part, nil
		},
	})
}

func mails(at time.Time) Found {
	return Found{Place: Place{Key{2, "acme", "mail"}, Cursor{at, "1"}}}
}

// beginSlowPart has everything read once, and then begins a part that does not end.
func beginSlowPart(t *testing.T, q *queue, p *Partitions, part Part) {
	t.Helper()
	o, err := p.Scan(t.Context(), true, rooms{})
	require.NoError(t, err)
	require.Equal(t, Outlook{}, o, "everything is read")
	time.Sleep(time.Minute)
	q.slow, q.part = make(chan struct{}), part
	o, err = p.Scan(t.Context(), true, rooms{})
	require.NoError(t, err)
	require.Equal(t, Outlook{Again: partFor, Unread: true}, o, "it waits for a part for so long")
}

// TestSlowPartDelaysNothing: what a recent scan finds is known while a part of the full scan runs,
// and what comes of the part when it ends.
func TestSlowPartDelaysNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		room := rooms{free: map[string]int{"mail": 1}}
		q := &queue{}
		p := q.partitions()
		beginSlowPart(t, q, p, Part{})
		q.recent = []Found{mails(time.Now())}
		_, err := p.Scan(t.Context(), true, room)
		require.NoError(t, err)
		assert.False(t, p.Idle(room))
		p.Took(p.Divide(1, room), []Got{{}})
		assert.True(t, p.Idle(room), "what gives less than it was asked for is parked")

		q.recent = nil
		close(q.slow)
		synctest.Wait()
		// It scanned before it was to come back, as after a wake-up: so all is read once more.
		for _, again := range []bool{true, false} {
			time.Sleep(time.Hour)
			o, err := p.Scan(t.Context(), true, room)
			require.NoError(t, err)
			assert.Equal(t, again, o.Again > 0)
		}
	})
}

// TestOldPartMovesNoCursorForward: a part of the full scan that began before another scan found a
// job has not seen that one.
func TestOldPartMovesNoCursorForward(t *testing.T) {
	t.Parallel()
	for name, foundMeanwhile := range map[string]bool{"a job is found": true, "none is found": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				old, young := mails(time.Now().Add(-time.Hour)), mails(time.Now())
				q := &queue{}
				p := q.partitions()
				p.FoundDue([]Found{old}, nil)
				p.Took(p.Divide(1, rooms{free: map[string]int{"mail": 1}}), []Got{{1, old.Cursor}})
				beginSlowPart(t, q, p, Part{Keys: []Key{young.Key}, Due: []Found{young}})
				want := young.Place
				if foundMeanwhile {
					want = old.Place
					p.FoundDue([]Found{old}, nil)
				}
				close(q.slow)
				synctest.Wait()
				assert.Equal(t, []Place{want}, p.Known())
			})
		})
	}
}
