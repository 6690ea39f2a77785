package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/activities"
	"github.com/daybook-dev/daybook/admin/schedules"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

// scheduled is a bundle with a Temporal namespace, and a worker that executes firings.
type scheduled struct {
	*bundle
	namespace string
	client    client.Client
}

// unscheduled is what the worker has a handler for: it has to have one, and leaves what the
// schedules enqueue to be looked at.
type unscheduled struct{}

func (unscheduled) JobType() string { return "unscheduled" }

func setupSchedules(t *testing.T) *scheduled {
	t.Helper()
	return setupFleetSchedules(t, "")
}

// setupFleetSchedules is setupSchedules with a worker of a fleet, and no other.
func setupFleetSchedules(t *testing.T, fleet string) *scheduled {
	t.Helper()
	server := temporaltest.Shared(t)
	s := &scheduled{bundle: setup(t), namespace: server.Namespace(t)}
	inNamespace(t, server, s.namespace)
	s.client = server.Client(t, s.namespace)
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(context.Context, *jobs.Job[unscheduled]) error { return nil })
	w, err := workers.NewJobs(workers.JobsOptions{
		Client: s.client, Pool: s.Pool, Registry: registry, Fleet: fleet,
		Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
		w.Close()
	})
	return s
}

// eventually polls until the condition holds.
func (s *scheduled) eventually(what string, condition func() bool) {
	s.t.Helper()
	require.Eventually(s.t, condition, 30*time.Second, 20*time.Millisecond, what)
}

func (s *scheduled) jobs() []queuetest.Job[queue.RawPayload] {
	s.t.Helper()
	return queuetest.EnqueuedJobs[queue.RawPayload](s.t, s.Pool)
}

func (s *scheduled) list(args ...string) []schedules.Listed {
	s.t.Helper()
	var l struct{ Schedules []schedules.Listed }
	s.json(&l, append([]string{"schedules", "list"}, args...)...)
	return l.Schedules
}

// firings returns the ids of the workflows that a schedule has started, oldest first.
func (s *scheduled) firings(id string) []client.ScheduleWorkflowExecution {
	s.t.Helper()
	d, err := s.client.ScheduleClient().GetHandle(s.t.Context(), id).Describe(s.t.Context())
	require.NoError(s.t, err)
	var all []client.ScheduleWorkflowExecution
	for _, a := range d.Info.RecentActions {
		all = append(all, *a.StartWorkflowResult)
	}
	return all
}

// result waits for a firing.
func (s *scheduled) result(workflowID, runID string) activities.EnqueueScheduledOutput {
	s.t.Helper()
	var out activities.EnqueueScheduledOutput
	require.NoError(s.t, s.client.GetWorkflow(s.t.Context(), workflowID, runID).Get(s.t.Context(), &out))
	return out
}

// TestScheduleFires has a schedule fire each second, and one of its firings executed twice.
func TestScheduleFires(t *testing.T) {
	s := setupSchedules(t)
	unknown := func() []string {
		orgs, err := store.UnknownOrganizations(t.Context(), s.Pool, []string{"acme"})
		require.NoError(t, err)
		return orgs
	}
	require.NotEmpty(t, unknown())
	s.ok("schedules", "create", "--create", "beat", "--org", "acme", "--type", "webhook", "--payload",
		`{"url": "https://example.com"}`, "--every", "1s",
		"--overlap", "allow", "--priority", "high", "--max-attempts", "2")
	s.eventually("it has fired", func() bool { return len(s.jobs()) >= 3 })
	s.ok("schedules", "pause", "beat", "--note", "enough")
	assert.Empty(t, unknown(), "the first job has made the organization known, as every first job does")

	keys := map[string]bool{}
	for _, j := range s.jobs() {
		assert.Equal(t, "acme", j.OrgID)
		assert.Equal(t, "webhook", j.Type)
		assert.JSONEq(t, `{"url": "https://example.com"}`, string(j.Payload.Data))
		assert.Equal(t, queue.High, j.Priority)
		assert.Equal(t, 2, j.MaxAttempts)
		assert.Regexp(t, `^schedule/beat/20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$`, j.IdempotencyKey)
		assert.False(t, keys[j.IdempotencyKey])
		keys[j.IdempotencyKey] = true
	}
	s.eventually("the list says so",
		func() bool { l := s.list(); return len(l) == 1 && l[0].Paused && l[0].LastFired != nil })
	l := s.list()[0]
	assert.Equal(t, "beat", l.ID)
	assert.Equal(t, "acme", l.OrgID)
	assert.Equal(t, "webhook", l.Type)
	assert.Equal(t, "every 1s", l.When)
	assert.Equal(t, "enough", l.Note)
	assert.JSONEq(t, `{"url": "https://example.com"}`, string(l.Payload))
	assert.Empty(t, s.list("--org", "other"))
	assert.Contains(t, s.ok("schedules", "list"), "paused")

	// A firing that is reset executes its activity once more.
	fired := s.firings("beat")[0]
	first := s.result(fired.WorkflowID, fired.FirstExecutionRunID)
	assert.False(t, first.Duplicate)
	before := len(s.jobs())
	again, err := s.client.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: s.namespace, Reason: "test", RequestId: "again", WorkflowTaskFinishEventId: 4,
		WorkflowExecution: &common.WorkflowExecution{WorkflowId: fired.WorkflowID, RunId: fired.FirstExecutionRunID},
	})
	require.NoError(t, err)
	assert.Equal(t, activities.EnqueueScheduledOutput{JobID: first.JobID, Duplicate: true, Result: queue.Unchanged},
		s.result(fired.WorkflowID, again.GetRunId()))
	assert.Len(t, s.jobs(), before)
}

// TestScheduleOfAFleet: the workers of a fleet execute the firings, which enqueue in a queue of the
// fleet.
func TestScheduleOfAFleet(t *testing.T) {
	s := setupFleetSchedules(t, "shop")
	s.ok("queues", "create", "orders", "--fleet", "shop")
	assert.NotZero(t, s.run("schedules", "create", "--create", "beat", "--org", "acme", "--type", "webhook", "--every",
		"1h", "--fleet", "shop").exit, "the fleet works no job that is in no queue")
	s.ok("schedules", "create", "--create", "beat", "--org", "acme", "--type", "webhook", "--payload",
		`{"url": "https://example.com"}`, "--every", "1h", "--queue", "orders", "--fleet", "shop")
	s.trigger("beat")
	var queued int
	require.NoError(t, s.Pool.QueryRow(t.Context(),
		`SELECT count(*) FROM daybook.jobs WHERE queue = 'orders' AND fleet = daybook.queue_fleet('orders')`).Scan(&queued))
	assert.Equal(t, 1, queued)
	s.eventually("Temporal lists it", func() bool { return len(s.list()) == 1 })
	assert.Equal(t, "orders", s.list()[0].Queue)
	assert.Equal(t, "shop", s.list()[0].Fleet)
}

// trigger fires a schedule, in a second in which it has not fired before, and returns what came of
// it.
func (s *scheduled) trigger(id string) activities.EnqueueScheduledOutput {
	s.t.Helper()
	known := len(s.firings(id))
	s.eventually("a new second begins", func() bool { return time.Now().Nanosecond() < int(200*time.Millisecond) })
	s.ok("schedules", "trigger", id)
	s.eventually("it fires", func() bool { return len(s.firings(id)) > known })
	all := s.firings(id)
	last := all[len(all)-1]
	s.eventually("the second is over", func() bool { return time.Now().Nanosecond() > int(300*time.Millisecond) })
	return s.result(last.WorkflowID, last.FirstExecutionRunID)
}

// TestScheduleSkipsWhileAJobIsOpen is the default.
func TestScheduleSkipsWhileAJobIsOpen(t *testing.T) {
	s := setupSchedules(t)
	s.ok("schedules", "create", "--create", "nightly", "--org", "acme", "--type", "webhook", "--payload",
		`{"url": "https://example.com"}`,
		"--cron", "30 3 * * *", "--cron", "0 12 1 * *", "--time-zone", "Europe/Berlin", "--paused")
	first := s.trigger("nightly")
	assert.False(t, first.Duplicate)
	assert.Equal(t, activities.EnqueueScheduledOutput{JobID: first.JobID, Duplicate: true, Result: queue.Skipped},
		s.trigger("nightly"))
	s.eventually("the list says so", func() bool { return strings.Contains(s.ok("schedules", "list"), "skipped") })
	_, err := queue.CancelJob(t.Context(), s.Pool, first.JobID)
	require.NoError(t, err)
	assert.False(t, s.trigger("nightly").Duplicate)
	assert.Len(t, s.jobs(), 2)

	s.ok("schedules", "resume", "nightly")
	s.eventually("the list says so",
		func() bool { l := s.list(); return len(l) == 1 && !l[0].Paused && l[0].NextFiring != nil })
	l := s.list()[0]
	assert.Equal(t, "30 3 * * *, 0 12 1 * *", l.When)
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	next := l.NextFiring.In(berlin).Format("15:04")
	assert.Contains(t, []string{"03:30", "12:00"}, next)
	assert.Contains(t, s.ok("schedules", "list"), "  "+l.NextFiring.In(berlin).Format("2006-01-02 15:04:05")+"\n",
		"as the clocks there show it")

	s.ok("schedules", "delete", "nightly")
	s.eventually("it is gone", func() bool { return len(s.list()) == 0 })
	assert.Len(t, s.jobs(), 2, "its jobs stay")
}

// TestScheduleIsReplaced changes a schedule in place: what its jobs are and when it fires, not
// whether it is paused.
func TestScheduleIsReplaced(t *testing.T) {
	s := setupSchedules(t)
	create := func(args ...string) string {
		return s.ok(append([]string{"schedules", "create", "--create", "nightly", "--org", "acme", "--type", "webhook"},
			args...)...)
	}
	created := create("--payload", `{"url": "https://example.com/1"}`, "--cron", "30 3 * * *", "--time-zone",
		"Europe/Berlin", "--note", "old", "--replace")
	assert.Regexp(t, `^created nightly\nfires \(30 3 \* \* \*, Europe/Berlin\):\n(  [A-Z][a-z]{2} 20\d\d-\d\d-\d\d 03:30:00\n){3}$`, created)
	s.ok("schedules", "pause", "nightly")
	again := s.run("schedules", "pause", "nightly")
	assert.Equal(t, failure.ExitOK, again.exit)
	assert.Contains(t, again.err, "Nothing was changed: the schedule nightly is paused already.")
	assert.Empty(t, again.out)
	s.ok("schedules", "resume", "nightly")
	assert.Contains(t, s.run("schedules", "--json", "resume", "nightly").out, `"unchanged"`)
	s.eventually("it is listed", func() bool { return len(s.list()) == 1 })
	assert.Equal(t, "old", s.list()[0].Note, "it keeps its note")
	s.ok("schedules", "pause", "nightly", "--note", "enough")
	s.eventually("it is listed", func() bool { return len(s.list()) == 1 })
	before := s.list()[0]
	assert.Equal(t, []string{"30 3 * * *", "Europe/Berlin", "skip", "enough"},
		[]string{before.When, before.TimeZone, string(before.Overlap), before.Note})

	assert.Contains(t, create("--payload", `{"url": "https://example.com/2"}`, "--every", "2h", "--offset", "5m",
		"--overlap", "allow", "--replace"), "replaced nightly")
	after := s.list()[0]
	assert.JSONEq(t, `{"url": "https://example.com/2"}`, string(after.Payload))
	assert.Equal(t, []string{"every 2h + 5m", "UTC", "allow", "enough"},
		[]string{after.When, after.TimeZone, string(after.Overlap), after.Note})
	assert.True(t, after.Paused, "it stays paused")
	s.trigger("nightly")
	require.Len(t, s.jobs(), 1)
	assert.JSONEq(t, `{"url": "https://example.com/2"}`, string(s.jobs()[0].Payload.Data))

	create("--cron", "@hourly", "--paused=false", "--note", "new", "--replace", "--payload",
		`{"url": "https://example.com/2"}`)
	last := s.list()[0]
	assert.Equal(t, []string{"@hourly", "new"}, []string{last.When, last.Note})
	assert.False(t, last.Paused)
	require.NotNil(t, last.NextFiring)
	assert.Zero(t, last.NextFiring.Minute())
	assert.NotNil(t, last.LastFired, "what it did before stays known")
	r := s.run("schedules", "--json", "create", "nightly", "--every", "1h", "--org", "acme", "--type", "webhook",
		"--payload", `{"url": "https://example.com/3"}`)
	assert.Equal(t, failure.ExitConflict, r.exit)
	assert.JSONEq(t, string(last.Payload), string(s.list()[0].Payload), "without --replace nothing changes")
}

// TestFiringWithoutASchedule starts the workflow by hand, twice under one id.
func TestFiringWithoutASchedule(t *testing.T) {
	s := setupSchedules(t)
	job := activities.ScheduledJob{
		ScheduleID: "by-hand", OrgID: "acme", Type: "webhook",
		Payload: []byte(`{"url": "https://example.com"}`),
	}
	for n := range 2 {
		run, err := s.client.ExecuteWorkflow(t.Context(),
			client.StartWorkflowOptions{ID: "one", TaskQueue: workflows.JobsTaskQueue},
			workflows.ScheduledJobWorkflow, job)
		require.NoError(t, err)
		assert.Equal(t, n > 0, s.result("one", run.GetRunID()).Duplicate)
	}
	assert.Equal(t, 1, fixture.Count(t, s.Pool,
		`SELECT count(*) FROM daybook.jobs WHERE idempotency_key = 'schedule/by-hand/one'`))

	// What can never be enqueued ends the firing.
	job.Type = "not a type"
	run, err := s.client.ExecuteWorkflow(t.Context(),
		client.StartWorkflowOptions{ID: "wrong", TaskQueue: workflows.JobsTaskQueue},
		workflows.ScheduledJobWorkflow, job)
	require.NoError(t, err)
	assert.ErrorContains(t, run.Get(t.Context(), nil), "type: INVALID,")
}

func TestScheduleIsChecked(t *testing.T) {
	s := setupSchedules(t)
	_, err := s.client.ScheduleClient().Create(t.Context(), client.ScheduleOptions{
		ID: "foreign", Spec: client.ScheduleSpec{CronExpressions: []string{"@yearly"}},
		Action: &client.ScheduleWorkflowAction{ID: "foreign", Workflow: "other", TaskQueue: "other"},
	})
	require.NoError(t, err)
	valid := []string{"--org", "acme", "--type", "webhook", "--payload", `{"url": "https://example.com"}`}
	s.ok(append([]string{"schedules", "create", "--create", "there", "--cron", "@yearly"}, valid...)...)

	for name, test := range map[string]struct {
		args []string
		exit int
		code string
		says string
	}{
		"bad cron": {
			append([]string{"create", "a", "--cron", "61 * * * *"}, valid...), failure.ExitUsage,
			"INVALID_SCHEDULE", "61",
		},
		"no cron": {
			append([]string{"create", "a", "--cron", "never"}, valid...), failure.ExitUsage,
			"INVALID_SCHEDULE", "never",
		},
		"zone in the cron": {
			append([]string{"create", "a", "--cron", "CRON_TZ=UTC 0 0 * * *"}, valid...),
			failure.ExitUsage, "INVALID_SCHEDULE", "--time-zone",
		},
		"unknown zone": {
			append([]string{"create", "a", "--cron", "@daily", "--time-zone", "Mars/Olympus"}, valid...),
			failure.ExitUsage, "INVALID_SCHEDULE", "Mars/Olympus",
		},
		"no interval": {
			append([]string{"create", "a", "--cron", "@every 1h"}, valid...), failure.ExitUsage,
			"INVALID_SCHEDULE", "--every",
		},
		"fleet alone": {
			append([]string{"create", "a", "--every", "1h", "--fleet", "shop"}, valid...),
			failure.ExitUsage, "USAGE", "--queue",
		},
		"many attempts": {
			append([]string{"create", "a", "--every", "1h", "--max-attempts", "2000"}, valid...),
			failure.ExitUsage, "USAGE", "--max-attempts",
		},
		"too often": {
			append([]string{"create", "a", "--every", "10ms"}, valid...), failure.ExitUsage, "USAGE",
			"a second",
		},
		"when?": {append([]string{"create", "a"}, valid...), failure.ExitUsage, "USAGE", "cron"},
		"both": {
			append([]string{"create", "a", "--every", "1h", "--cron", "@daily"}, valid...),
			failure.ExitUsage, "USAGE", "cron",
		},
		"long offset": {
			append([]string{"create", "a", "--every", "1h", "--offset", "1h"}, valid...),
			failure.ExitUsage, "USAGE", "--offset",
		},
		"overlap": {
			append([]string{"create", "a", "--every", "1h", "--overlap", "maybe"}, valid...),
			failure.ExitUsage, "USAGE", "skip, again or allow",
		},
		"catch-up": {
			append([]string{"create", "a", "--every", "1h", "--catch-up", "1s"}, valid...),
			failure.ExitUsage, "USAGE", "10s",
		},
		"jitter": {
			append([]string{"create", "a", "--every", "1h", "--jitter", "-1s"}, valid...),
			failure.ExitUsage, "USAGE", "--jitter",
		},
		"id": {
			append([]string{"create", "a b", "--every", "1h"}, valid...), failure.ExitUsage, "USAGE",
			"ID",
		},
		"priority": {
			append([]string{"create", "a", "--every", "1h", "--priority", "9"}, valid...),
			failure.ExitUsage, "USAGE", "--priority",
		},
		"there is one": {
			append([]string{"create", "there", "--every", "1h"}, valid...), failure.ExitConflict,
			"SCHEDULE_EXISTS", "--replace changes it",
		},
		"not ours": {
			append([]string{"create", "foreign", "--every", "1h", "--replace"}, valid...),
			failure.ExitConflict, "SCHEDULE_EXISTS", "none of Daybook's",
		},
		"never": {
			append([]string{"create", "a", "--cron", "30 3 31 2 *"}, valid...), failure.ExitUsage,
			"INVALID_SCHEDULE", "never fire",
		},
		"never, paused": {
			append([]string{"create", "a", "--cron", "0 0 0 1 1 * 2020", "--paused"}, valid...),
			failure.ExitUsage, "INVALID_SCHEDULE", "never fire",
		},
		"replaced by none": {append([]string{"create", "there", "--cron", "30 3 31 2 *", "--replace", "--note", "x"},
			valid...), failure.ExitUsage, "INVALID_SCHEDULE", "never fire"},
		"six fields": {
			append([]string{"create", "a", "--cron", "0 0 3 * * *"}, valid...), failure.ExitUsage,
			"INVALID_SCHEDULE", "seconds first",
		},
		"a zone of --every": {
			append([]string{"create", "a", "--every", "24h", "--time-zone", "Europe/Berlin"}, valid...),
			failure.ExitUsage, "USAGE", "--time-zone",
		},
		"cut to a second": {
			append([]string{"create", "a", "--every", "1500ms"}, valid...), failure.ExitUsage, "USAGE",
			"whole seconds",
		},
		"replaced wrongly": {
			append([]string{"create", "there", "--cron", "61 * * * *", "--replace"}, valid...),
			failure.ExitUsage, "INVALID_SCHEDULE", "61",
		},
		"built-in payload": {
			[]string{
				"create", "a", "--every", "1h", "--org", "acme", "--type", "webhook_delivery", "--payload",
				`{"uri": 1}`,
			},
			failure.ExitUsage, "PAYLOAD_INVALID", "uri",
		},
		"no object": {
			[]string{"create", "a", "--every", "1h", "--org", "acme", "--type", "own", "--payload", `[]`},
			failure.ExitUsage, "PAYLOAD_INVALID", "object",
		},
		"large": {
			[]string{
				"create", "a", "--every", "1h", "--org", "acme", "--type", "own", "--payload",
				fmt.Sprintf(`{"x": %q}`, strings.Repeat("x", 140_000)),
			},
			failure.ExitUsage, "PAYLOAD_TOO_LARGE", "",
		},
		"type": {
			[]string{"create", "a", "--every", "1h", "--org", "acme", "--type", "not a type"},
			failure.ExitUsage, "INVALID", "type",
		},
		"nothing there": {[]string{"trigger", "unknown"}, failure.ExitNotFound, "SCHEDULE_NOT_FOUND", "unknown"},
		"not there":     {[]string{"pause", "unknown"}, failure.ExitNotFound, "SCHEDULE_NOT_FOUND", "schedules list"},
		"another program's": {
			[]string{"delete", "foreign"},
			failure.ExitNotFound, "SCHEDULE_NOT_FOUND",
			"none of Daybook's",
		},
	} {
		r := s.run(append([]string{"schedules", "--json"}, test.args...)...)
		assert.Equal(t, test.exit, r.exit, "%s: %s", name, r.err)
		assert.Contains(t, r.err, `"`+test.code+`"`, name)
		assert.Contains(t, r.err, test.says, name)
	}
	s.eventually("only one was created",
		func() bool { l := s.list(); return len(l) == 1 && l[0].ID == "there" && l[0].When == "@yearly" })
	l := s.list()[0]
	assert.Empty(t, l.Note, "what could not be replaced is what it was")
	assert.NotNil(t, l.NextFiring)

	r := s.run("schedules", "create", "--create", "own", "--every", "1h", "--org", "acme", "--type", "own")
	assert.Zero(t, r.exit, r.err)
	assert.Contains(t, r.err, "HANDLER_MISSING")
}

// TestAnyoneInTheNamespaceEnqueues: who may start workflows in the namespace enqueues what a schedule
// may, in any organization, as docs/security.md says.
func TestAnyoneInTheNamespaceEnqueues(t *testing.T) {
	s := setupSchedules(t)
	for _, kind := range []string{"db_function", "cleanup", "webhook"} {
		run, err := s.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: workflows.JobsTaskQueue},
			workflows.ScheduledJobWorkflow, activities.ScheduledJob{OrgID: "acme", Type: kind, Payload: []byte(`{"secret": "default"}`)})
		require.NoError(t, err)
		var out activities.EnqueueScheduledOutput
		require.NoError(t, run.Get(t.Context(), &out))
		assert.Equal(t, queue.Enqueued, out.Result)
	}
	assert.Equal(t, 3, fixture.Count(t, s.Pool, `SELECT count(*) FROM daybook.jobs WHERE org_id = 'acme'`))
}
