package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// poisons are what a row must not hold, by the kind of queue.
var poisons = []struct{ kind, set string }{
	{"accounting", "run_count = 2147483647"},
	{"accounting", "ready_at = '-infinity'"},
	{"jobs", "run_count = 2147483647"},
	{"jobs", "created_at = 'infinity'"},
	{"jobs", "ready_at = '-infinity'"},
}

// poisoned is a queue with nine jobs that are due.
type poisoned struct {
	*bundle
	table string
	// definition is how the constraint on the rows is added again.
	definition string
	bad        string
}

// withPoison calls f for each poison, before a row has it. Then the good jobs are as good as ever,
// the bad one is set aside by its code, and nothing is left in the table that its constraints
// refuse.
func withPoison(t *testing.T, f func(p *poisoned, poison func()), only ...string) {
	t.Helper()
	for _, c := range poisons {
		if len(only) > 0 && !slices.Contains(only, c.set) {
			continue
		}
		t.Run(c.kind+" "+c.set, func(t *testing.T) {
			t.Parallel()
			p := &poisoned{bundle: setup(t), table: "daybook.accounting_work_queue"}
			if c.kind == "jobs" {
				p.table = "daybook.jobs"
				p.bundle.store = store.NewQueue(p.Pool, store.Jobs)
				for i := range 9 {
					_, err := store.EnqueueJob(t.Context(), p.Pool,
						store.NewJob{OrgID: "a", Type: "greet", Payload: fmt.Appendf(nil, `{"n": %d}`, i)})
					require.NoError(t, err)
				}
			} else {
				p.pending("a", 2, 9)
			}
			require.NoError(t, p.Pool.QueryRow(t.Context(),
				`SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'sound' AND conrelid = $1::text::regclass`,
				p.table).Scan(&p.definition))
			require.NoError(t, p.Pool.QueryRow(t.Context(),
				`SELECT id FROM `+p.table+` ORDER BY id OFFSET 4 LIMIT 1`).Scan(&p.bad))
			p.exec(`ALTER TABLE ` + p.table + ` DROP CONSTRAINT sound`)
			f(p, func() { p.exec(`UPDATE `+p.table+` SET `+c.set+` WHERE id = $1`, p.bad) })

			var state, code, message string
			require.NoError(t, p.Pool.QueryRow(t.Context(),
				`SELECT state::text, coalesce(last_error_code, ''), coalesce(last_error, '') FROM `+p.table+` WHERE id = $1`,
				p.bad).
				Scan(&state, &code, &message))
			assert.Equal(t, []string{"failed", string(models.CodeRowUnreadable)}, []string{state, code}, message)
			p.exec(`ALTER TABLE ` + p.table + ` ADD CONSTRAINT sound ` + p.definition)
		})
	}
}

// others asserts that the jobs are all but the bad one.
func (p *poisoned) others(jobs []store.Job) {
	p.t.Helper()
	ids := map[string]bool{}
	for _, j := range jobs {
		ids[j.ID] = true
	}
	assert.Len(p.t, ids, 8)
	assert.False(p.t, ids[p.bad])
}

func TestLeasePassesUnreadableRow(t *testing.T) {
	t.Parallel()
	withPoison(t, func(p *poisoned, poison func()) {
		poison()
		p.others(p.lease(p.turn("run/0/1"), 100))
	})
}

// TestCappedLeasePassesUnreadableRow leases in a transaction, which counts what is in flight.
func TestCappedLeasePassesUnreadableRow(t *testing.T) {
	t.Parallel()
	withPoison(t, func(p *poisoned, poison func()) {
		most := 100
		p.change(func(tx pgx.Tx) error {
			_, err := store.CapOrganization(p.t.Context(), tx, "a", &most)
			return err
		})
		poison()
		p.others(p.lease(p.turn("run/0/1"), 100))
	})
}

// TestPickPassesUnreadableRow works without a lease. What the transaction fails for is set aside by
// the next pick or lease.
func TestPickPassesUnreadableRow(t *testing.T) {
	t.Parallel()
	withPoison(t, func(p *poisoned, poison func()) {
		poison()
		var jobs []store.Job
		for range 2 {
			jobType := ""
			if p.table == "daybook.jobs" {
				jobType = "greet"
			}
			pick, err := p.store.PickTypes(p.t.Context(), 100, func(t string) bool { return t == jobType },
				pgtest.Unbounded())
			require.NoError(p.t, err)
			err = p.store.InTx(p.t.Context(), func(tx pgx.Tx) error {
				some, err := pick.Lock(p.t.Context(), tx)
				jobs = append(jobs, some...)
				return err
			})
			if err != nil {
				pick.Undo()
			}
		}
		p.others(jobs)
	})
}

// TestReclaimTurnsPassesUnreadableRow is about what that reads, or writes. The other poisons are
// met when the job is leased again.
func TestReclaimTurnsPassesUnreadableRow(t *testing.T) {
	t.Parallel()
	withPoison(t, func(p *poisoned, poison func()) {
		gone := p.turn("run/0/1")
		gone.Begins = true
		require.Len(p.t, p.lease(gone, 100), 9)
		poison()
		taken, err := p.store.ReclaimTurns(p.t.Context(), p.turn("run/0/2"), []string{gone.ID}, true)
		require.NoError(p.t, err)
		p.others(taken.Jobs)
	}, "created_at = 'infinity'")
}

// TestReclaimPassesUnreadableRow ends the leases of a worker that is gone; the row is met by the
// lease that follows.
func TestReclaimPassesUnreadableRow(t *testing.T) {
	t.Parallel()
	withPoison(t, func(p *poisoned, poison func()) {
		gone := p.turn("run/0/1")
		require.Len(p.t, p.lease(gone, 100), 9)
		p.exec(`UPDATE ` + p.table + ` SET last_attempted_at = clock_timestamp() - interval '1 hour', reclaims = 1000000`)
		poison()
		got, err := p.store.ReclaimExpired(p.t.Context())
		require.NoError(p.t, err)
		assert.Equal(p.t, 9, got.Jobs)
		poison() // what was not begun is uncounted
		p.others(p.lease(p.turn("run/0/2"), 100))
	})
}

// TestCountsAreBounded has the counts that grow by themselves stay at their bound.
func TestCountsAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.pending("a", 2, 1)
	b.exec(`UPDATE daybook.accounting_work_queue SET not_ready_count = 1000000`)
	turn := b.turn("run/0/1")
	jobs := b.lease(turn, 1)
	require.Len(t, jobs, 1)
	require.NoError(t, b.completeAll(turn,
		store.Completion{
			Job: jobs[0], Outcome: models.OutcomeRescheduled, Code: models.CodeDocumentNotReady,
			Message: "not ready",
		}))
	b.exec(`UPDATE daybook.accounting_work_queue SET reclaims = 1000000, ready_at = clock_timestamp()`)
	again := b.turn("run/0/2")
	require.Len(t, b.lease(again, 1), 1)
	taken, err := b.store.ReclaimTurns(context.WithoutCancel(t.Context()), b.turn("run/0/3"), []string{again.ID}, true)
	require.NoError(t, err)
	require.Len(t, taken.Jobs, 1)
	assert.Equal(t, 1_000_000, taken.Jobs[0].Reclaims)
	assert.Equal(t, 1_000_000, taken.Jobs[0].NotReady)
}

// TestConstraintKeepsRowsReadable: while the constraint is there no row has what the other tests
// put into one, and of those that it allows only one cannot be leased: that of a job with a million
// attempts.
func TestConstraintKeepsRowsReadable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.pending("a", 2, 9)
	_, err := store.EnqueueJob(t.Context(), b.Pool, store.NewJob{OrgID: "a", Type: "greet", Payload: []byte(`{}`)})
	require.NoError(t, err)
	for _, p := range poisons {
		table := map[string]string{"accounting": "daybook.accounting_work_queue", "jobs": "daybook.jobs"}[p.kind]
		_, err := b.Pool.Exec(t.Context(), `UPDATE `+table+` SET `+p.set)
		assert.Equal(t, "23514", store.SQLState(err), "%s: %s", p.kind, p.set)
	}
	var tired string
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`UPDATE daybook.accounting_work_queue SET run_count = 1000000 WHERE id = (SELECT min(id) FROM daybook.accounting_work_queue) RETURNING id`).Scan(&tired))
	assert.Len(t, b.lease(b.turn("run/0/1"), 100), 8)
	var state, code string
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`SELECT state::text, last_error_code FROM daybook.accounting_work_queue WHERE id = $1`, tired).Scan(&state, &code))
	assert.Equal(t, []string{"failed", string(models.CodeRowUnreadable)}, []string{state, code})
}
