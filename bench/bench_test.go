package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	all, err := choose("")
	require.NoError(t, err)
	require.NotEmpty(t, all)
	names, topics := map[string]bool{}, map[string]bool{}
	for i, s := range all {
		assert.NotEmpty(t, s.takes, s.name)
		if i == 0 || all[i-1].topic != s.topic {
			assert.False(t, topics[s.topic], "the scenarios of %q follow each other", s.topic)
			topics[s.topic] = true
		}
		assert.False(t, names[s.name], "%s is there twice", s.name)
		names[s.name] = true
		assert.NotEmpty(t, s.about, s.name)
		if i > 0 {
			assert.Less(t, all[i-1].order, s.order, "%s and %s have a place of their own", all[i-1].name, s.name)
		}
	}
	two, err := choose("enqueue, drain,drain")
	require.NoError(t, err)
	require.Len(t, two, 2)
	assert.Equal(t, "enqueue", two[0].name)
	_, err = choose("drain,dryn")
	require.ErrorContains(t, err, `there is no scenario "dryn": choose among drain, `)
}

func TestTheReadmeAndTheHelpListEveryScenario(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var help, out bytes.Buffer
	require.ErrorIs(t, start(t.Context(), []string{"-help"}, &out, &help), flag.ErrHelp)
	for _, s := range scenarios() {
		assert.Contains(t, string(readme), fmt.Sprintf("| `%s` | %s |", s.name, s.takes))
		assert.Contains(t, help.String(), "  "+s.name+"  ")
	}
}

func TestWrongOptionsAreRefusedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"-scenario", "none"}, "there is no scenario"},
		{[]string{"-write", "-smoke"}, "-write goes with no option"},
		{[]string{"-write", "-scenario", "faults", "-part", "killed"}, "-write goes with no option"},
		{[]string{"-write", "-scenario", "drain", "-size", "5"}, "-write goes with no option"},
		{[]string{"-write", "-scenario", "readers", "-held", "5s"}, "-write goes with no option"},
		{[]string{"drain"}, "is no option"},
	} {
		var out bytes.Buffer
		require.ErrorContains(t, start(context.Background(), c.args, &out, &out), c.says)
		assert.Empty(t, out.String())
	}
}

func TestMedianAndPercentile(t *testing.T) {
	t.Parallel()
	values := []float64{5, 1, 4, 2, 3}
	assert.InDelta(t, 3, median(values), 0)
	assert.InDelta(t, 2.5, median(values[1:]), 0)
	assert.InDelta(t, 3, percentile(values, 50), 0)
	assert.InDelta(t, 5, percentile(values, 99), 0)
	assert.InDelta(t, 1, percentile(values, 0), 0)
	assert.Zero(t, median(nil))
	assert.Equal(t, []float64{5, 1, 4, 2, 3}, values, "the values stay as they are")
}

func TestAlternate(t *testing.T) {
	t.Parallel()
	var order string
	one := func(name string, value float64) func(context.Context) (float64, error) {
		return func(context.Context) (float64, error) {
			order += name
			return value, nil
		}
	}
	values, err := alternate(t.Context(), 3, one("a", 1), one("b", 2))
	require.NoError(t, err)
	assert.Equal(t, "ababab", order)
	assert.Equal(t, [][]float64{{1, 1, 1}, {2, 2, 2}}, values)
}

func TestDelaysRunFromTheCommitToTheFirstBeginning(t *testing.T) {
	t.Parallel()
	b := newBeginnings(3)
	committed := make([]time.Time, 3)
	for i := range committed {
		committed[i] = time.Now().Add(-time.Duration(i) * time.Hour)
		b.mark(i)
	}
	first := b.at[2].Load()
	b.mark(2)
	assert.Equal(t, first, b.at[2].Load(), "another attempt does not count")
	delays, err := b.after(t.Context(), committed, 1)
	require.NoError(t, err)
	require.Len(t, delays, 2, "the first one only warms up")
	hour := milliseconds(time.Hour)
	assert.InDelta(t, hour, delays[0], hour/2)
	assert.InDelta(t, 2*hour, delays[1], hour/2)
}
