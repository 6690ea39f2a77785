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

// reschedule leases the only job, and completes it as rescheduled for code.
func (b *bundle) reschedule(code models.ErrorCode, message string) store.Turn {
	b.t.Helper()
	b.exec(`UPDATE daybook.accounting_work_queue SET ready_at = clock_timestamp() WHERE state = 'pending'`)
	turn := b.turn("turn")
	jobs := b.lease(turn, 1)
	require.Len(b.t, jobs, 1)
	require.NoError(b.t, b.completeAll(turn, store.Completion{
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

// TestOnlyTheSameIsOneRow keeps a row of its own for another code, version or attempt, and for what
// follows it.
func TestOnlyTheSameIsOneRow(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(b *bundle){
		"another version": func(b *bundle) { b.exec(`UPDATE daybook.accounting_work_queue SET version_hint = 2`) },
		"another attempt": func(b *bundle) { b.exec(`UPDATE daybook.accounting_work_queue SET run_count = 1`) },
		"another code":    func(b *bundle) { b.reschedule(models.CodeVersionMismatch, "between") },
		"a purged log":    func(b *bundle) { b.exec(`UPDATE daybook.attempt_log SET job_id = 'other'`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(`INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint) VALUES ($1, 'd', 1)`, org)
			b.reschedule(models.CodeDocumentNotReady, "before")
			change(b)
			b.reschedule(models.CodeDocumentNotReady, "after")
			log := b.log()
			assert.Equal(t, "before", log[0].Message)
			assert.Equal(t, "after", log[len(log)-1].Message)
			for _, l := range log {
				assert.Equal(t, 1, l.Times)
			}
		})
	}
}
