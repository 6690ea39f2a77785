package health_test

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

// busy is a client of a Temporal that answers none of the first questions about a workflow in time.
type busy struct {
	client.Client
	late atomic.Int32
}

func (c *busy) DescribeWorkflow(ctx context.Context, id,
	run string,
) (*client.WorkflowExecutionDescription, error) {
	if c.late.Add(-1) >= 0 {
		return nil, serviceerror.NewDeadlineExceeded("context deadline exceeded")
	}
	return c.Client.DescribeWorkflow(ctx, id, run)
}

func (s *stack) checkBusy(late int32) health.Report {
	c := &busy{Client: s.client}
	c.late.Store(late)
	return health.Check(s.t.Context(),
		health.Options{Pool: s.Pool, Temporal: c, TemporalAddress: "t:1", Timeout: time.Second})
}

// completeOne notes that a job was completed just now.
func (b *bundle) completeOne() {
	b.t.Helper()
	b.exec(`
INSERT INTO daybook.jobs (org_id, type, payload, state, run_count, finished_at, completed_turn_id, completed_fence, completed_by, completed_started_at)
VALUES ('acme', 'mail', '{}', 'completed', 1, now(), 't', 1, '', now())`)
}

// A Temporal that is busy is told from one that is unavailable: by another question, which it has
// more time for, and by what was completed a moment ago.
func TestTemporalAnswersSlowly(t *testing.T) {
	t.Parallel()
	s := withTemporal(t)
	s.exec(`INSERT INTO daybook.jobs (org_id, type, payload) VALUES ('acme', 'mail', '{}')`)
	const never, once = 1000, 1
	r := s.checkBusy(never)
	assert.Contains(t, one(t, r, health.TemporalUnavailable).Says, "Temporal at t:1 did not answer within ")
	assert.False(t, r.Working)

	r = s.checkBusy(once)
	assert.Empty(t, of(r, health.TemporalUnavailable))
	assert.Equal(t, health.Info, one(t, r, health.AnswersSlowly).Severity)
	assert.NotEmpty(t, of(r, health.WorkflowNotStarted), "what it answered is looked at")

	s.completeOne()
	r = s.checkBusy(never)
	f := one(t, r, health.AnswersSlowly)
	assert.Equal(t, health.Warning, f.Severity)
	assert.Contains(t, f.Says, "Temporal at t:1 answers slowly")
	assert.True(t, r.Working, r.Summary)
	assert.NotContains(t, r.Summary, "Nothing is worked")
}

// One that is gone is named at once, also when jobs were completed a moment ago: no connection to it
// comes about.
func TestTemporalThatIsGone(t *testing.T) {
	t.Parallel()
	s := setup(t)
	server := temporaltest.Shared(t)
	line, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	cut, end := context.WithCancel(t.Context())
	var lines sync.WaitGroup
	lines.Go(func() {
		for {
			conn, err := line.Accept()
			if err != nil {
				return
			}
			behind, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Address)
			if !assert.NoError(t, err) {
				return
			}
			context.AfterFunc(cut, func() { _, _ = conn.Close(), behind.Close() })
			lines.Go(func() { _, _ = io.Copy(behind, conn) })
			lines.Go(func() { _, _ = io.Copy(conn, behind) })
		}
	})
	c, err := client.Dial(client.Options{HostPort: line.Addr().String(), Namespace: server.Namespace(t)})
	require.NoError(t, err)
	defer c.Close()
	s.exec(`INSERT INTO daybook.jobs (org_id, type, payload) VALUES ('acme', 'mail', '{}')`)
	s.completeOne()
	check := func() health.Report {
		return health.Check(t.Context(), health.Options{Pool: s.Pool, Temporal: c, TemporalAddress: "t:1", Timeout: 2 * time.Second})
	}
	assert.Empty(t, of(check(), health.TemporalUnavailable))
	require.NoError(t, line.Close())
	end()
	lines.Wait()
	r := check()
	assert.Contains(t, one(t, r, health.TemporalUnavailable).Says, "Temporal at t:1 does not answer: ")
	assert.Empty(t, of(r, health.AnswersSlowly))
}

// One worker that has stopped is one finding, though all kinds wait, its leases expire, and a queue
// is not worked.
func TestOneStoppedWorkerIsOneFinding(t *testing.T) {
	t.Parallel()
	server := temporaltest.Shared(t)
	namespace := server.Namespace(t)
	s := &stack{setup(t), server.Client(t, namespace)}
	s.exec(`
SELECT daybook.set_queue('bank'), queues.enqueue('fax', '{}', now() - interval '5 minutes');
INSERT INTO daybook.accounting_work_queue (version_hint, org_id, document_id, ready_at) VALUES (1, 'acme', 'd', now() - interval '2 minutes');
INSERT INTO daybook.jobs (org_id, type, payload, queue, ready_at) VALUES ('acme', 'mail', '{}', NULL, now() - interval '3 minutes'), ('acme', 'call', '{}', 'bank', now() - interval '2 minutes');
INSERT INTO daybook.jobs (org_id, type, payload, state, run_count, turn_id, fence, leased_generation, attempt_started_at, last_attempted_at, worker)
VALUES ('acme', 'mail', '{}', 'leased', 1, 't', 1, 0, now(), now() - interval '5 minutes', 'w7')`)
	critical := func(o health.Options) []health.Finding {
		o.Pool = s.Pool
		r := clean(t, health.Check(t.Context(), o))
		assert.False(t, r.Working, r.Summary)
		var bad []health.Finding
		for _, f := range r.Findings {
			if f.Severity != health.Info {
				bad = append(bad, f)
			}
		}
		return bad
	}
	// A workflow of each kind runs, and no worker.
	for _, w := range health.Documented() {
		_, err := s.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: w.ID, TaskQueue: w.TaskQueue},
			w.Type)
		assert.NoError(t, err)
	}
	bad := critical(health.Options{Temporal: s.client, Timeout: 2 * time.Second})
	if assert.Len(t, bad, 1, "%+v", bad) {
		assert.Equal(t, []string{"accounting", "jobs", "tasks"}, bad[0].Kinds)
		assert.Equal(t, health.NoWorker, bad[0].Code)
		assert.Contains(t, bad[0].Says, "No worker polls accounting-queue, job-queue and task-queue")
		assert.Contains(t, bad[0].Says, "Waiting: 1 document, 2 jobs and 1 task, the oldest for 5 min")
		assert.Contains(t, bad[0].Says, "At work when their worker ended: 1 job; the next worker reclaims them.")
	}
	// A worker of all kinds took what there was, and was killed.
	polling, kill := context.WithTimeout(t.Context(), time.Minute)
	defer kill()
	var killed sync.WaitGroup
	for _, w := range health.Documented() {
		killed.Go(func() {
			for polling.Err() == nil {
				_, _ = s.client.WorkflowService().PollWorkflowTaskQueue(polling, &workflowservice.PollWorkflowTaskQueueRequest{
					Namespace: namespace, TaskQueue: &taskqueue.TaskQueue{Name: w.TaskQueue}, Identity: "w7",
				})
			}
		})
	}
	require.Eventually(t, func() bool {
		states, err := health.Workflows(t.Context(), s.client, health.Documented(), time.Second)
		return err == nil && !slices.ContainsFunc(states, func(s health.WorkflowState) bool { return len(s.Workers) == 0 })
	}, time.Minute, 10*time.Millisecond)
	kill()
	killed.Wait()
	bad = critical(health.Options{Temporal: s.client, Timeout: 2 * time.Second})
	if assert.Len(t, bad, 1, "%+v", bad) {
		assert.Equal(t, []string{"accounting", "jobs", "tasks"}, bad[0].Kinds)
		assert.Contains(t, bad[0].Says, "No worker answers for accounting, jobs and tasks, though w7 polled "+
			"accounting-queue, job-queue and task-queue ")
		assert.Contains(t, bad[0].Says, "Waiting: 1 document, 2 jobs and 1 task, the oldest for 5 min")
	}
	// Without Temporal's word, the expired lease tells of jobs; the other kinds have no such word.
	bad = critical(health.Options{})
	for _, f := range bad {
		if f.Kind == "jobs" {
			assert.Equal(t, health.StaleLeases, f.Code)
			assert.Contains(t, f.Says, "Waiting: 2 jobs, the oldest for 3 min")
		}
	}
	assert.Len(t, bad, 3)
}
