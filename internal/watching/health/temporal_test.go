package health_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

// stack is a database and a namespace of Temporal.
type stack struct {
	*bundle
	client client.Client
}

func withTemporal(t *testing.T) *stack {
	t.Helper()
	server := temporaltest.Shared(t)
	return &stack{setup(t), server.Client(t, server.Namespace(t))}
}

// check looks at the database and at Temporal.
func (s *stack) check() health.Report {
	s.t.Helper()
	return clean(s.t, health.Check(s.t.Context(),
		health.Options{Pool: s.Pool, Temporal: s.client, Timeout: 2 * time.Second}))
}

// await checks until a report satisfies.
func (s *stack) await(satisfies func(health.Report) bool) health.Report {
	s.t.Helper()
	var r health.Report
	require.Eventually(s.t, func() bool {
		r = s.check()
		return satisfies(r)
	}, time.Minute, 10*time.Millisecond, "%+v", r)
	return r
}

type mail struct{}

func (mail) JobType() string { return "mail" }

// work runs a worker of jobs until the function that it returns is called.
func (s *stack) work() (stop func()) {
	s.t.Helper()
	return s.workAs(s.Pool)
}

// workAs is work with a pool of the worker's own.
func (s *stack) workAs(pool *pgxpool.Pool) (stop func()) {
	s.t.Helper()
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(context.Context, *jobs.Job[mail]) error { return nil })
	w, err := workers.NewJobs(workers.JobsOptions{Client: s.client, Pool: pool, Registry: registry, Name: "w1"})
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(s.t, <-ended)
		w.Close()
	})
	s.t.Cleanup(stop)
	return stop
}

// start starts the workflow of jobs as the documentation does.
func (s *stack) start() {
	s.t.Helper()
	_, err := s.client.ExecuteWorkflow(s.t.Context(),
		client.StartWorkflowOptions{ID: "job-queue-worker-production", TaskQueue: workflows.JobsTaskQueue},
		workflows.JobsWorkflow, workflows.Input{})
	require.NoError(s.t, err)
}

// ofJobs returns the finding about jobs with a code; its Code is empty when there is none.
func ofJobs(r health.Report, code health.Code) health.Finding {
	for _, f := range of(r, code) {
		if slices.Contains(f.AboutKinds(), "jobs") {
			return f
		}
	}
	return health.Finding{}
}

// A workflow that is paused beside another one that is not stops nothing. When both are paused,
// nothing is worked.
func TestOneOfTwoWorkflowsIsPaused(t *testing.T) {
	t.Parallel()
	s := withTemporal(t)
	s.exec(`INSERT INTO daybook.jobs (id, org_id, type, payload) VALUES ('j', 'acme', 'other', '{}')`)
	s.start()
	_, err := s.client.ExecuteWorkflow(t.Context(),
		client.StartWorkflowOptions{ID: "second", TaskQueue: workflows.JobsTaskQueue}, workflows.JobsWorkflow,
		workflows.Input{})
	require.NoError(t, err)
	s.work()
	pause := func(id string) {
		require.NoError(t, s.client.SignalWorkflow(t.Context(), id, "", models.SignalPause, nil))
	}
	pause("job-queue-worker-production")
	r := s.await(func(r health.Report) bool { return ofJobs(r, health.WorkflowPaused).Severity == health.Warning })
	assert.True(t, r.Working, r.Summary)
	assert.Contains(t, ofJobs(r, health.WorkflowPaused).Says, "second runs too and is not paused")
	pause("second")
	r = s.await(func(r health.Report) bool { return ofJobs(r, health.WorkflowPaused).Severity == health.Critical })
	assert.False(t, r.Working)
}

// TestWhetherWorkIsDone goes through what keeps jobs from being worked, one after another, and what
// says so.
func TestWhetherWorkIsDone(t *testing.T) {
	t.Parallel()
	s := withTemporal(t)
	r := s.check()
	assert.True(t, r.Working, "nothing is there to be worked: %s", r.Summary)
	assert.Equal(t, health.Info, r.Worst())

	s.exec(`INSERT INTO daybook.jobs (id, org_id, type, payload) VALUES ('j', 'acme', 'mail', '{}')`)
	r = s.check()
	assert.False(t, r.Working)
	assert.Equal(t, health.Critical, ofJobs(r, health.WorkflowNotStarted).Severity)
	assert.Equal(t, health.Critical, ofJobs(r, health.NoWorker).Severity)
	assert.Equal(t, "Nothing is worked: the workflow of jobs (job-queue-worker-production) was never started. Start "+
		"it: `daybook workflow start --kind jobs`.", r.Summary)

	s.start()
	r = s.check()
	assert.Empty(t, ofJobs(r, health.WorkflowNotStarted).Code)
	assert.Equal(t, health.Warning, ofJobs(r, health.NoWorker).Severity, "a worker may be about to poll")
	assert.Regexp(t, "^Nothing is worked: no worker polls job-queue yet: the workflow was started .* ago. Start "+
		"`daybook worker`, unless one is starting: it polls within seconds.$", r.Summary)
	assert.False(t, r.Working)
	later := health.Check(t.Context(),
		health.Options{
			Temporal: s.client, Timeout: 2 * time.Second,
			Now: func() time.Time { return time.Now().Add(20 * time.Second) },
		})
	assert.Equal(t, health.Critical, ofJobs(later, health.NoWorker).Severity,
		"without a database the time is this machine's")
	assert.Equal(t, "No worker polls accounting-queue, job-queue and task-queue.", ofJobs(later, health.NoWorker).Says)

	stop := s.work()
	r = s.await(func(r health.Report) bool {
		return r.Worst() == health.Info && r.Summary == "Work gets done: 1 completed in the last minute, nothing waits."
	})
	assert.True(t, r.Working)

	require.NoError(t, s.client.SignalWorkflow(t.Context(), "job-queue-worker-production", "", models.SignalPause, nil))
	r = s.await(func(r health.Report) bool {
		// Until their turn ends, lanes work what comes.
		status := r.Workflows[1].Status // nil: the run did not answer in time
		return ofJobs(r, health.WorkflowPaused).Code != "" && status != nil && status.Lanes == 0
	})
	// So does the activity that waits for work, until a heartbeat tells it of its cancellation.
	require.Eventually(t, func() bool {
		d, err := s.client.DescribeWorkflow(t.Context(), "job-queue-worker-production", "")
		return err == nil && len(d.RawResponse.GetPendingActivities()) == 0
	}, time.Minute, 10*time.Millisecond)
	assert.Equal(t, 1, r.Workflows[1].Live(time.Now().Add(time.Hour)), "a worker has answered: the clock is wrong")
	assert.Equal(t, health.Warning, ofJobs(r, health.WorkflowPaused).Severity, "nothing waits")
	s.exec(`INSERT INTO daybook.jobs (id, org_id, type, payload) VALUES ('k', 'acme', 'mail', '{}')`)
	r = s.check()
	assert.Equal(t, health.Critical, ofJobs(r, health.WorkflowPaused).Severity)
	assert.Contains(t, r.Summary, "Nothing is worked: the workflow of jobs has been paused for ")
	assert.Contains(t, r.Summary, "`daybook workflow resume --kind jobs`")

	stop()
	// For as long as another worker may take to reclaim its jobs, one that completed jobs a moment
	// ago counts as busy.
	s.await(func(r health.Report) bool { return ofJobs(r, health.NoWorker).Severity == health.Critical })
	ahead := health.Check(t.Context(),
		health.Options{Pool: s.Pool, Temporal: s.client, Now: func() time.Time { return time.Now().Add(time.Hour) }})
	assert.Contains(t, ofJobs(ahead, health.NoWorker).Says, "No worker answers",
		"its last poll is a moment ago, whatever this machine's clock says")
	r = s.check()
	assert.NotNil(t, ofJobs(r, health.WorkflowPaused).Since, "the pause is known though no worker answers")
	assert.Equal(t, health.Critical, ofJobs(r, health.NoWorker).Severity,
		"its last poll is a moment ago, but no worker answers")
	assert.Contains(t, ofJobs(r, health.NoWorker).Says, "w1")

	require.NoError(t, s.client.TerminateWorkflow(t.Context(), "job-queue-worker-production", "", "test"))
	r = s.await(func(r health.Report) bool { return ofJobs(r, health.WorkflowEnded).Code != "" })
	assert.Contains(t, ofJobs(r, health.WorkflowEnded).Says, "was terminated")
	assert.NotNil(t, ofJobs(r, health.WorkflowEnded).Since)
}

// A worker that cannot log in any more still answers for its workflow. Its heartbeats say what it
// waits for.
func TestWorkerThatTheDatabaseRefuses(t *testing.T) {
	t.Parallel()
	s := withTemporal(t)
	role := s.Name + "_worker"
	require.NoError(t, migrations.Roles(t.Context(), s.URL))
	s.exec(`CREATE ROLE ` + role + ` LOGIN IN ROLE daybook_worker`)
	s.t.Cleanup(func() {
		_, err := s.Pool.Exec(context.WithoutCancel(t.Context()), `DROP ROLE `+role)
		assert.NoError(t, err)
	})
	defer s.workAs(s.As(t, role))()
	s.start()
	s.exec(`INSERT INTO daybook.jobs (id, org_id, type, payload) VALUES ('j', 'acme', 'mail', '{}')`)
	s.await(func(r health.Report) bool { return r.Working && r.Worst() == health.Info })

	s.exec(`ALTER ROLE ` + role + ` PASSWORD 'another'`)
	// Until it is refused: a session that was being begun with the old password is not yet among those
	// that can be ended.
	s.await(func(r health.Report) bool {
		s.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1`, role)
		return strings.Contains(ofJobs(r, health.TurnsFailing).Says, "password authentication failed")
	})
	s.exec(`INSERT INTO daybook.jobs (id, org_id, type, payload) VALUES ('k', 'acme', 'mail', '{}')`)
	r := s.await(func(r health.Report) bool { return ofJobs(r, health.TurnsFailing).Severity == health.Critical })
	assert.Contains(t, r.Summary,
		"Nothing is worked: the worker's turns of jobs wait for the database: password authentication failed for user \""+
			role+"\" (SQLSTATE 28P01)")
	assert.False(t, r.Working)

	s.exec(`ALTER ROLE ` + role + ` PASSWORD 'for-a-test'`)
	s.await(func(r health.Report) bool { return r.Working && r.Worst() == health.Info })
}

// TestFullDisk: a worker whose statements the server refuses for want of room says so by its
// heartbeats, and goes on when there is some.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := withTemporal(t)
	defer s.work()()
	s.start()
	s.exec(`INSERT INTO daybook.jobs (id, org_id, type, payload) VALUES ('j', 'acme', 'mail', '{}')`)
	s.await(func(r health.Report) bool { return r.Working && r.Worst() == health.Info })

	s.exec(`CREATE FUNCTION public.full_disk() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE 'could not extend file "base/5/16403": No space left on device' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER full_disk BEFORE UPDATE ON daybook.jobs FOR EACH STATEMENT EXECUTE FUNCTION public.full_disk();
INSERT INTO daybook.jobs (id, org_id, type, payload) VALUES ('k', 'acme', 'mail', '{}')`)
	r := s.await(func(r health.Report) bool { return ofJobs(r, health.TurnsFailing).Code != "" })
	f := ofJobs(r, health.TurnsFailing)
	assert.Equal(t, health.Critical, f.Severity)
	assert.Contains(t, f.Says, "The worker's turns of jobs wait for the database, which has no room on its disk: could "+
		"not extend file \"base/5/16403\": No space left on device (SQLSTATE 53100)")
	assert.NotContains(t, f.Says, store.DiskAdvice)
	assert.Equal(t, store.DiskAdvice, f.Todo)

	s.exec(`DROP TRIGGER full_disk ON daybook.jobs`)
	s.await(func(r health.Report) bool { return r.Working && r.Worst() == health.Info })
}

// TestTurnsFailing: an activity that fails again and again is named, with its failure.
func TestTurnsFailing(t *testing.T) {
	t.Parallel()
	s := withTemporal(t)
	w := worker.New(s.client, workflows.JobsTaskQueue, worker.Options{})
	w.RegisterActivityWithOptions(func(context.Context) error { return errors.New("no room on the device") },
		activity.RegisterOptions{Name: "ProcessLeasedJobs"})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, _ workflows.Input) error {
		err := workflow.SetQueryHandler(ctx, models.QueryStatus,
			func() (models.RunStatus, error) { return models.RunStatus{}, nil })
		if err != nil {
			return err
		}
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Minute,
			RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Millisecond, BackoffCoefficient: 1},
		})
		return workflow.ExecuteActivity(ctx, "ProcessLeasedJobs").Get(ctx, nil)
	}, workflow.RegisterOptions{Name: workflows.JobsWorkflow})
	require.NoError(t, w.Start())
	defer w.Stop()
	s.exec(`INSERT INTO daybook.jobs (id, org_id, type, payload) VALUES ('j', 'acme', 'mail', '{}')`)
	s.start()
	r := s.await(func(r health.Report) bool { return ofJobs(r, health.TurnsFailing).Code != "" })
	assert.Contains(t, ofJobs(r, health.TurnsFailing).Says, "no room on the device")
	assert.Contains(t, r.Summary, "Nothing is worked: the turns of jobs fail")
}

func TestTemporalUnavailable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	away, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1"})
	require.NoError(t, err)
	defer away.Close()
	b.exec(`INSERT INTO daybook.organizations (id, paused_at) VALUES ('acme', now()); INSERT INTO daybook.jobs (id, org_id, type, payload) VALUES ('j', 'acme', 'mail', '{}')`)
	r := health.Check(t.Context(),
		health.Options{Pool: b.Pool, Temporal: away, TemporalAddress: "127.0.0.1:1", Timeout: time.Second})
	assert.Contains(t, one(t, r, health.TemporalUnavailable).Says, "Temporal at 127.0.0.1:1 does not answer")
	assert.Contains(t, r.Summary, "Nothing is worked: Temporal at")
	one(t, r, health.OrganizationPaused)

	server := temporaltest.Shared(t)
	unknown, err := client.NewLazyClient(client.Options{HostPort: server.Address, Namespace: "not-made"})
	require.NoError(t, err)
	defer unknown.Close()
	r = health.Check(t.Context(),
		health.Options{Pool: b.Pool, Temporal: unknown, Namespace: "not-made", Timeout: 5 * time.Second})
	assert.Contains(t, one(t, r, health.TemporalUnavailable).Todo, "temporal operator namespace create")
}

// Without a database the report still has what Temporal says.
func TestTemporalIsAskedWithoutADatabase(t *testing.T) {
	t.Parallel()
	server := temporaltest.Shared(t)
	r := health.Check(t.Context(),
		health.Options{
			PoolError: errors.New("no database is named"), Temporal: server.Client(t, server.Namespace(t)),
			Timeout: 5 * time.Second,
		})
	one(t, r, health.DatabaseUnavailable)
	assert.Equal(t, []string{"accounting", "jobs", "tasks"}, one(t, r, health.WorkflowNotStarted).Kinds)
	assert.Len(t, r.Workflows, 3)
	assert.Contains(t, r.Summary, "no database is named")
}
