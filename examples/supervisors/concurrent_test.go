package main

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
)

// processes are the five, each with what begins one of its own, and what its first run does.
var processes = []struct {
	name, begin, payload, first string
}{
	{
		"comms.send_email", messages[0].insert + `; SELECT comms.kickoff_send_email(1)`, `{"send_email_task_id": 1}`,
		`SELECT count(*) FROM comms.send_email_attempt`,
	},
	{
		"comms.send_sms", messages[1].insert + `; SELECT comms.kickoff_send_sms(1)`, `{"send_sms_task_id": 1}`,
		`SELECT count(*) FROM comms.send_sms_attempt`,
	},
	{
		"files.file_deletion", `SELECT files.kickoff_file_deletion(1)`, `{"file_deletion_task_id": 1}`,
		`SELECT count(*) FROM files.file_deletion_attempt`,
	},
	{
		"accounts.account_anonymization", `SELECT accounts.kickoff_account_anonymization(1)`,
		`{"account_anonymization_task_id": 1}`,
		`SELECT count(*) FROM accounts.account_anonymization_attempt`,
	},
	{
		"accounts.account_deletion", `SELECT api.request_account_deletion(1)`, `{"account_deletion_task_id": 1}`,
		`SELECT count(*) FROM files.file_deletion_task`,
	},
}

// Runs of one supervisor at the same time make what one run makes.
func TestConcurrentRuns(t *testing.T) {
	t.Parallel()
	for _, p := range processes {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.account(1)
			b.exec(p.begin)
			var runs errgroup.Group
			for range 8 {
				runs.Go(func() error {
					_, err := b.worker.Exec(t.Context(), `SELECT internal.run_function($1, $2)`, p.name+"_supervisor", p.payload)
					return err
				})
			}
			require.NoError(t, runs.Wait())
			assert.Equal(t, 1, b.count(p.first))
		})
	}
}

// A run waits until the one before it has committed, and then sees what that one did.
func TestRunWaitsForTheOneBefore(t *testing.T) {
	t.Parallel()
	for _, p := range processes {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.account(1)
			b.exec(p.begin)
			const stmt = `SELECT internal.run_function($1, $2)`
			var second errgroup.Group
			require.NoError(t, pgx.BeginFunc(t.Context(), b.worker, func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), stmt, p.name+"_supervisor", p.payload); err != nil {
					return err
				}
				second.Go(func() error {
					_, err := b.worker.Exec(t.Context(), stmt, p.name+"_supervisor", p.payload)
					return err
				})
				require.Eventually(t, func() bool {
					return b.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 1
				}, pgtest.Patience, 5*time.Millisecond)
				return nil
			}))
			require.NoError(t, second.Wait())
			assert.Equal(t, 1, b.count(p.first))
		})
	}
}
