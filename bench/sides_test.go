package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/bench/report"
)

// made is a side that takes a second for n jobs and is not run anywhere.
func made(name string, n int) side {
	return side{name: name, settings: "as made", n: n, drain: func(context.Context) (drained, error) {
		return drained{took: time.Second, first: time.Second / 4}, nil
	}}
}

func TestARowForEachPeer(t *testing.T) {
	t.Parallel()
	sides := []side{made("", 100), made(riverName, 100), made(dbosName, 20)}
	rates, firsts, err := contest(t.Context(), 3, sides)
	require.NoError(t, err)
	assert.Equal(t, []float64{100, 100, 20}, rates)
	assert.Equal(t, []float64{0.25, 0.25, 0.25}, firsts)
	rows := beside(report.Row{Name: "work", Unit: "jobs/s"}, sides, rates,
		map[string]report.Target{riverName: report.TimesPeer(1.2)})
	require.Len(t, rows, 2)
	assert.Equal(t, "work", rows[0].Name)
	assert.False(t, *rows[0].Met())
	assert.Equal(t, "100 jobs; River: as made.", rows[0].Note)
	assert.Equal(t, "work, beside DBOS", rows[1].Name)
	assert.Nil(t, rows[1].Met(), "it is only told")
	assert.Equal(t, "100 jobs; DBOS: 20 jobs, as made.", rows[1].Note)
	alone := beside(report.Row{Name: "work"}, sides[:1], rates, nil)
	require.Len(t, alone, 1)
	assert.Nil(t, alone[0].Peer)
}

func TestJournalFollowsAWorkerThatCounts(t *testing.T) {
	t.Parallel()
	j := newJournal()
	assert.True(t, j.first().IsZero())
	j.follow("a", strings.NewReader("ready\nb 7 1800000000000000000\nd 3\nd 5\n"), func() {})
	j.follow("b", strings.NewReader("ready\nb 9 1800000001000000000\nd 2\n"), func() {})
	assert.Equal(t, int64(7), j.done())
	assert.True(t, at(0).Equal(j.first()))
	_, err := j.all()
	require.NoError(t, err)
}

func TestRowsOfReclaims(t *testing.T) {
	t.Parallel()
	queues := []loadedQueue{
		daybookLoaded(0), riverLoaded(riverName, riverTuned, 0), dbosLoaded(dbosQuick, 0),
		pgbossLoaded(nil, pgbossWatchful, 0),
	}
	figures := [][]float64{{4, 6}, {20, 22}, nil, {10, 10}}
	rows := reclaimRows(reclaimPhases()[0], queues, figures, 2, "DBOS: never.")
	require.Len(t, rows, 2, "none is beside what did not begin again")
	assert.InDelta(t, 5, rows[0].Daybook, 0)
	assert.True(t, *rows[0].Met())
	assert.InDelta(t, 21, *rows[0].Peer, 0)
	assert.Equal(t, "working: until the last begins again, beside pg-boss", rows[1].Name)
	assert.Contains(t, rows[1].Note, "heartbeatSeconds 10, monitorIntervalSeconds 1. DBOS: never.")
	assert.Len(t, reclaimRows(reclaimPhases()[1], queues[:1], figures[:1], 1, ""), 1)
}
