package engine_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/models"
)

// lines is a log that may be read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

// newRole makes a login role of the test's own with all rights on the schema.
func (b *bundle) newRole() string {
	b.t.Helper()
	role := b.Name + "_worker"
	b.exec(`CREATE ROLE ` + role + ` LOGIN`)
	b.t.Cleanup(func() {
		for _, stmt := range []string{
			`REASSIGN OWNED BY ` + role + ` TO CURRENT_USER`, `DROP OWNED BY ` + role,
			`DROP ROLE ` + role,
		} {
			_, err := b.Pool.Exec(context.Background(), stmt)
			assert.NoError(b.t, err)
		}
	})
	b.exec(`GRANT USAGE ON SCHEMA daybook, queues, internal TO ` + role)
	b.exec(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA daybook TO ` + role)
	b.exec(`GRANT USAGE ON ALL SEQUENCES IN SCHEMA daybook TO ` + role)
	return role
}

// A running worker whose role loses rights says so once, charges no job, and goes on when the role
// has them again.
func TestWorkerPausesWithoutItsRights(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ revoke, grant string }{
		"a table it completes in": {
			"REVOKE UPDATE ON daybook.documents FROM %s",
			"GRANT UPDATE ON daybook.documents TO %s",
		},
		"a table it posts to": {"REVOKE INSERT ON daybook.entries FROM %s", "GRANT INSERT ON daybook.entries TO %s"},
		"the queue": {
			"REVOKE UPDATE ON daybook.accounting_work_queue FROM %s",
			"GRANT UPDATE ON daybook.accounting_work_queue TO %s",
		},
		"the schema": {"REVOKE USAGE ON SCHEMA daybook FROM %s", "GRANT USAGE ON SCHEMA daybook TO %s"},
		"its login":  {"ALTER ROLE %s NOLOGIN", "ALTER ROLE %s LOGIN"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			role := b.newRole()
			var log lines
			logger := slog.New(slog.NewTextHandler(&log, nil))
			pool := b.As(t, role)
			s := store.New(pool)
			s.GuardSchema(func(ctx context.Context) error { return migrations.Verify(ctx, pool) }, logger)
			e := engine.New(s, ledger.New(nil), engine.Options{Direct: true, Log: logger})
			defer e.Close()
			fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-0", 1000))
			r, err := e.Process(t.Context(), request(1))
			require.NoError(t, err)
			require.Equal(t, 1, r.Completed)

			b.exec(strings.ReplaceAll(c.revoke, "%s", role))
			b.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1`, role)
			fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-1", 1000))
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			for n := 2; ctx.Err() == nil; n++ {
				if _, err = e.Process(ctx, request(n)); err != nil {
					assert.True(t, store.IsTransient(err), "%v", err)
				}
			}
			job := b.job("inv-1")
			assert.Contains(t, []models.JobState{models.JobPending, models.JobLeased}, job.State)
			assert.Empty(t, fixture.Attempts(t, b.Pool, org, "inv-1"))
			assert.LessOrEqual(t, log.count("level=WARN"), 4)

			b.exec(strings.ReplaceAll(c.grant, "%s", role))
			require.Eventually(t, func() bool {
				_, err = e.Process(t.Context(), request(1000))
				return b.job("inv-1").State == models.JobCompleted
			}, time.Minute, 50*time.Millisecond)
			assert.Len(t, fixture.Attempts(t, b.Pool, org, "inv-1"), 1)
		})
	}
}
