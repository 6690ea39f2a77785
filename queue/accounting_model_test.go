package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// machine is one document's job beside a model of it: the request table as a program.
type machine struct {
	*bundle
	state    models.JobState
	version  int64
	attempts int
	priority queue.Priority
	// later says that the job is due in an hour.
	later bool
	// again says that the leased job was asked for once more; cancelling, that it was cancelled.
	again, cancelling bool
	// open says that something was asked for that no attempt has begun after.
	open bool

	turn  store.Turn
	lease store.Job
	// before is the turn that the lease was reclaimed from.
	before *store.Turn
}

// TestRequestsAgainstAModel runs requests and a worker's statements in any order.
func TestRequestsAgainstAModel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rapid.Check(t, func(rt *rapid.T) {
		b.exec(`DELETE FROM daybook.accounting_work_queue`)
		m := &machine{bundle: b, state: absent}
		rt.Repeat(map[string]func(*rapid.T){
			"enqueue":     m.enqueueAny,
			"markPending": m.markPendingAny,
			"cancel":      m.cancelAny,
			"timePasses":  m.timePasses,
			"lease":       m.leaseOne,
			"end":         m.endAny,
			"release":     m.release,
			"reclaim":     m.reclaim,
			"zombie":      m.zombie,
			"":            m.check,
		})
	})
}

func (m *machine) check(t *rapid.T) {
	if m.state == absent {
		require.Zero(t, m.jobs())
		return
	}
	job := m.job()
	require.Equal(t, m.state, job.State, "state")
	require.Equal(t, m.version, job.VersionHint, "version")
	require.Equal(t, m.attempts, job.RunCount, "run_count")
	require.Equal(t, m.priority, job.Priority, "priority")
	require.Equal(t, m.cancelling, job.CancelRequested, "cancel_requested")
	if m.state == models.JobPending || (m.state == models.JobLeased && m.again && !m.cancelling) {
		require.Equal(t, m.later, job.ReadyAt.After(m.clock().Add(time.Minute)), "due in an hour")
	}
	if m.state == models.JobLeased {
		require.Equal(t, m.again || m.cancelling, job.Generation != *job.LeasedGeneration, "the generation moved")
	}
	ended := m.state == models.JobCompleted || m.state == models.JobFailed
	require.False(t, ended && m.open, "what was asked for was swallowed")
}

// ask notes that something was asked for.
func (m *machine) ask(version int64, later bool) {
	m.open = true
	m.version, m.later, m.cancelling = version, later, false
}

func (m *machine) enqueueAny(t *rapid.T) {
	j := queue.AccountingJob{
		OrgID: org, DocumentID: doc,
		Version:  rapid.Int64Range(0, 8).Draw(t, "version"),
		Priority: queue.Priority(rapid.IntRange(0, 3).Draw(t, "priority")),
	}
	later := rapid.Bool().Draw(t, "later")
	if later {
		j.ReadyAt = time.Now().Add(time.Hour)
	}
	priority := max(j.Priority, 0)
	if priority == 0 {
		priority = queue.Normal
	}
	newer := j.Version > m.version
	same := j.Version == m.version
	want := queue.Unchanged
	switch m.state {
	case absent:
		want = queue.Enqueued
		m.state, m.priority, m.attempts = models.JobPending, priority, 0
		m.ask(j.Version, later)
	case models.JobPending:
		if newer {
			want = queue.Coalesced
			m.priority, m.attempts = min(m.priority, priority), 0
			m.ask(j.Version, m.later && later)
		} else if same {
			m.priority = min(m.priority, priority)
		}
	case models.JobLeased:
		if newer || (same && m.cancelling) {
			want = queue.Coalesced
			m.priority = min(m.priority, priority)
			m.ask(j.Version, later && (m.later || m.cancelling || !m.again))
			m.again = true
		}
	case models.JobCompleted, models.JobFailed, models.JobCancelled:
		if newer || (same && m.state == models.JobCancelled) {
			want = queue.Requeued
			m.state, m.priority, m.attempts = models.JobPending, priority, 0
			m.ask(j.Version, later)
		}
	}

	var got queue.Result
	if rapid.Bool().Draw(t, "many") {
		rs, err := queue.EnqueueAccountingJobs(m.t.Context(), m.Pool, []queue.AccountingJob{j})
		require.NoError(t, err)
		got = rs[0].Result
	} else {
		r, err := queue.EnqueueAccountingJob(m.t.Context(), m.Pool, j)
		require.NoError(t, err)
		got = r.Result
	}
	require.Equal(t, want, got, "EnqueueAccountingJob")
}

func (m *machine) markPendingAny(t *rapid.T) {
	p := queue.PendingAccountingJob{OrgID: org, DocumentID: doc, Version: rapid.Int64Range(0, 8).Draw(t, "version")}
	later := rapid.Bool().Draw(t, "later")
	if later {
		p.Delay = time.Hour
	}
	r, err := queue.MarkAccountingJobPending(m.t.Context(), m.Pool, p)
	if m.state == absent {
		require.ErrorIs(t, err, queue.ErrJobNotFound)
		return
	}
	require.NoError(t, err)
	want := queue.Requeued
	switch m.state {
	case models.JobLeased:
		want = queue.Coalesced
		m.again = true
	case models.JobPending:
		want = queue.Rescheduled
		if p.Version > m.version {
			m.attempts = 0
		}
	default:
		m.attempts, m.state = 0, models.JobPending
	}
	m.ask(max(m.version, p.Version), later)
	require.Equal(t, want, r.Result, "MarkAccountingJobPending")
}

func (m *machine) cancelAny(t *rapid.T) {
	r, err := queue.CancelAccountingJob(m.t.Context(), m.Pool, queue.Document{OrgID: org, ID: doc})
	want := queue.Cancelled
	switch m.state {
	case absent:
		require.ErrorIs(t, err, queue.ErrJobNotFound)
		return
	case models.JobCompleted:
		require.ErrorIs(t, err, queue.ErrJobCompleted)
		return
	case models.JobCancelled:
		want = queue.Unchanged
	case models.JobLeased:
		want, m.cancelling, m.open = queue.Cancelling, true, false
	default:
		m.state, m.open = models.JobCancelled, false
	}
	require.NoError(t, err)
	require.Equal(t, want, r.Result, "CancelAccountingJob")
}

// timePasses makes what is due in an hour due now.
func (m *machine) timePasses(t *rapid.T) {
	if !m.later {
		t.Skip("nothing is due later")
	}
	m.exec(`UPDATE daybook.accounting_work_queue SET ready_at = clock_timestamp()`)
	m.later = false
}

func (m *machine) leaseOne(t *rapid.T) {
	turn := m.newTurn()
	leased, err := m.store.LeaseFor(m.t.Context(), turn, 5, pgtest.Unbounded())
	require.NoError(t, err)
	jobs := leased.Jobs
	if m.state != models.JobPending || m.later {
		require.Empty(t, jobs, "nothing is due")
		return
	}
	require.Len(t, jobs, 1)
	m.attempts++
	m.state, m.turn, m.lease, m.again, m.before, m.open = models.JobLeased, turn, jobs[0], false, nil, false
	require.Equal(t, m.attempts, jobs[0].Attempt)
	require.Equal(t, m.version, jobs[0].Version)
}

func (m *machine) endAny(t *rapid.T) {
	if m.state != models.JobLeased {
		t.Skip("not leased")
	}
	outcome := rapid.SampledFrom([]models.Outcome{
		models.OutcomeCompleted, models.OutcomeRetried, models.OutcomeRescheduled, models.OutcomeFailed,
		models.OutcomeCancelled,
	}).Draw(t, "outcome")
	code := map[models.Outcome]models.ErrorCode{
		models.OutcomeRetried: models.CodeDatabaseError, models.OutcomeRescheduled: models.CodeDocumentNotReady,
		models.OutcomeFailed: models.CodeUnbalanced, models.OutcomeCancelled: models.CodeDocumentDeleted,
	}[outcome]
	later := rapid.Bool().Draw(t, "later")
	var delay time.Duration
	if later {
		delay = time.Hour
	}
	m.endAttempt(m.turn, m.lease.ID, outcome, code, delay)
	switch {
	case m.cancelling:
		m.state = models.JobCancelled
	case m.again:
		m.state, m.attempts = models.JobPending, 0
	case outcome == models.OutcomeRetried:
		m.state, m.later = models.JobPending, later
	case outcome == models.OutcomeRescheduled:
		m.state, m.later = models.JobPending, later
		m.attempts--
	default:
		m.state = models.JobState(outcome)
	}
	m.again, m.cancelling = false, false
}

func (m *machine) release(t *rapid.T) {
	if m.state != models.JobLeased {
		t.Skip("not leased")
	}
	n, err := m.store.GiveBack(m.t.Context(), m.turn, nil, 0)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	switch {
	case m.cancelling:
		m.state = models.JobCancelled
		m.attempts = m.job().RunCount // of no interest: the job has ended
	case m.again:
		m.state, m.attempts = models.JobPending, 0
	default:
		m.state, m.later = models.JobPending, false
		m.attempts--
	}
	m.again, m.cancelling = false, false
}

// reclaim is what the turn's next activity does; what was asked for meanwhile is given back to the
// queue.
func (m *machine) reclaim(t *rapid.T) {
	if m.state != models.JobLeased {
		t.Skip("not leased")
	}
	successor, before := m.turn, m.turn
	var err error
	successor.Fence, err = m.store.NextFence(m.t.Context())
	require.NoError(t, err)
	taken, err := m.store.ReclaimTurns(m.t.Context(), successor, []string{m.turn.ID}, rapid.Bool().Draw(t, "crashed"))
	require.NoError(t, err)
	require.Zero(t, taken.Lost, "a row that is not worked alone is not charged")
	m.turn, m.before = successor, &before
	switch {
	case m.cancelling:
		require.Empty(t, taken.Jobs)
		m.state = models.JobCancelled
		m.attempts = m.job().RunCount // of no interest: the job has ended
	case m.again:
		require.Empty(t, taken.Jobs)
		m.state, m.attempts = models.JobPending, 0
	default:
		require.Len(t, taken.Jobs, 1)
	}
	m.again, m.cancelling = false, false
}

// zombie is a predecessor that wakes after its lease was reclaimed: it finds nothing to complete.
func (m *machine) zombie(t *rapid.T) {
	if m.state != models.JobLeased || m.before == nil {
		t.Skip("nothing was reclaimed")
	}
	fixture.Tx(m.t, m.Pool, func(ctx context.Context, tx pgx.Tx) {
		locked, err := store.Accounting.LockChunk(ctx, tx, *m.before, []string{m.lease.ID})
		require.NoError(t, err)
		require.Empty(t, locked)
	})
	err := pgx.BeginFunc(m.t.Context(), m.Pool, func(tx pgx.Tx) error {
		_, err := store.Accounting.Complete(m.t.Context(), tx, *m.before,
			[]store.Completion{{Job: m.lease, Outcome: models.OutcomeCompleted}}, store.Access{})
		return err
	})
	require.ErrorIs(t, err, store.ErrLeaseLost)
	n, err := m.store.GiveBack(m.t.Context(), *m.before, nil, 0)
	require.NoError(t, err)
	require.Zero(t, n, "released")
}
