//go:build browser

package browser_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// imports has a handler whose first attempt fails in its loop, and whose second waits there for the
// test.
func imports(reached chan<- struct{}, ends <-chan struct{}) *jobs.Registry {
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{Base: time.Millisecond}, func(ctx context.Context, job *jobs.Job[call]) error {
		for _, name := range []string{"download the file", "check <b>every</b> line of it before it is imported"} {
			if _, err := jobs.Step(ctx, job, name, func(context.Context) (string, error) {
				time.Sleep(300 * time.Millisecond)
				return "done", nil
			}); err != nil {
				return err
			}
		}
		_, err := jobs.Loop(ctx, job, "rows", func(_ context.Context, done int) (int, bool, error) {
			time.Sleep(100 * time.Millisecond)
			switch {
			case done == 20_000 && job.Attempt == 1:
				return 0, false, errors.New("the connection was reset")
			case done == 40_000:
				reached <- struct{}{}
				<-ends
			}
			return done + 10_000, done < 50_000, nil
		})
		return err
	})
	return registry
}

// TestStepsOnTheTimeLine looks at a job with steps while its second attempt runs: each step is drawn
// below the attempts, where it was kept.
func TestStepsOnTheTimeLine(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	fixture.Organization(t, b.Pool, "acme")
	job, err := queue.EnqueueJob(t.Context(), b.Pool, "acme", call{"import"}, queue.JobOptions{})
	require.NoError(t, err)
	reached, ends, worked := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(worked)
		queuetest.DrainJobs(t, b.Pool, imports(reached, ends), queuetest.JobsOptions{})
	}()
	end := sync.OnceFunc(func() {
		close(ends)
		<-worked
	})
	defer end()
	<-reached
	b.signIn("", tokens.ScopeRead)
	b.visit("jobs/" + job.ID)
	b.see("rows attempt 2, 4 rounds, at 40000, goes on")
	assert.Contains(t, b.text(), "download the file attempt 1")
	assert.Contains(t, b.text(), "check <b>every</b> line …")
	b.inOrder()
	b.shownWell("jobs/" + job.ID)
	end()
	b.visit("jobs/" + job.ID)
	b.see("rows attempt 2, 6 rounds, at 60000")
	assert.NotContains(t, b.text(), "goes on")
}

// inOrder checks that the bars of steps follow each other, and that the last one ends within the
// attempt that runs.
func (b *tab) inOrder() {
	b.t.Helper()
	edges := evaluate[[]string](b, `[...document.querySelectorAll(".steps rect:not(.track)")].map(r => {
		const all = document.querySelector(".steps").getBoundingClientRect(), box = r.getBoundingClientRect();
		return [box.left - all.left, box.right - all.left, all.width, r.className.baseVal].join(" ");
	})`)
	require.Len(b.t, edges, 3)
	var before float64
	for i, edge := range edges {
		at := strings.Fields(edge)
		var places []float64
		for _, text := range at[:3] {
			place, err := strconv.ParseFloat(text, 64)
			require.NoError(b.t, err)
			places = append(places, place)
		}
		assert.Greater(b.t, places[1], places[0], edge)
		assert.GreaterOrEqual(b.t, places[0]+3, before, "it begins when the step before it was kept: %s", edge)
		assert.LessOrEqual(b.t, places[1], places[2]+1, edge)
		assert.Equal(b.t, []string{"completed", "completed", "now"}[i], at[3])
		before = places[1]
	}
}

// shownWell checks a page on a desk and on a phone, in light and dark.
func (b *tab) shownWell(path string) {
	b.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		for device, width := range map[string]int64{"desk": 1280, "phone": 390} {
			b.as(width, 900, scheme)
			b.visit(path)
			b.fits(path)
			b.wholeWords(path)
			b.accessible(path + ", " + device + ", " + scheme)
		}
	}
}
