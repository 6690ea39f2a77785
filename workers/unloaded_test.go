package workers_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/daybook-dev/daybook/internal/devstack"
	"github.com/daybook-dev/daybook/internal/pgtest"
	"github.com/daybook-dev/daybook/workers"
)

// TestTasksOfAnUnloadedTaskQueue starts a workflow while no worker runs, and then a worker when Temporal has unloaded all partitions of the task queue but
// the first, which the others have asked for its settings for a while: with the default settings that is so for five minutes, from five minutes after the
// start on. The workflow's first task waits in one of 64 partitions.
func TestTasksOfAnUnloadedTaskQueue(t *testing.T) {
	t.Parallel()
	server, err := devstack.Start(t.Context(), devstack.Options{
		NoPostgres: true, NoUI: true, InMemory: true, Private: true, DynamicConfig: []string{
			`matching.maxTaskQueueIdleTime="6s"`, `matching.getUserDataLongPollTimeout="5s"`,
			"matching.numTaskqueueReadPartitions=64", "matching.numTaskqueueWritePartitions=64",
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	c, err := client.DialContext(t.Context(), client.Options{HostPort: server.TemporalAddress, Namespace: devstack.Namespace, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	b := &bundle{DB: pgtest.New(t), t: t, client: c}
	id := b.run(`{}`)
	// What is loaded cannot be seen without loading it: the first partition is asked for until the fifth second, the others are unloaded in the sixth.
	time.Sleep(8 * time.Second)
	b.start(workers.AccountingOptions{})
	b.eventually("the first workflow task", 20*time.Second, func() bool { return len(b.memo(id)) > 0 })
}
