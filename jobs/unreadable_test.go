package jobs_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// TestUnreadableRowsAreSetAside has three rows that a worker cannot lease, for handlers of one job
// and of many. The others are worked, and these as well when they are retried.
func TestUnreadableRowsAreSetAside(t *testing.T) {
	t.Parallel()
	for name, register := range map[string]func(r *jobs.Registry){
		"single": func(r *jobs.Registry) {
			jobs.Register(r, jobs.Policy{Owner: "growth"}, func(context.Context, *jobs.Job[greet]) error { return nil })
		},
		"bulk": func(r *jobs.Registry) {
			jobs.RegisterBulk(r, jobs.Policy{Owner: "growth"},
				func(context.Context, pgx.Tx, []*jobs.Job[greet]) ([]error, error) { return nil, nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			register(b.registry)
			var ids []string
			for i := range 10 {
				ids = append(ids, b.enqueue(greet{Name: fmt.Sprint(i)}, queue.JobOptions{}))
			}
			b.exec(`ALTER TABLE daybook.jobs DROP CONSTRAINT sound`)
			bad := map[string]string{
				ids[2]: "run_count = 2147483647", ids[5]: "created_at = 'infinity'",
				ids[7]: "ready_at = '-infinity'",
			}
			for id, set := range bad {
				b.exec(`UPDATE daybook.jobs SET `+set+` WHERE id = $1`, id)
			}

			assert.Equal(t, 7, b.work().Completed)
			for id, set := range bad {
				r := b.row(id)
				assert.Equal(t, models.JobFailed, r.State, set)
				assert.Equal(t, string(models.CodeRowUnreadable), r.Code, "%s: %s", set, r.Error)
				b.exec(`SELECT daybook.retry_job($1, 'now')`, id)
			}
			assert.Equal(t, 3, b.work().Completed)
		})
	}
}
