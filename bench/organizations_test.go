package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/queue"
)

func TestSizesKeepTheirProportion(t *testing.T) {
	t.Parallel()
	assert.Equal(t, organizationsSizes{
		later: 1_000_000, laterOrgs: 10_000, small: 2_000, large: 10_000, single: 100_000,
		several: 12_000, slow: 10_000,
	}, sizesFor(1_000_000))
	assert.Equal(t, organizationsSizes{later: 100, laterOrgs: 2, small: 2, large: 2, single: 10, several: 2, slow: 100},
		sizesFor(100))
}

func TestTrickleComesFromBusyAndQuietOrganizations(t *testing.T) {
	t.Parallel()
	assert.Equal(t, quietOrg, trickleOrg(0, 200))
	assert.Equal(t, "later-37", trickleOrg(1, 200))
	assert.Equal(t, "later-11", trickleOrg(103, 200))
}

func TestSharesOfWhatBegan(t *testing.T) {
	t.Parallel()
	c := &begun{org: map[string]int{}, priority: map[int]int{}}
	assert.Equal(t, []float64{0, 0, 0, 0, 0, 0, 0, 0, 0}, c.figures(), "nothing began")
	for _, j := range []mixedJob{
		{mixedFirst, int(queue.High)},
		{mixedFirst, int(queue.High)},
		{mixedSecond, int(queue.Normal)},
		{mixedFirst, int(queue.Low)},
	} {
		c.add(j)
	}
	assert.Equal(t, []float64{0.25, 0.5, 0.25, 4, 3, 1, 2, 1, 1}, c.figures())
}

func TestMediansOfEachFigure(t *testing.T) {
	t.Parallel()
	run := 0.0
	figures, err := medians(t.Context(), 3, func(context.Context) ([]float64, error) {
		run++
		return []float64{run, -run}, nil
	})
	require.NoError(t, err)
	assert.Equal(t, []float64{2, -2}, figures)
}

func TestWhatHasNotBegunCountsAsIfItBeganWhenTheMeasurementGivesUp(t *testing.T) {
	t.Parallel()
	b := newBeginnings(3)
	committed := []time.Time{time.Now(), time.Now(), time.Now().Add(-time.Hour)}
	b.mark(1)
	delays, missing, err := b.within(t.Context(), committed, 1, 0)
	require.NoError(t, err)
	require.Len(t, delays, 2, "the first one only warms up")
	assert.Equal(t, 1, missing)
	hour := milliseconds(time.Hour)
	assert.Less(t, delays[0], hour/2)
	assert.InDelta(t, hour, delays[1], hour/2)
}
