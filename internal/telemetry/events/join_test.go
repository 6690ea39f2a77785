package events_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/telemetry/events"
)

type jobsOnly struct{ seen []events.Name }

func (s *jobsOnly) Observe(batch []events.Event) {
	for _, e := range batch {
		s.seen = append(s.seen, e.Name)
	}
}

type everything struct {
	jobsOnly
	turns  []string
	causes []events.Cause
	lanes  [2]int
}

func (s *everything) ObserveTurn(t events.Turn)               { s.turns = append(s.turns, t.ID) }
func (s *everything) ObserveWakeup(_ string, c events.Cause)  { s.causes = append(s.causes, c) }
func (s *everything) ObserveLanes(_ string, active, idle int) { s.lanes = [2]int{active, idle} }

func TestJoinTellsEachSinkWhatItTakes(t *testing.T) {
	t.Parallel()
	var a jobsOnly
	var b everything
	all, ok := events.Join(nil, &a, events.Join(nil), events.Join(&b, nil)).(events.TurnSink)
	assert.True(t, ok)
	all.Observe([]events.Event{{Name: events.Leased}, {Name: events.Failed}})
	all.ObserveTurn(events.Turn{ID: "run/0/1"})
	all.ObserveWakeup("jobs", events.Scan)
	all.ObserveLanes("jobs", 2, 1)

	assert.Equal(t, []events.Name{events.Leased, events.Failed}, a.seen)
	assert.Equal(t, everything{
		jobsOnly: jobsOnly{a.seen}, turns: []string{"run/0/1"}, causes: []events.Cause{events.Scan}, lanes: [2]int{2, 1},
	}, b)
}

func TestJoinOfNothingIsNil(t *testing.T) {
	t.Parallel()
	assert.Nil(t, events.Join())
	assert.Nil(t, events.Join(nil, nil))
	var a jobsOnly
	assert.Same(t, &a, events.Join(nil, &a))
}
