package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// lookAgain leases the only job, and settles it as rescheduled for code.
func (b *bundle) lookAgain(code models.ErrorCode, message string) store.Turn {
	b.t.Helper()
	b.exec(`UPDATE daybook.accounting_work_queue SET ready_at = clock_timestamp() WHERE state = 'pending'`)
	turn := b.turn("turn")
	jobs := b.lease(turn, 1)
	require.Len(b.t, jobs, 1)
	require.NoError(b.t, b.settleAll(turn, store.Settlement{
		Job: jobs[0], Outcome: models.OutcomeRescheduled, Code: code, Message: message, Delay: time.Minute,
	}))
	return turn
}

// logged is a row of the log of attempts.
type logged struct {
	Code    models.ErrorCode
	Message string
	Times   int
	Fence   int64
	Began   bool
}

func (b *bundle) log() []logged {
	b.t.Helper()
	rows, err := b.Pool.Query(b.t.Context(), `
SELECT error_code, error, times, fence, first_started_at < started_at FROM daybook.attempts ORDER BY id`)
	require.NoError(b.t, err)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (logged, error) {
		var l logged
		var began *bool
		err := row.Scan(&l.Code, &l.Message, &l.Times, &l.Fence, &began)
		l.Began = began != nil && *began
		return l, err
	})
	require.NoError(b.t, err)
	return list
}

// TestLooksInVainAreOneRow settles a document's job as not ready again and again.
func TestLooksInVainAreOneRow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint) VALUES ($1, 'd', 1)`, org)

	first := b.lookAgain(models.CodeDocumentNotReady, "look 1")
	assert.Equal(t, []logged{{models.CodeDocumentNotReady, "look 1", 1, first.Fence, false}}, b.log())
	var last store.Turn
	for range 99 {
		last = b.lookAgain(models.CodeDocumentNotReady, "look again")
	}
	assert.Equal(t, []logged{{models.CodeDocumentNotReady, "look again", 100, last.Fence, true}}, b.log(), "the row is the last one's")
}

// TestOnlyTheSameIsOneRow keeps a row of its own for another code, version or attempt, and for what follows it.
func TestOnlyTheSameIsOneRow(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(b *bundle){
		"another version": func(b *bundle) { b.exec(`UPDATE daybook.accounting_work_queue SET version_hint = 2`) },
		"another attempt": func(b *bundle) { b.exec(`UPDATE daybook.accounting_work_queue SET run_count = 1`) },
		"another code":    func(b *bundle) { b.lookAgain(models.CodeVersionMismatch, "between") },
		"a purged log":    func(b *bundle) { b.exec(`UPDATE daybook.attempts SET job_id = 'other'`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(`INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint) VALUES ($1, 'd', 1)`, org)
			b.lookAgain(models.CodeDocumentNotReady, "before")
			change(b)
			b.lookAgain(models.CodeDocumentNotReady, "after")
			log := b.log()
			assert.Equal(t, "before", log[0].Message)
			assert.Equal(t, "after", log[len(log)-1].Message)
			for _, l := range log {
				assert.Equal(t, 1, l.Times)
			}
		})
	}
}

// TestFailuresAreRowsOfTheirOwn logs each attempt that counts.
func TestFailuresAreRowsOfTheirOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint) VALUES ($1, 'd', 1)`, org)
	for range 3 {
		b.exec(`UPDATE daybook.accounting_work_queue SET ready_at = clock_timestamp(), run_count = 0`)
		turn := b.turn("turn")
		require.NoError(t, b.settleAll(turn, store.Settlement{Job: b.lease(turn, 1)[0], Outcome: models.OutcomeRetried, Code: models.CodeTimeout, Message: "slow"}))
	}
	assert.Len(t, b.log(), 3)
}

// TestSnoozesAreOneRow settles a background job as snoozed again and again.
func TestSnoozesAreOneRow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	jobs := store.NewQueue(b.Pool, store.Jobs)
	b.exec(`SELECT daybook.enqueue_job($1, 'email', '{}')`, org)
	for range 5 {
		b.exec(`UPDATE daybook.jobs SET ready_at = clock_timestamp()`)
		turn := b.turn("turn")
		leased, err := jobs.Lease(t.Context(), turn, 1)
		require.NoError(t, err)
		require.Len(t, leased.Jobs, 1)
		require.NoError(t, pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
			_, err := store.Jobs.Settle(t.Context(), tx, turn, []store.Settlement{{
				Job: leased.Jobs[0], Outcome: models.OutcomeRescheduled, Code: models.CodeSnoozed, Message: "later", Delay: time.Second,
			}})
			return err
		}))
	}
	log := b.log()
	require.Len(t, log, 1)
	assert.Equal(t, 5, log[0].Times)
}
