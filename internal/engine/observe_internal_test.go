package engine

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/internal/telemetry/events/eventlog"
	"github.com/daybook-dev/daybook/models"
)

// ownedTypes is Handlers of one type.
type ownedTypes struct{ Handlers }

func (ownedTypes) Handling(string) (Handling, bool) { return Handling{Owner: "growth"}, true }

// someCompletions are completed jobs of a batch.
func someCompletions(n int) []store.Completion {
	all := make([]store.Completion, n)
	for i := range all {
		all[i] = store.Completion{
			Job:     store.Job{ID: "0190", OrgID: "org", Type: "noop", Attempt: 1, ReadyHere: time.Now()},
			Outcome: models.OutcomeCompleted, Took: time.Millisecond,
		}
	}
	return all
}

// TestObservingNothingCostsNothing: without a sink nothing is allocated, and with one nothing that
// grows with the batches.
func TestObservingNothingCostsNothing(t *testing.T) {
	completions, turn, counted := someCompletions(100), store.Turn{ID: "run/0/1"},
		store.Completed{models.OutcomeCompleted: 100}
	var none *observer
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		none.completed(turn, completions, counted, 0)
		none.leased(turn, nil)
		none.woken(events.Scan)
		none.lanes(1, 0)
	}))
	quiet := &observer{
		sink: eventlog.New(slog.New(slog.DiscardHandler), eventlog.Problems), kind: "jobs",
		handlers: ownedTypes{},
	}
	assert.Less(t, testing.AllocsPerRun(100, func() { quiet.completed(turn, completions, counted, 0) }), 10.0)
}

// told is a sink that keeps what it is told of.
type told []events.Event

func (t *told) Observe(all []events.Event) { *t = append(*t, all...) }

// TestNothingTookLongerThanItWaited: a row that came late, because the process or the line was
// slow, was ready later than its attempt began, as far as the process knows.
func TestNothingTookLongerThanItWaited(t *testing.T) {
	completions := someCompletions(2)
	completions[0].Took = time.Hour
	completions[1].Job.ReadyHere, completions[1].Took = time.Time{}, time.Hour
	var sink told
	(&observer{sink: &sink, kind: "jobs", handlers: ownedTypes{}}).completed(store.Turn{ID: "run/0/1"}, completions,
		store.Completed{models.OutcomeCompleted: 2}, 0)
	assert.Equal(t, time.Hour, sink[0].Waited)
	assert.Zero(t, sink[1].Waited, "it is not known")
}

// BenchmarkObserve is what an event costs that no line is logged of.
func BenchmarkObserve(b *testing.B) {
	const batch = 100
	completions, turn, counted := someCompletions(batch), store.Turn{ID: "run/0/1", Worker: "host/1"},
		store.Completed{models.OutcomeCompleted: batch}
	for name, o := range map[string]*observer{
		"without a sink": nil,
		"quiet log": {
			sink: eventlog.New(slog.New(slog.DiscardHandler), eventlog.Problems), kind: "jobs",
			handlers: ownedTypes{},
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N/batch + 1 {
				o.completed(turn, completions, counted, 0)
			}
		})
	}
}
