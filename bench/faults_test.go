package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/bench/report"
)

// at is a moment of a made-up phase.
func at(seconds float64) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func TestFaultFiguresTellWaitsFromRecoveries(t *testing.T) {
	t.Parallel()
	o := observed{
		committed: map[int]time.Time{1: at(0), 2: at(0), 3: at(1), 4: at(2), longJobs: at(0)},
		begun: map[int][]beginning{
			1: {{at: at(0.1), worker: "a"}},
			// The killed worker had begun it; the other began it again.
			2: {{at: at(9), worker: "b"}, {at: at(0.2), worker: "a"}},
			// The killed worker held it and had not begun it.
			3: {{at: at(7), worker: "b"}},
			// It waited.
			4:        {{at: at(3.5), worker: "b"}},
			longJobs: {{at: at(0.5), worker: "a"}, {at: at(20), worker: "b"}},
		},
		held:   map[int]time.Time{2: at(2), 3: at(2), longJobs: at(2)},
		killed: map[string]time.Time{"a": at(2)},
		found: map[int]foundJob{
			1: {finished: true, again: true}, 2: {finished: true, again: true}, 3: {finished: true}, 4: {finished: true, again: true},
			longJobs: {finished: true, again: true},
		},
		effects: map[int]int{1: 1, 2: 2, 3: 1, 4: 1, longJobs: 1},
		end:     at(30),
	}
	f := o.figures()
	want := map[int]float64{
		figureJobs: 5, figureSlowest: 1.5, figureOverHalf: 1, figureOverOne: 1, figureOverTwo: 0, figureHeld: 3,
		figureRecovery: 7, figureLongRecovery: 18,
		figureLost: 0, figureOpen: 0, figureTwice: 1, figureCharged: 4, figureChargedOthers: 1, figureP50: 0.2,
	}
	for figure, value := range want {
		assert.InDelta(t, value, f[figure], 1e-6, "figure %d", figure)
	}
}

func TestFaultFiguresCountWhatIsMissing(t *testing.T) {
	t.Parallel()
	o := observed{
		committed: map[int]time.Time{1: at(0), 2: at(0), 3: at(0), 4: at(0)},
		begun:     map[int][]beginning{1: {{at: at(0.1)}}, 2: {{at: at(0.1)}}},
		// 1 is gone, 2 finished and left nothing, 3 waits, and a killed worker holds 4. The commit of 5
		// was not answered.
		held:    map[int]time.Time{4: at(4)},
		found:   map[int]foundJob{2: {finished: true}, 3: {}, 4: {}, 5: {finished: true}},
		effects: map[int]int{5: 1},
		end:     at(10),
		refused: 1,
	}
	f := o.figures()
	assert.InDelta(t, 2, f[figureLost], 0)
	assert.InDelta(t, 2, f[figureOpen], 0)
	assert.InDelta(t, 10, f[figureSlowest], 1e-6, "what has not begun counts as if it began in the end")
	assert.InDelta(t, 6, f[figureRecovery], 1e-6)
	line := faultLine(f)
	for _, part := range []string{
		"4 jobs, ", "over 0.5 / 1 / 2 s: 1 / 1 / 1",
		"held by the killed 1, recovered after 6.00 s", "lost 2, twice 0, charged 0", "not done in the end 2",
		"not accepted 1",
	} {
		assert.Contains(t, line, part)
	}
}

func TestAJobThatWasJustCompletedNeedsNoRecovery(t *testing.T) {
	t.Parallel()
	o := observed{
		committed: map[int]time.Time{1: at(0)}, begun: map[int][]beginning{1: {{at: at(1)}}},
		held:  map[int]time.Time{1: at(2)},
		found: map[int]foundJob{1: {finished: true}}, effects: map[int]int{1: 1}, end: at(10),
	}
	f := o.figures()
	assert.Zero(t, f[figureHeld])
	assert.Zero(t, f[figureRecovery])
	assert.InDelta(t, 1, f[figureSlowest], 1e-6, "it began before the kill")
}

func TestDelaysLeaveOutTheTimeInWhichNothingCouldBeDone(t *testing.T) {
	t.Parallel()
	o := observed{windows: []window{{at(10), at(25)}}, end: at(100), begun: map[int][]beginning{
		1: {{at: at(5)}}, 2: {{at: at(26)}}, 3: {{at: at(26)}}, 4: {{at: at(20)}}, 5: {{at: at(30)}},
	}}
	for number, c := range map[int]struct{ committed, want float64 }{
		1: {4, 1}, 2: {9, 2}, 3: {12, 1}, 4: {9, 1}, 5: {29, 1}, 6: {90, 10},
	} {
		assert.InDelta(t, c.want, o.delay(number, at(c.committed)).Seconds(), 1e-6, "job %d", number)
	}
}

func TestJournalFollowsAWorker(t *testing.T) {
	t.Parallel()
	j := newJournal()
	ready := 0
	j.follow("a", strings.NewReader("ready\nb 1 1800000000000000000\nb 2 1800000000000000001\ne 1 1800000000000000002\n"),
		func() { ready++ })
	assert.Equal(t, 1, ready)
	assert.Equal(t, []int{2}, j.inHand("a"))
	assert.Empty(t, j.inHand("b"))
	begun, err := j.all()
	require.NoError(t, err)
	assert.Equal(t, []beginning{{at: at(0), worker: "a", ended: true}}, begun[1])
	j.follow("a", strings.NewReader("panic: x\n"), func() {})
	_, err = j.all()
	require.ErrorContains(t, err, `worker a said "panic: x"`)
}

func TestAddressWithApplicationName(t *testing.T) {
	t.Parallel()
	const address = "postgres://u:p@127.0.0.1:5432/bench_1?sslmode=disable"
	named, err := withApplicationName(address, "bench-worker")
	require.NoError(t, err)
	assert.Equal(t, "postgres://u:p@127.0.0.1:5432/bench_1?application_name=bench-worker&sslmode=disable", named)
}

func TestRowsOfAPhase(t *testing.T) {
	t.Parallel()
	own, usual, tuned := make([]float64, figureCount), make([]float64, figureCount), make([]float64, figureCount)
	own[figureSlowest], usual[figureSlowest], tuned[figureSlowest] = 0.4, 0.3, 0
	own[figureP99], own[figureLost], tuned[figureLost] = 0.02, 1, 2
	m := phaseFigures{phase: faultPhase{
		name: "storm",
		rows: []faultRow{p99(report.AtMost(50)), slowest(report.AtMost(0.5))},
	}, figures: [][]float64{own, usual, tuned}}
	queues := []loadedQueue{{name: "Daybook"}, {name: "usual"}, {name: "tuned"}}
	rows := m.rows(queues, 1)
	require.Len(t, rows, 3)
	assert.Equal(t, "storm: p99", rows[0].Name)
	assert.InDelta(t, 20, rows[0].Daybook, 1e-9, "in milliseconds")
	assert.Contains(t, rows[0].Note, "tuned: ")
	assert.Equal(t, "storm: slowest, tuned", rows[1].Name)
	require.NotNil(t, rows[1].Peer, "nothing waited, which is a figure")
	assert.Zero(t, *rows[1].Peer)
	assert.Equal(t, "storm: slowest, usual", rows[2].Name)
	assert.True(t, *rows[2].Met())
	sums := faultSums([]phaseFigures{m, m}, 1)
	assert.Equal(t, "all phases: lost", sums[0].Name)
	assert.InDelta(t, 2, sums[0].Daybook, 0)
	assert.InDelta(t, 4, *sums[0].Peer, 0)
	assert.False(t, *sums[0].Met())
}
