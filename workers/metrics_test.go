package workers_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/workers"
)

// TestSampleNamesWhereItsWorkerLives: by these sessions others know at once when the process that
// samples is killed.
func TestSampleNamesWhereItsWorkerLives(t *testing.T) {
	t.Parallel()
	b := setup(t)
	log := slog.New(slog.DiscardHandler)
	m, err := workers.NewMetrics(t.Context(),
		workers.MetricsOptions{Pool: b.Pool, Name: "sampler", SampleEvery: 50 * time.Millisecond, Log: log})
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close(context.WithoutCancel(t.Context())) })
	r := jobs.NewRegistry()
	jobs.Register(r, jobs.Policy{}, func(context.Context, *jobs.Job[errand]) error { return nil })
	w, err := workers.NewJobs(workers.JobsOptions{
		Client: b.client, Pool: b.Pool, Registry: r, Name: "sampler", Metrics: m, Log: log,
	})
	require.NoError(t, err)
	b.runWorker(w)
	b.runJobs(`{}`)
	ctx, cancel := context.WithCancel(t.Context())
	var measuring sync.WaitGroup
	measuring.Go(func() { m.Run(ctx, b.client) })
	defer measuring.Wait()
	defer cancel()
	b.eventually("its sessions are known", time.Minute, func() bool {
		g, err := figures.ReadGauges(t.Context(), b.Pool)
		return err == nil && len(g.Database.Sessions) > 0
	})
}
