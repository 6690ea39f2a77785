package console_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/server/internal/console"
)

// TestOverviewOfOneOrganization has what was found of its own jobs, and of the installation only what
// stops them: no figures of others, no names of servers and workers, no errors of connections.
func TestOverviewOfOneOrganization(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, func(o *console.Options) {
		o.TemporalAddress = "temporal.example:7233"
		o.TemporalError = errors.New("dial tcp 192.0.2.7:7233: connection refused")
	})
	const leased = `state, run_count, turn_id, fence, leased_generation, attempt_started_at, last_attempted_at, worker`
	s.exec(`
INSERT INTO daybook.job_workers (id, name, types) VALUES ('w', 'w', '{mail}');
SELECT daybook.set_queue('bank', NULL, 1);
INSERT INTO daybook.jobs (id, org_id, type, payload, queue, ready_at) VALUES ('waits', 'acme', 'mail', '{}', 'bank', now() - interval '1 hour');
INSERT INTO daybook.jobs (id, org_id, type, payload, queue, ` + leased + `)
  VALUES ('job-of-other', 'other', 'mail', '{}', 'bank', 'leased', 1, 't', 1, 0, now() - interval '1 hour', now() - interval '5 minutes', 'worker-of-other');
INSERT INTO daybook.accounting_work_queue (version_hint, org_id, document_id, ` + leased + `)
  SELECT 1, 'other', 'd' || n, 'leased', 1, 't', 1, 0, now(), now() - interval '5 minutes', 'worker-of-other' FROM generate_series(1, 41) n;
INSERT INTO daybook.depths (seconds, at, kind, due, waiting, leased, failed, oldest_due_seconds)
SELECT 60, date_trunc('minute', now()) - n * interval '1 minute', kind, 2000 - 150 * n, 0, 0, 0, 0
  FROM generate_series(0, 9) n, (VALUES ('jobs'), ('tasks')) k (kind);
INSERT INTO queues.task (task_type, payload) VALUES ('supervise', '{}');
SELECT queues.rebuild_open_tasks()`)
	others := []string{
		"41 documents", "worker-of-other", "job-of-other", "temporal.example", "192.0.2.7", "connection refused",
	}
	s.signIn("", tokens.ScopeRead)
	status, body := s.get("/console/")
	require.Equal(t, http.StatusOK, status)
	for _, says := range others {
		assert.Contains(t, body, says, "who operates Daybook sees it")
	}
	s.signIn("acme", tokens.ScopeRead)
	status, body = s.get("/console/")
	require.Equal(t, http.StatusOK, status)
	for _, says := range others {
		assert.NotContains(t, body, says)
	}
	assert.NotContains(t, body, "STALE_LEASES")
	assert.Contains(t, body, "TEMPORAL_UNAVAILABLE")
	assert.Contains(t, body, "Temporal cannot be asked.")
	assert.Contains(t, body, "CAP_REACHED", "its own job waits")

	s.exec(`
INSERT INTO daybook.accounting_work_queue (version_hint, org_id, document_id, ` + leased + `)
  SELECT 1, 'third', 'd' || n, 'leased', 1, 't', 1, 0, now(), now() - interval '5 minutes', 'worker-of-third' FROM generate_series(1, 3) n`)
	s.signIn("third", tokens.ScopeRead)
	status, body = s.get("/console/")
	require.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, "At work when their worker ended: 3 documents")
}
