package queue_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// request is one way to ask.
type request func(context.Context, queue.Querier) (queue.Response, error)

func enqueue(version int64) request {
	return enqueueJob(queue.AccountingJob{OrgID: org, DocumentID: doc, Version: version})
}

func enqueueJob(j queue.AccountingJob) request {
	return func(ctx context.Context, q queue.Querier) (queue.Response, error) {
		return queue.EnqueueAccountingJob(ctx, q, j)
	}
}

func enqueueAt(version int64, in time.Duration) request {
	return func(ctx context.Context, q queue.Querier) (queue.Response, error) {
		return queue.EnqueueAccountingJob(ctx, q,
			queue.AccountingJob{OrgID: org, DocumentID: doc, Version: version, ReadyAt: time.Now().Add(in)})
	}
}

func markPending(delay time.Duration) request { return markPendingVersion(0, delay) }

func markPendingVersion(version int64, delay time.Duration) request {
	return func(ctx context.Context, q queue.Querier) (queue.Response, error) {
		return queue.MarkAccountingJobPending(ctx, q,
			queue.PendingAccountingJob{OrgID: org, DocumentID: doc, Version: version, Delay: delay})
	}
}

func cancel(ctx context.Context, q queue.Querier) (queue.Response, error) {
	return queue.CancelAccountingJob(ctx, q, queue.Document{OrgID: org, ID: doc})
}

// due is what a request makes of ready_at.
type due int

const (
	dueKept due = iota
	dueNow
	// dueLater is in ten minutes.
	dueLater
	// dueHour is in an hour: what a pending job has before the request.
	dueHour
	// dueAny is of no interest: the job has ended.
	dueAny
)

const later = 10 * time.Minute

// cell is one cell of the request table in docs/states.md. Before the request the job is at version
// 5 after one counted attempt (two when it is leased, completed or failed), with an error unless it
// is completed, and with one look that found the document not ready.
type cell struct {
	name string
	from models.JobState
	ask  request

	result queue.Result
	err    error
	state  models.JobState
	// version, attempts and errors are what the job has afterwards.
	version  int64
	attempts int
	errors   bool
	due      due
	// moved says that the generation grew: a running attempt does not finish the job.
	moved bool
}

func cells() []cell {
	const (
		pending, leased, completed, failed, cancelled = models.JobPending, models.JobLeased, models.JobCompleted,
			models.JobFailed, models.JobCancelled
	)
	return []cell{
		{
			name: "absent/enqueue", from: absent, ask: enqueue(6), result: queue.Enqueued, state: pending, version: 6,
			due: dueNow,
		},
		{
			name: "absent/enqueue version 0", from: absent, ask: enqueue(0), result: queue.Enqueued, state: pending,
			due: dueNow,
		},
		{
			name: "absent/enqueue later", from: absent, ask: enqueueAt(6, later), result: queue.Enqueued, state: pending,
			version: 6, due: dueLater,
		},
		{
			name: "absent/enqueue in the past", from: absent, ask: enqueueAt(6, -later), result: queue.Enqueued,
			state: pending, version: 6, due: dueNow,
		},
		{name: "absent/mark pending", from: absent, ask: markPending(0), err: queue.ErrJobNotFound},
		{name: "absent/cancel", from: absent, ask: cancel, err: queue.ErrJobNotFound},

		{
			name: "pending/newer", from: pending, ask: enqueue(6), result: queue.Coalesced, state: pending, version: 6,
			due: dueNow, moved: true,
		},
		{
			name: "pending/newer, due earlier", from: pending, ask: enqueueAt(6, later), result: queue.Coalesced,
			state: pending, version: 6, due: dueLater, moved: true,
		},
		{
			name: "pending/newer, due later", from: pending, ask: enqueueAt(6, 24*time.Hour), result: queue.Coalesced,
			state: pending, version: 6, due: dueHour, moved: true,
		},
		{
			name: "pending/same", from: pending, ask: enqueue(5), result: queue.Unchanged, state: pending, version: 5,
			attempts: 1, errors: true,
		},
		{
			name: "pending/older", from: pending, ask: enqueue(4), result: queue.Unchanged, state: pending, version: 5,
			attempts: 1, errors: true,
		},
		{
			name: "pending/mark pending", from: pending, ask: markPending(0), result: queue.Rescheduled, state: pending,
			version: 5, attempts: 1, errors: true, due: dueNow, moved: true,
		},
		{
			name: "pending/mark pending later", from: pending, ask: markPending(later), result: queue.Rescheduled,
			state: pending, version: 5, attempts: 1, errors: true, due: dueLater, moved: true,
		},
		{
			name: "pending/mark pending, newer", from: pending, ask: markPendingVersion(6, 0), result: queue.Rescheduled,
			state: pending, version: 6, due: dueNow, moved: true,
		},
		{
			name: "pending/mark pending, older", from: pending, ask: markPendingVersion(4, 0), result: queue.Rescheduled,
			state: pending, version: 5, attempts: 1, errors: true, due: dueNow, moved: true,
		},
		{
			name: "pending/cancel", from: pending, ask: cancel, result: queue.Cancelled, state: cancelled, version: 5,
			attempts: 1, errors: true, moved: true,
		},

		{
			name: "leased/newer", from: leased, ask: enqueue(6), result: queue.Coalesced, state: leased, version: 6,
			attempts: 2, errors: true, due: dueNow, moved: true,
		},
		{
			name: "leased/newer, later", from: leased, ask: enqueueAt(6, later), result: queue.Coalesced, state: leased,
			version: 6, attempts: 2, errors: true, due: dueLater, moved: true,
		},
		{
			name: "leased/same", from: leased, ask: enqueue(5), result: queue.Unchanged, state: leased, version: 5,
			attempts: 2, errors: true,
		},
		{
			name: "leased/older", from: leased, ask: enqueue(4), result: queue.Unchanged, state: leased, version: 5,
			attempts: 2, errors: true,
		},
		{
			name: "leased/mark pending", from: leased, ask: markPending(0), result: queue.Coalesced, state: leased, version: 5,
			attempts: 2, errors: true, due: dueNow, moved: true,
		},
		{
			name: "leased/mark pending later", from: leased, ask: markPending(later), result: queue.Coalesced, state: leased,
			version: 5, attempts: 2, errors: true, due: dueLater, moved: true,
		},
		{
			name: "leased/cancel", from: leased, ask: cancel, result: queue.Cancelling, state: leased, version: 5, attempts: 2,
			errors: true, moved: true,
		},

		{
			name: "completed/newer", from: completed, ask: enqueue(6), result: queue.Requeued, state: pending, version: 6,
			due: dueNow, moved: true,
		},
		{
			name: "completed/newer, later", from: completed, ask: enqueueAt(6, later), result: queue.Requeued, state: pending,
			version: 6, due: dueLater, moved: true,
		},
		{
			name: "completed/same", from: completed, ask: enqueue(5), result: queue.Unchanged, state: completed, version: 5,
			attempts: 2,
		},
		{
			name: "completed/older", from: completed, ask: enqueue(4), result: queue.Unchanged, state: completed, version: 5,
			attempts: 2,
		},
		{
			name: "completed/mark pending", from: completed, ask: markPending(later), result: queue.Requeued, state: pending,
			version: 5, due: dueLater, moved: true,
		},
		{
			name: "completed/cancel", from: completed, ask: cancel, err: queue.ErrJobCompleted, state: completed, version: 5,
			attempts: 2,
		},

		{
			name: "failed/newer", from: failed, ask: enqueue(6), result: queue.Requeued, state: pending, version: 6,
			due: dueNow, moved: true,
		},
		{
			name: "failed/same", from: failed, ask: enqueue(5), result: queue.Unchanged, state: failed, version: 5,
			attempts: 2, errors: true,
		},
		{
			name: "failed/older", from: failed, ask: enqueue(4), result: queue.Unchanged, state: failed, version: 5,
			attempts: 2, errors: true,
		},
		{
			name: "failed/mark pending", from: failed, ask: markPending(0), result: queue.Requeued, state: pending, version: 5,
			due: dueNow, moved: true,
		},
		{
			name: "failed/mark pending, newer", from: failed, ask: markPendingVersion(6, 0), result: queue.Requeued,
			state: pending, version: 6, due: dueNow, moved: true,
		},
		{
			name: "failed/cancel", from: failed, ask: cancel, result: queue.Cancelled, state: cancelled, version: 5,
			attempts: 2, errors: true, moved: true,
		},

		{
			name: "cancelled/newer", from: cancelled, ask: enqueue(6), result: queue.Requeued, state: pending, version: 6,
			due: dueNow, moved: true,
		},
		{
			name: "cancelled/same", from: cancelled, ask: enqueue(5), result: queue.Requeued, state: pending, version: 5,
			due: dueNow, moved: true,
		},
		{
			name: "cancelled/older", from: cancelled, ask: enqueue(4), result: queue.Unchanged, state: cancelled, version: 5,
			attempts: 1, errors: true,
		},
		{
			name: "cancelled/mark pending", from: cancelled, ask: markPending(0), result: queue.Requeued, state: pending,
			version: 5, due: dueNow, moved: true,
		},
		{
			name: "cancelled/cancel", from: cancelled, ask: cancel, result: queue.Unchanged, state: cancelled, version: 5,
			attempts: 1, errors: true,
		},
	}
}

func TestRequestTable(t *testing.T) {
	t.Parallel()
	dbs := shared(t)
	for _, c := range cells() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := dbs.setup(t)
			b.bring(c.from)
			var before models.AccountingJob
			if c.from != absent {
				before = b.job()
			}

			asked := b.clock()
			r, err := c.ask(t.Context(), b.Pool)
			answered := b.clock()

			require.ErrorIs(t, err, c.err)
			assert.Equal(t, c.result, r.Result, "result")
			if c.state == absent {
				assert.Zero(t, b.jobs(), "jobs")
				return
			}
			after := b.job()
			if c.err == nil {
				assert.Equal(t, after.ID, r.JobID)
			}
			if c.from != absent {
				assert.Equal(t, before.ID, after.ID, "the job is the same for all versions")
			}
			assert.Equal(t, c.state, after.State, "state")
			assert.Equal(t, c.version, after.VersionHint, "version")
			assert.Equal(t, c.attempts, after.RunCount, "run_count")
			assert.Equal(t, c.errors, after.LastError != nil && after.LastErrorCode != nil, "has an error")
			assert.Equal(t, c.moved, after.Generation > before.Generation, "the generation moved")
			assert.Equal(t, c.result == queue.Cancelling, after.CancelRequested, "cancel_requested")
			assertDue(t, c.due, before, after, asked, answered)
			if c.from != absent && c.state == models.JobPending && c.moved {
				assert.Zero(t, after.NotReadyCount, "looks that found the document not ready")
				assert.Equal(t, after.ReadyAt, after.FirstReadyAt, "first_ready_at begins anew")
			}
		})
	}
}

// The request table of docs/states.md has the first word of each cell that is tested here.
func TestDocHasTheRequestTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/states.md")
	require.NoError(t, err)
	tested := map[string]string{}
	for _, c := range cells() {
		tested[c.name] = "error"
		if c.err == nil {
			tested[c.name] = "`" + string(c.result) + "`"
		}
	}
	tested["absent/newer"], tested["absent/same"], tested["absent/older"] = tested["absent/enqueue"],
		tested["absent/enqueue"], "–"
	firstWord := regexp.MustCompile("^`[a-z]+`|^error|^–")
	columns := []string{"newer", "same", "older", "mark pending", "cancel"}
	for _, state := range []string{"absent", "pending", "leased", "completed", "failed", "cancelled"} {
		_, row, found := strings.Cut(string(page), "\n| "+state+" | ")
		require.True(t, found, "a row for %s", state)
		row, _, _ = strings.Cut(row, "\n")
		cells := strings.Split(row, "|")
		require.Len(t, cells, len(columns)+1, state)
		for i, column := range columns {
			name := state + "/" + column
			require.Contains(t, tested, name)
			assert.Equal(t, tested[name], firstWord.FindString(strings.TrimSpace(cells[i])), name)
		}
	}
}

func assertDue(t *testing.T, want due, before, after models.AccountingJob, asked, answered time.Time) {
	t.Helper()
	switch want {
	case dueKept, dueHour:
		assert.Equal(t, before.ReadyAt, after.ReadyAt, "ready_at is kept")
	case dueAny:
	case dueNow:
		assert.False(t, after.ReadyAt.Before(asked), "ready_at is at least the database's clock at the request")
		assert.False(t, after.ReadyAt.After(answered), "ready_at is now")
	case dueLater:
		// The caller's clock and the database's are the same machine's.
		assert.WithinDuration(t, asked.Add(later), after.ReadyAt, 10*time.Second)
	}
}

// A transaction may be old when it asks: its start is no measure of what is due.
func TestReadyAtIsTheClockNotTheTransactionsStart(t *testing.T) {
	t.Parallel()
	dbs := shared(t)
	for name, c := range map[string]struct {
		from models.JobState
		ask  request
	}{
		"enqueued":    {absent, enqueue(6)},
		"coalesced":   {models.JobPending, enqueue(6)},
		"leased":      {models.JobLeased, enqueue(6)},
		"requeued":    {models.JobCompleted, enqueue(6)},
		"rescheduled": {models.JobPending, markPending(0)},
		"retried":     {models.JobFailed, markPending(0)},
		"many": {absent, func(ctx context.Context, q queue.Querier) (queue.Response, error) {
			rs, err := queue.EnqueueAccountingJobs(ctx, q, []queue.AccountingJob{{OrgID: org, DocumentID: doc, Version: 6}})
			return rs[0], err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := dbs.setup(t)
			b.bring(c.from)
			tx, err := b.Pool.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
			_, err = tx.Exec(t.Context(), `SELECT now()`)
			require.NoError(t, err)
			asked := b.clock()

			_, err = c.ask(t.Context(), tx)
			require.NoError(t, err)
			require.NoError(t, tx.Commit(t.Context()))

			assert.False(t, b.job().ReadyAt.Before(asked))
		})
	}
}

func TestPriority(t *testing.T) {
	t.Parallel()
	dbs := shared(t)
	for _, c := range []struct {
		name     string
		from     models.JobState
		version  int64
		priority queue.Priority
		want     queue.Priority
	}{
		{"default is normal", absent, 5, 0, queue.Normal},
		{"absent", absent, 5, queue.Low, queue.Low},
		{"pending, same version: rises", models.JobPending, 5, queue.High, queue.High},
		{"pending, same version: never falls", models.JobPending, 5, queue.Low, queue.Normal},
		{"pending, older version: stays", models.JobPending, 4, queue.High, queue.Normal},
		{"pending, newer version: rises", models.JobPending, 6, queue.High, queue.High},
		{"pending, newer version: never falls", models.JobPending, 6, queue.Low, queue.Normal},
		{"leased, newer version: rises", models.JobLeased, 6, queue.High, queue.High},
		{"leased, newer version: never falls", models.JobLeased, 6, queue.Low, queue.Normal},
		{"leased, same version: stays", models.JobLeased, 5, queue.High, queue.Normal},
		{"completed, newer version: the request's", models.JobCompleted, 6, queue.Low, queue.Low},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := dbs.setup(t)
			b.bring(c.from)
			_, err := queue.EnqueueAccountingJob(t.Context(), b.Pool,
				queue.AccountingJob{OrgID: org, DocumentID: doc, Version: c.version, Priority: c.priority})
			require.NoError(t, err)
			assert.Equal(t, c.want, b.job().Priority)
		})
	}
}
