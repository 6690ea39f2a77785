package main

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/handlers"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/tasks"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

// start runs Daybook's worker, logged in as worker_service_user, and its workflow.
func (b *bundle) start(s *servers) {
	b.t.Helper()
	server := temporaltest.Shared(b.t)
	temporal := server.Client(b.t, server.Namespace(b.t))
	registry := tasks.NewRegistry()
	channels, err := handlers.RegisterTasks(registry, handlers.Config{Environment: s.environment()})
	require.NoError(b.t, err)
	require.Equal(b.t, []string{"email", "file_delete", "sms"}, channels.Types)
	worker, err := workers.NewTasks(workers.TasksOptions{
		Client: temporal, Pool: b.worker, Registry: registry,
		Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(b.t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	b.t.Cleanup(func() {
		stop()
		assert.NoError(b.t, <-ended)
		worker.Close()
		assert.NoError(b.t, channels.Close())
	})
	_, err = temporal.ExecuteWorkflow(b.t.Context(),
		client.StartWorkflowOptions{ID: "task-queue-worker", TaskQueue: workflows.TasksTaskQueue}, workflows.TasksWorkflow,
		workflows.Input{})
	require.NoError(b.t, err)
}

// await waits until a process ends.
func (b *bundle) await(until func() bool) {
	b.t.Helper()
	deadline, tick := time.After(2*time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !until() {
		select {
		case <-deadline:
			b.t.Fatal("the process does not end: ", b.text(`SELECT jsonb_agg(to_jsonb(o))::text FROM queues.open_tasks o`),
				b.text(`SELECT jsonb_agg(to_jsonb(e))::text FROM queues.error e`))
		case <-tick.C:
		}
	}
}

// requireRecord: each task is completed, and has a lease on record. It may have two: what a turn
// has not begun when it ends is given back, and handed out again.
func (b *bundle) requireRecord() {
	b.t.Helper()
	assert.Zero(b.t, b.count(`SELECT count(*) FROM queues.task_completed c WHERE NOT EXISTS (SELECT FROM queues.task_lease l WHERE l.task_id = c.task_id AND l.renews IS NULL)`))
	assert.Zero(b.t, b.count(`SELECT count(*) FROM queues.task t WHERE NOT EXISTS (SELECT FROM queues.task_completed c WHERE c.task_id = t.task_id)`))
}

// Messages are sent by a real mail server and a provider over HTTP, after each has refused one.
func TestMessagesByTheWorker(t *testing.T) {
	t.Parallel()
	b, s := setup(t), serve(t)
	s.busyMail, s.busyTexts = 1, 1
	for _, m := range messages {
		b.exec(m.insert)
		require.Empty(t, m.kickoff(b, 1))
	}
	b.start(s)
	b.await(b.ended)
	for _, m := range messages {
		assert.Equal(t, "2 attempts, 1 failed, 1 succeeded", m.facts(b), m.channel)
		assert.Contains(t, b.text(fmt.Sprintf(`SELECT error_message FROM comms.send_%s_attempt_failed`, m.channel)),
			"UPSTREAM_5XX")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Len(t, s.mails, 1)
	assert.Contains(t, s.mails[0], "ada@example.com\n")
	assert.Contains(t, s.mails[0], "Subject: Welcome")
	assert.Contains(t, s.mails[0], "Hello Ada")
	assert.Equal(t, []string{"+4915112345678 Hello Ada"}, s.texts)
	b.requireRecord()
}

// The checklist's happy path: objects are deleted in a directory, and by a signed address.
func TestHappyPathByTheWorker(t *testing.T) {
	t.Parallel()
	b, s := setup(t), serve(t)
	a, other := b.account(3), b.account(1)
	for i := range 2 {
		s.put(object(a.id, i))
	}
	s.put(object(other.id, 0))
	b.exec(`UPDATE files.file SET bucket = 'signed' WHERE file_id = $1`, a.files[2])
	s.objects = []string{object(a.id, 2), "another"}
	b.start(s)
	require.Empty(t, b.deletion(a.id))
	assert.Contains(t, b.flags(a.id), "deleted", "with the request, before any worker")
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM accounts.account_deletion_task WHERE account_id = $1`, a.id))
	b.await(b.ended)
	b.requireHappyPath(a)
	assert.False(t, s.has(object(a.id, 0)) || s.has(object(a.id, 1)))
	assert.True(t, s.has(object(other.id, 0)))
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.Equal(t, []string{"another"}, s.objects)
	b.requireRecord()
}

// The checklist's second path: storage that does not know the bucket.
func TestFileDeletionStuckByTheWorker(t *testing.T) {
	t.Parallel()
	b, s := setup(t), serve(t)
	a := b.account(2)
	s.put(object(a.id, 1))
	b.exec(`UPDATE files.file SET bucket = 'unknown' WHERE file_id = $1`, a.files[0])
	b.start(s)
	require.Empty(t, b.deletion(a.id))
	b.await(b.ended)
	b.requireFilesStuck(a)
	assert.Equal(t, "false", b.text(`SELECT files.is_file_deletion_stuck($1)::text`, a.files[1]))
	assert.False(t, s.has(object(a.id, 1)))
	assert.Contains(t, b.text(`SELECT min(error_message) FROM files.file_deletion_task_failed`), "NOT_FOUND")
	b.requireRecord()
}

// The checklist's third path: the account cannot be made anonymous.
func TestAnonymizationStuckByTheWorker(t *testing.T) {
	t.Parallel()
	b, s := setup(t), serve(t)
	a := b.account(1)
	b.breakAnonymization()
	b.start(s)
	require.Empty(t, b.deletion(a.id))
	b.await(b.ended)
	b.requireAnonymizationStuck(a)
	assert.Equal(t, 3, b.count(`SELECT count(*) FROM queues.failed_tasks WHERE last_error LIKE '%perform_account_anonymization: not today'`), "each attempt is on record")
	b.requireRecord()
}
