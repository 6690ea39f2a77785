package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// recorder is a sink that keeps what it is told.
type recorder struct {
	mu     sync.Mutex
	events []events.Event
	turns  []events.Turn
	causes []events.Cause
	lanes  [][2]int
}

func (r *recorder) Observe(batch []events.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, batch...)
}

func (r *recorder) ObserveTurn(t events.Turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns = append(r.turns, t)
}

func (r *recorder) ObserveWakeup(_ string, c events.Cause) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.causes = append(r.causes, c)
}

func (r *recorder) ObserveLanes(_ string, active, idle int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lanes = append(r.lanes, [2]int{active, idle})
}

// of returns the events of a name.
func (r *recorder) of(name events.Name) []events.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.events), func(e events.Event) bool { return e.Name != name })
}

// ways are the ends of attempts that the jobs of these tests have, by the number of the job.
var ways = []models.Outcome{
	models.OutcomeCompleted, models.OutcomeRetried, models.OutcomeRescheduled,
	models.OutcomeFailed, models.OutcomeCancelled,
}

func wayOf(name string) models.Outcome {
	var n int
	_, _ = fmt.Sscanf(name, "doc-%d", &n)
	return ways[n%len(ways)]
}

var errNoLuck = errors.New("no luck")

// jobWay is what a handler of jobs returns.
func jobWay(name string) error {
	switch wayOf(name) {
	case models.OutcomeRetried:
		return errNoLuck
	case models.OutcomeRescheduled:
		return jobs.Snooze(time.Hour)
	case models.OutcomeFailed:
		return jobs.Final(jobs.WithCode("NO_LUCK", errNoLuck))
	case models.OutcomeCancelled:
		return jobs.Cancel("not needed")
	default:
		return nil
	}
}

// documentWay is what a processor returns.
func documentWay(name string) error {
	switch wayOf(name) {
	case models.OutcomeRetried:
		return errNoLuck
	case models.OutcomeRescheduled:
		return models.Errorf(models.CodeDocumentNotReady, "not yet")
	case models.OutcomeFailed:
		return models.Errorf(models.CodeDocumentUnknown, "unknown")
	case models.OutcomeCancelled:
		return models.Errorf(models.CodeDocumentDeleted, "deleted")
	default:
		return nil
	}
}

// taskWays works tasks of the type named.
type taskWays struct {
	namedTasks
	before func()
}

func (taskWays) Handling(taskType string) (engine.Handling, bool) {
	h, ok := namedTasks{}.Handling(taskType)
	h.Owner = "growth"
	return h, ok
}

func (w taskWays) Work(_ context.Context, j store.Job, _ *engine.Running) engine.Attempt {
	w.before()
	var n named
	_ = json.Unmarshal(j.Payload, &n)
	a := engine.Attempt{Outcome: models.OutcomeCompleted}
	switch wayOf(n.Name) {
	case models.OutcomeRescheduled:
		a = engine.Attempt{
			Outcome: models.OutcomeRescheduled, Code: models.CodeDatabaseError, Message: "away",
			Delay: time.Hour,
		}
	case models.OutcomeRetried, models.OutcomeFailed, models.OutcomeCancelled:
		a = w.Failed(j, errNoLuck)
	case models.OutcomeCompleted, models.OutcomeLost:
	}
	return a
}

// observed are kinds of queue and of handlers with an owner, whose handlers call before first and
// end their jobs in every way.
var observed = map[string]struct {
	enqueue func(b *bundle, n int)
	engine  func(b *bundle, before func(), o engine.Options) *engine.Engine
	log     string
}{
	"documents": {
		func(b *bundle, n int) { fixture.ManyReady(b.t, b.Pool, org, "doc-", n) },
		observedDocuments, attemptsLog,
	},
	"documents in one transaction": {
		func(b *bundle, n int) { fixture.ManyReady(b.t, b.Pool, org, "doc-", n) },
		func(b *bundle, before func(), o engine.Options) *engine.Engine {
			o.Direct = true
			return observedDocuments(b, before, o)
		}, attemptsLog,
	},
	"jobs in bulk": {enqueueNamed, func(b *bundle, before func(), o engine.Options) *engine.Engine {
		r := jobs.NewRegistry()
		jobs.RegisterBulk(r, jobs.Policy{Owner: "growth"},
			func(_ context.Context, _ pgx.Tx, all []*jobs.Job[named]) ([]error, error) {
				before()
				errs := make([]error, len(all))
				for i, j := range all {
					errs[i] = jobWay(j.Payload.Name)
				}
				return errs, nil
			})
		return engine.NewJobs(store.NewQueue(b.Pool, store.Jobs), r, o)
	}, attemptsLog},
	"single jobs": {enqueueNamed, func(b *bundle, before func(), o engine.Options) *engine.Engine {
		return observedJobs(b, o, func(j *jobs.Job[named]) error {
			before()
			return jobWay(j.Payload.Name)
		})
	}, attemptsLog},
	"jobs with a transaction": {enqueueNamed, func(b *bundle, before func(), o engine.Options) *engine.Engine {
		return observedJobs(b, o, func(j *jobs.Job[named]) error {
			before()
			j.InTx(func(context.Context, pgx.Tx) error { return jobWay(j.Payload.Name) })
			return nil
		})
	}, attemptsLog},
	"tasks": {enqueueNamedTasks, func(b *bundle, before func(), o engine.Options) *engine.Engine {
		return startTasksOf(b, b.Pool, taskWays{before: before}, o, "named")
	}, observedTasks},
}

func observedDocuments(b *bundle, before func(), o engine.Options) *engine.Engine {
	o.Owner = "growth"
	return engine.New(store.New(b.Pool),
		failing{commit: func(_ context.Context, _ pgx.Tx, all []engine.Job) ([]error, error) {
			before()
			errs := make([]error, len(all))
			for i, j := range all {
				errs[i] = documentWay(j.DocumentID)
			}
			return errs, nil
		}}, o)
}

func observedJobs(b *bundle, o engine.Options, f func(j *jobs.Job[named]) error) *engine.Engine {
	r := jobs.NewRegistry()
	jobs.Register(r, jobs.Policy{Owner: "growth"}, func(_ context.Context, j *jobs.Job[named]) error { return f(j) })
	return engine.NewJobs(store.NewQueue(b.Pool, store.Jobs), r, o)
}

const (
	// attemptsLog is the log of attempts as events say it.
	attemptsLog = `
SELECT concat_ws(' ', kind, org_id, type, document_id, job_id, attempt, outcome, error_code, worker, turn_id)
  FROM daybook.attempts, generate_series(1, times)`
	// observedTasks are the ends of tasks, which have no log of attempts: their facts say less.
	observedTasks = `
SELECT concat_ws(' ', 'tasks', t.task_type, t.task_id, CASE WHEN EXISTS (SELECT FROM queues.error e WHERE e.task_id = t.task_id) THEN 'failed' ELSE 'completed' END)
  FROM queues.task t JOIN queues.task_completed USING (task_id)`
)

// everyObserved runs a test for each of them, on a database of its own with n jobs.
func everyObserved(t *testing.T, n int,
	test func(b *bundle, r *recorder, start func(before func(), o engine.Options) *engine.Engine, log string),
) {
	t.Parallel()
	for name, k := range observed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			k.enqueue(b, n)
			r := &recorder{}
			test(b, r, func(before func(), o engine.Options) *engine.Engine {
				o.Log, o.Events = slog.New(slog.DiscardHandler), r
				e := k.engine(b, before, o)
				t.Cleanup(e.Close)
				return e
			}, k.log)
		})
	}
}

// agree compares what was told of ended attempts with the log.
func (b *bundle) agree(r *recorder, log string) {
	b.t.Helper()
	rows, err := b.Pool.Query(b.t.Context(), log)
	require.NoError(b.t, err)
	want, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(b.t, err)
	told := []string{}
	for _, e := range r.events {
		text := ""
		switch {
		case log == observedTasks && (e.Name == events.Completed || e.Name == events.Failed):
			text = fmt.Sprint("tasks ", e.Type, " ", e.JobID, " ", e.Name)
		case log == observedTasks || e.Unlogged:
			continue
		default:
			for _, word := range []string{
				e.Kind, e.OrgID, e.Type, e.DocumentID, e.JobID, fmt.Sprint(e.Attempt), outcomeOf(e),
				e.Code, e.Worker, e.Turn,
			} {
				if word != "" {
					text += " " + word
				}
			}
			text = text[1:]
		}
		told = append(told, text)
	}
	slices.Sort(want)
	slices.Sort(told)
	assert.Equal(b.t, want, told)
}

// outcomeOf is the outcome of an event as the log has it.
func outcomeOf(e events.Event) string {
	if e.Name == events.Reclaimed {
		return string(models.OutcomeLost)
	}
	return string(e.Name)
}

// TestEveryEndIsTold has jobs of every kind end in every way.
func TestEveryEndIsTold(t *testing.T) {
	everyObserved(t, 150, func(b *bundle, r *recorder, start func(func(), engine.Options) *engine.Engine, log string) {
		e := start(func() {}, engine.Options{})
		report, err := e.Process(b.t.Context(), request(1))
		require.NoError(b.t, err)
		e.Close()
		assert.Equal(b.t, 30, report.Completed)
		b.agree(r, log)
		for name, n := range map[events.Name]int{
			events.Completed: report.Completed, events.Retried: report.Retried, events.Rescheduled: report.Rescheduled,
			events.Failed: report.Failed, events.Cancelled: report.Cancelled, events.GivenBack: report.Released,
		} {
			assert.Len(b.t, r.of(name), n, name)
		}
		for _, e := range r.events {
			assert.Equal(b.t, "growth", e.Owner)
			assert.Equal(b.t, e.Name != events.Rescheduled && e.Name.Ends(), e.Counted, e.Name)
			if e.Name.Ends() {
				assert.Positive(b.t, e.Took)
				assert.GreaterOrEqual(b.t, e.Waited, e.Took, "it waited until it ended")
			}
		}
		require.NotEmpty(b.t, r.turns)
		assert.Equal(b.t, 150, r.turns[0].Jobs)
		assert.Equal(b.t, 30, r.turns[0].Completed)
		assert.Equal(b.t, 50, r.turns[0].Batch)
		assert.Equal(b.t, [2]int{1, 0}, r.lanes[0])
		assert.Equal(b.t, [2]int{0, 0}, r.lanes[len(r.lanes)-1])
	})
}

// TestWhatIsLostIsTold has a worker die in its first call: its successor is told of, and what it
// does is agreed with the log.
func TestWhatIsLostIsTold(t *testing.T) {
	everyObserved(t, 20, func(b *bundle, r *recorder, start func(func(), engine.Options) *engine.Engine, log string) {
		met, revive := make(chan struct{}, 100), make(chan struct{})
		dead := start(func() { met <- struct{}{}; <-revive }, engine.Options{RenewEvery: time.Hour, Direct: false})
		died := b.processing(dead, request(1))
		<-met
		b.exec(`SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'`)
		q := request(1)
		q.Crashed, q.Turn.Worker = true, "successor"
		report, err := start(func() {}, engine.Options{}).Process(b.t.Context(), q)
		require.NoError(b.t, err)
		close(revive)
		<-died
		dead.Close()
		b.agree(r, log)
		lost := r.of(events.Reclaimed)
		assert.Len(b.t, lost, report.Lost)
		for _, e := range lost {
			assert.Equal(b.t, "test", e.Worker, "the one that died")
			assert.True(b.t, e.Counted)
			assert.Equal(b.t, 1, e.Attempt)
			assert.NotEmpty(b.t, e.Code)
		}
		anew := slices.DeleteFunc(r.of(events.Leased),
			func(e events.Event) bool { return e.Worker != "successor" || e.Attempt != 2 })
		assert.Len(b.t, anew, len(lost), "each is leased anew")
	})
}

// TestWhatIsGivenBackIsTold stops a turn whose handlers do not end by themselves.
func TestWhatIsGivenBackIsTold(t *testing.T) {
	everyObserved(t, 20, func(b *bundle, r *recorder, start func(func(), engine.Options) *engine.Engine, log string) {
		_, err := start(func() {}, engine.Options{}).Lease(b.t.Context(), turn(1), 20, nil)
		require.NoError(b.t, err)
		leased := len(r.of(events.Leased))
		assert.Equal(b.t, 20, leased)
		n, err := start(func() {}, engine.Options{}).ReleaseTurn(b.t.Context(), turn(1))
		require.NoError(b.t, err)
		back := r.of(events.GivenBack)
		assert.Len(b.t, back, n)
		assert.Equal(b.t, 20, n)
		for _, e := range back {
			assert.False(b.t, e.Counted)
			assert.Equal(b.t, "growth", e.Owner)
			assert.Equal(b.t, 1, e.Attempt)
		}
		b.agree(r, log)
	})
}

// TestRequestsToCancelAreTold cancels a job while it is worked.
func TestRequestsToCancelAreTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	enqueueNamed(b, 2)
	r := &recorder{}
	e := observedJobs(b, engine.Options{Log: slog.New(slog.DiscardHandler), Events: r}, func(j *jobs.Job[named]) error {
		if j.Payload.Name == "doc-1" {
			_, err := queue.CancelJob(t.Context(), b.Pool, j.ID)
			return err
		}
		return nil
	})
	t.Cleanup(e.Close)
	_, err := e.Process(t.Context(), request(1))
	require.NoError(t, err)
	assert.Len(t, r.of(events.Cancelled), 1)
	assert.Len(t, r.of(events.Completed), 1)
	b.agree(r, attemptsLog)
}

// TestWaitingLanesTellWhatWokeThem has a lane wait for work that comes.
func TestWaitingLanesTellWhatWokeThem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := &recorder{}
	start := func() *engine.Engine {
		return observedJobs(b, engine.Options{Log: slog.New(slog.DiscardHandler), Events: r},
			func(*jobs.Job[named]) error { return nil })
	}
	e := start()
	t.Cleanup(e.Close)
	report, err := e.Process(t.Context(), engine.TurnRequest{Turn: turn(1), Batch: 10, Wait: 50 * time.Millisecond})
	require.NoError(t, err)
	assert.Zero(t, report.Leased)
	assert.Contains(t, r.causes, events.Poll)
	assert.Equal(t, [][2]int{{1, 0}, {0, 1}, {1, 0}, {0, 0}}, r.lanes)
	e.Close()

	// What comes before the fetch has read the queue for the first time wakes nothing. Each try has
	// an engine of its own: what a fetch has begun goes on for a second, and would take the next
	// try's job.
	require.Eventually(t, func() bool {
		e := start()
		defer e.Close()
		got := b.waiting(e)
		enqueueNamed(b, 1)
		assert.Equal(t, 1, b.worked(got).Leased)
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.Contains(r.causes, events.Notification)
	}, 5*time.Minute, time.Millisecond)
}
