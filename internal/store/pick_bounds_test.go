package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// enqueueIn enqueues a job of type short in a named queue, and returns its id.
func (b *recentBundle) enqueueIn(queue, org string) string {
	b.t.Helper()
	b.n++
	j, err := store.EnqueueJob(b.t.Context(), b.Pool,
		store.NewJob{OrgID: org, Type: "short", Queue: queue, Payload: json.RawMessage(fmt.Sprintf(`{"n": %d}`, b.n))})
	require.NoError(b.t, err)
	return j.JobID
}

// TestRecentPickKeepsToItsBounds: what was found lately says of which slots a recent pick may take
// jobs, and not what is true of their organizations, queues and fleets now. A row that another
// transaction holds is passed over.
func TestRecentPickKeepsToItsBounds(t *testing.T) {
	t.Parallel()
	b := setupRecent(t)
	b.exec(`SELECT daybook.set_queue('plain'), daybook.set_queue('bounded'), daybook.set_queue('unknown'), daybook.set_queue('elsewhere', 'printers')`)
	var pick *store.Pick
	for pick == nil {
		p, err := b.jobs.PickTypes(t.Context(), 100, short, pgtest.Unbounded())
		require.NoError(t, err)
		switch {
		case p.Recently(time.Minute):
			pick = p
		case !p.Empty():
			b.complete(p)
		default:
			b.enqueue("org_0", "short", 0)
			b.enqueueIn("plain", "org_0")
			b.enqueueIn("bounded", "org_0")
		}
	}
	b.exec(`SELECT daybook.set_queue('bounded', NULL, 1); INSERT INTO daybook.organizations (id, max_in_flight) VALUES ('capped', 1)`)
	b.enqueueIn("bounded", "org_1")
	b.enqueueIn("unknown", "org_1")
	b.enqueueIn("plain", "capped")
	b.exec(`UPDATE daybook.jobs SET queue = NULL WHERE id = $1`, b.enqueueIn("elsewhere", "org_1"))
	held := b.enqueue("org_1", "short", 0)
	want := []string{b.enqueue("org_1", "short", 0), b.enqueueIn("plain", "org_1")}
	another, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = another.Exec(t.Context(), `SELECT FROM daybook.jobs WHERE id = $1 FOR UPDATE`, held)
	require.NoError(t, err)
	assert.ElementsMatch(t, want, b.complete(pick))
	require.NoError(t, another.Rollback(t.Context()))
}

// TestPickAfterAChange: what is paused, capped or limited after a pick has chosen where to take
// jobs gives it none.
func TestPickAfterAChange(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"a paused organization": `INSERT INTO daybook.organizations (id, paused_at) VALUES ('org_1', now())`,
		"a capped organization": `INSERT INTO daybook.organizations (id, max_in_flight) VALUES ('org_1', 1)`,
		"a paused queue":        `SELECT daybook.pause_queue('plain')`,
		"a limited queue":       `SELECT daybook.set_queue('plain', NULL, 1)`,
		"a queue with a rate":   `SELECT daybook.set_queue('plain', NULL, NULL, 1, 60)`,
		"a queue by process":    `SELECT daybook.set_queue('plain', per_process => 1)`,
		"nothing":               `SELECT`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupRecent(t)
			b.exec(`SELECT daybook.set_queue('plain')`)
			b.enqueueIn("plain", "org_1")
			pick, err := b.jobs.PickTypes(t.Context(), 10, short, pgtest.Unbounded())
			require.NoError(t, err)
			require.False(t, pick.Empty())
			b.exec(change)
			assert.Len(t, b.complete(pick), map[bool]int{name == "nothing": 1}[true])
		})
	}
}

// TestCapsAreTheirOrganizations: leases of one capped organization take nothing from another, and a
// cap that is set while jobs are being leased holds at once.
func TestCapsAreTheirOrganizations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`INSERT INTO daybook.organizations (id, max_in_flight) VALUES ('a', 2), ('b', 2)`)
	b.pending("a", 2, 5)
	require.Len(t, b.lease(b.turn("run/0/1"), 10), 2)
	b.pending("b", 2, 5)
	leased := 0
	require.Eventually(t, func() bool {
		leased += len(b.lease(b.turn("run/0/2"), 10))
		return leased >= 2
	}, time.Minute, 20*time.Millisecond)
	assert.Equal(t, 2, leased)

	b.pending("c", 2, 20)
	require.Eventually(t, func() bool { return len(b.lease(b.turn("run/0/3"), 1)) == 1 }, time.Minute,
		20*time.Millisecond)
	b.exec(`INSERT INTO daybook.organizations (id, max_in_flight) VALUES ('c', 2)`)
	later := b.lease(b.turn("run/0/4"), 20)
	later = append(later, b.lease(b.turn("run/0/5"), 20)...)
	assert.LessOrEqual(t, len(later), 2)
}

// TestLeasingWhatAPickHadLocked: once the transaction of a pick is lost, a job is leased only if it
// is as it was, and for the request that it was picked for.
func TestLeasingWhatAPickHadLocked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change string
		leased int
	}{
		"as it was":             {`SELECT`, 1},
		"asked for anew":        {`UPDATE daybook.jobs SET updated_at = updated_at + interval '1 us' WHERE state = 'pending'`, 0},
		"tried meanwhile":       {`UPDATE daybook.jobs SET run_count = run_count + 1 WHERE state = 'pending'`, 0},
		"cancelled":             {`UPDATE daybook.jobs SET state = 'cancelled', finished_at = now() WHERE state = 'pending'`, 0},
		"of which there is one": {`UPDATE daybook.jobs SET input_hash = sha256(''), unique_hash = sha256('') WHERE state = 'pending'`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupRecent(t)
			pick := b.pick()
			id := b.enqueue("org_1", "short", 0)
			b.exec(`UPDATE daybook.jobs SET generation = 3 WHERE id = $1`, id)
			turn, lost := b.turn("run/0/9"), errors.New("the transaction is lost")
			var jobs []store.Job
			require.ErrorIs(t, b.jobs.InTx(t.Context(), func(tx pgx.Tx) (err error) {
				jobs, err = pick.Lock(t.Context(), tx)
				require.NoError(t, err)
				require.Len(t, jobs, 1)
				return lost
			}), lost)
			b.exec(c.change)
			var leased []string
			require.NoError(t, b.jobs.InTx(t.Context(), func(tx pgx.Tx) (err error) {
				leased, err = b.jobs.LeasePicked(t.Context(), tx, turn, jobs, false)
				return err
			}))
			assert.Len(t, leased, c.leased)
			if c.leased > 0 {
				done, err := b.completeLeased(store.Jobs, turn,
					store.Completion{Job: jobs[0], Outcome: models.OutcomeCompleted})
				require.NoError(t, err)
				assert.Equal(t, store.Completed{models.OutcomeCompleted: 1}, done)
			}
		})
	}
}

// TestAwaitedJobsStayAwaited: others wait for a job also when it is put off.
func TestAwaitedJobsStayAwaited(t *testing.T) {
	t.Parallel()
	b := setupRecent(t)
	id := b.enqueue("org_1", "short", 0)
	b.exec(`UPDATE daybook.jobs SET awaited = true WHERE id = $1`, id)
	turn := b.turn("run/0/9")
	jobs := b.leaseJobs(turn)
	require.Len(t, jobs, 1)
	_, err := b.completeLeased(store.Jobs, turn,
		store.Completion{Job: jobs[0], Outcome: models.OutcomeRescheduled, Code: models.CodeTimeout, Message: "later"})
	require.NoError(t, err)
	var awaited bool
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT awaited FROM daybook.jobs WHERE id = $1`, id).Scan(&awaited))
	assert.True(t, awaited)
}
