package workers_test

import (
	"testing"
	"time"

	"github.com/daybook-dev/daybook/workers"
)

// TestTasksOfAnUnloadedTaskQueue starts a workflow while no worker runs, and then a worker when
// Temporal has unloaded all partitions of the task queue but the first, which the others have asked
// for its settings for a while: with the default settings that is so for five minutes, from five
// minutes after the start on. The workflow's first task waits in one of 64 partitions.
func TestTasksOfAnUnloadedTaskQueue(t *testing.T) {
	t.Parallel()
	b := setupTemporal(t, `matching.maxTaskQueueIdleTime="6s"`, `matching.getUserDataLongPollTimeout="5s"`,
		"matching.numTaskqueueReadPartitions=64", "matching.numTaskqueueWritePartitions=64")
	id := b.run(`{}`)
	// What is loaded cannot be seen without loading it: the first partition is asked for until the
	// fifth second, the others are unloaded in the sixth.
	time.Sleep(8 * time.Second)
	b.start(workers.AccountingOptions{})
	b.eventually("the first workflow task", 20*time.Second, func() bool { return len(b.memo(id)) > 0 })
}
