package kindtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// org is the organization of tests for which one is enough.
const org = "org_1"

// queue is what the suite needs of a kind besides the port, on one database.
type queue interface {
	// name is the kind's.
	// open returns the Kind as a process of its own has it.
	open() engine.Kind
	// openOn is open on a pool of the size, which it returns.
	openOn(t *testing.T, conns int32) (engine.Kind, *pgxpool.Pool)
	// enqueue asks for a job that is due after a while, by a public request of the kind, in a
	// transaction or on a pool, and returns its id. The same organization and key mean the same job
	// while it is open: a job that is being worked is asked for anew by that.
	enqueue(ctx context.Context, q store.Querier, org, key string, priority models.Priority,
		in time.Duration) (id string, err error)
	// cancel asks that a job not be worked, by a public request of the kind.
	cancel(ctx context.Context, q store.Querier, id string) error
	// lacks are the notions that the kind has not, and what it has instead: the contracts that need
	// one do not apply.
	lacks() map[notion]string
	// fill makes n pending jobs that became due ten seconds ago, one after the other.
	fill(ctx context.Context, org string, priority, n int) error
	// filledID is the id of the nth of them, from 1. The ids of one organization and priority are in
	// the order of their texts.
	filledID(org string, priority, n int) string
	// due changes when a pending job is due.
	due(ctx context.Context, id string, in time.Duration) error
	// last makes the next attempt at a job the last one.
	last(ctx context.Context, id string) error
	// expire makes the leases of a turn look as if they had not been renewed for an hour.
	expire(ctx context.Context, turn string) error
	// ahead makes all leases look as if the database's clock had been set back by a day since.
	ahead(ctx context.Context) error
	// lock locks the rows of jobs as long as the transaction lasts.
	lock(ctx context.Context, tx pgx.Tx, ids ...string) error
	// job reads how a job stands.
	job(ctx context.Context, id string) (job, error)
	// count counts the jobs in a state.
	count(ctx context.Context, state models.JobState) (int, error)
	// attempts reads the log of the attempts at a job, the oldest first.
	attempts(ctx context.Context, id string) ([]attempt, error)
}

// job is how a job stands.
type job struct {
	State models.JobState
	// Attempts counts those that count.
	Attempts int
	// Due is in how many seconds it is due, and Age how many seconds ago its lease was taken or
	// renewed.
	Due, Age float64
	Turn     string
	Fence    int64
	Working  bool
	Code     models.ErrorCode
	Error    string
	// Cancelling: it is to be cancelled when its lease ends.
	Cancelling bool
}

// attempt is a row of the log.
type attempt struct {
	Attempt int
	Outcome models.Outcome
	Code    models.ErrorCode
	Error   string
	Times   int
	Turn    string
	Fence   int64
	// Folded: it began when the first of the attempts did that it stands for.
	Folded bool
}

// bundle is a queue, and one process that works it.
type bundle struct {
	queue
	*pgtest.DB
	t    *testing.T
	kind engine.Kind
}

// run holds a kind to the contract of the port.
func run(t *testing.T, newQueue func(t *testing.T, db *pgtest.DB) queue) {
	t.Helper()
	for _, group := range []struct {
		name      string
		contracts []contract
	}{
		{"order", orderContracts},
		{"cursors", cursorContracts},
		{"room", roomContracts},
		{"pick", pickContracts},
		{"lease what was picked", leasePickedContracts},
		{"leases", leaseContracts},
		{"reclaim turns", reclaimTurnsContracts},
		{"reclaim", reclaimContracts},
		{"complete", completeContracts},
		{"meanwhile", meanwhileContracts},
		{"told", toldContracts},
		{"waker", wakerContracts},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range group.contracts {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					if why := c.applies(newQueue(t, nil).lacks()); why != "" {
						t.Skip("not applicable, ", why)
					}
					db := pgtest.New(t)
					q := newQueue(t, db)
					c.check(&bundle{queue: q, DB: db, t: t, kind: q.open()})
				})
			}
		})
	}
}

// contract is one thing that the port promises.
type contract struct {
	name  string
	check func(b *bundle)
	// needs are the notions that it is about; a kind that lacks one of them does not keep it.
	needs []notion
}

// notion is what a kind may have or lack.
type notion string

const (
	// organizations: jobs have one, and these take turns, are paused and capped.
	organizations notion = "organizations"
	priorities    notion = "priorities"
	// requests: a job can be asked for anew, or cancelled, while it is being worked.
	requests notion = "requests"
	// picks: jobs may be worked in the transaction that has locked them, without a lease.
	picks notion = "picks"
	// attemptLog: the attempts at a job are logged with their outcomes.
	attemptLog notion = "attempt log"
	// watching: a lease that has expired is watched before it is ended.
	watching notion = "watching"
)

// sized returns a pool like another one, of the size.
func sized(t *testing.T, like *pgxpool.Pool, conns int32) *pgxpool.Pool {
	t.Helper()
	config := like.Config()
	config.MaxConns = conns
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// has reports whether the kind has a notion.
func (b *bundle) has(n notion) bool { return b.lacks()[n] == "" }

// applies says why a contract does not apply to the kind, "" if it does.
func (c contract) applies(lacks map[notion]string) string {
	for _, n := range c.needs {
		if why := lacks[n]; why != "" {
			return fmt.Sprintf("no %s: %s", n, why)
		}
	}
	return ""
}

// turn returns a turn with a new fence, whose jobs are begun at once.
func (b *bundle) turn(id string) store.Turn {
	b.t.Helper()
	fence, err := b.kind.NextFence(b.t.Context())
	require.NoError(b.t, err)
	return store.Turn{ID: id, Fence: fence, Worker: "test", WorkflowRunID: "run", Begins: true}
}

// resting returns a turn with a new fence, whose jobs wait to be begun.
func (b *bundle) resting(id string) store.Turn {
	b.t.Helper()
	turn := b.turn(id)
	turn.Begins = false
	return turn
}

func (b *bundle) lease(turn store.Turn, limit int) []store.Job {
	b.t.Helper()
	leased, err := b.kind.LeaseFor(b.t.Context(), turn, limit, pgtest.Unbounded())
	require.NoError(b.t, err)
	return leased.Jobs
}

// leased fills the queue with n jobs and leases them.
func (b *bundle) leased(turn store.Turn, n int) []store.Job {
	b.t.Helper()
	b.filled(org, 2, n)
	jobs := b.lease(turn, n)
	require.Len(b.t, jobs, n)
	return jobs
}

func (b *bundle) filled(org string, priority, n int) {
	b.t.Helper()
	require.NoError(b.t, b.fill(b.t.Context(), org, priority, n))
}

// one asks for a job that is due after a while.
func (b *bundle) one(org, key string, priority models.Priority, in time.Duration) string {
	b.t.Helper()
	id, err := b.enqueue(b.t.Context(), b.Pool, org, key, priority, in)
	require.NoError(b.t, err)
	return id
}

func (b *bundle) read(id string) job {
	b.t.Helper()
	j, err := b.job(b.t.Context(), id)
	require.NoError(b.t, err)
	return j
}

func (b *bundle) log(id string) []attempt {
	b.t.Helper()
	log, err := b.attempts(b.t.Context(), id)
	require.NoError(b.t, err)
	return log
}

func (b *bundle) counts(want int, state models.JobState) {
	b.t.Helper()
	n, err := b.count(b.t.Context(), state)
	require.NoError(b.t, err)
	assert.Equal(b.t, want, n, "jobs that are %s", state)
}

// pending asserts that a job is pending, due now, and has so many attempts behind it.
func (b *bundle) pending(id string, attempts int, why string) {
	b.t.Helper()
	j := b.read(id)
	assert.Equal(b.t, models.JobPending, j.State, why)
	assert.Equal(b.t, attempts, j.Attempts, "attempts, %s", why)
	assert.LessOrEqual(b.t, j.Due, 0.0, "it is due, %s", why)
	assert.Empty(b.t, j.Turn, why)
	assert.False(b.t, j.Working, why)
}

// complete ends the attempts at jobs as o says, in a transaction of its own.
func (b *bundle) complete(turn store.Turn, o store.Completion, jobs ...store.Job) (store.Completed, error) {
	b.t.Helper()
	var completed store.Completed
	completions := all(o, jobs)
	err := b.kind.InTx(b.t.Context(), func(tx pgx.Tx) (err error) {
		completed, err = b.kind.Complete(b.t.Context(), tx, turn, completions, store.Access{})
		return err
	})
	return completed, err
}

var (
	done  = store.Completion{Outcome: models.OutcomeCompleted}
	retry = store.Completion{
		Outcome: models.OutcomeRetried, Code: models.CodeTimeout, Message: "too slow",
		Delay: time.Minute,
	}
	later = store.Completion{
		Outcome: models.OutcomeRescheduled, Code: models.CodeDatabaseError, Message: "not now",
		Delay: time.Hour,
	}
	failed = store.Completion{Outcome: models.OutcomeFailed, Code: models.CodeTimeout, Message: "never"}
)

// all is one completion for each of the jobs.
func all(o store.Completion, jobs []store.Job) []store.Completion {
	list := make([]store.Completion, len(jobs))
	for i, j := range jobs {
		list[i] = o
		list[i].Job = j
	}
	return list
}

// locking locks the rows of jobs in another transaction while f runs.
func (b *bundle) locking(f func(), jobIDs ...string) {
	b.t.Helper()
	tx, err := b.Pool.Begin(b.t.Context())
	require.NoError(b.t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(b.t.Context())) }()
	require.NoError(b.t, b.lock(b.t.Context(), tx, jobIDs...))
	f()
}

// change changes an organization.
func (b *bundle) change(f func(tx pgx.Tx) error) {
	b.t.Helper()
	require.NoError(b.t, pgx.BeginFunc(b.t.Context(), b.Pool, f))
}

// eventually calls f until it is true. Cursors are brought up to date by scans, which cost time and
// are not made at once.
func (b *bundle) eventually(f func() bool, what string, args ...any) {
	b.t.Helper()
	limit := time.Now().Add(time.Minute)
	for !f() {
		require.True(b.t, time.Now().Before(limit), append([]any{what}, args...)...)
		<-time.After(5 * time.Millisecond)
	}
}

func ids(jobs []store.Job) []string {
	list := make([]string, len(jobs))
	for i, j := range jobs {
		list[i] = j.ID
	}
	return list
}

// byOrg counts jobs by organization.
func byOrg(jobs []store.Job) map[string]int {
	counts := map[string]int{}
	for _, j := range jobs {
		counts[j.OrgID]++
	}
	return counts
}
