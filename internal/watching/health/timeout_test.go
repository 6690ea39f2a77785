package health_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/watching/health"
)

// What took longer than its policy allows wants more time; of a call that was not answered in time the other side is slow.
func TestAdviceForATimeoutFitsItsCause(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`
INSERT INTO daybook.jobs (id, org_id, type, payload, state, finished_at, last_error, last_error_code) VALUES
  ('a', 'acme', 'own', '{}', 'failed', now(), 'not finished within 30s: context deadline exceeded', 'TIMEOUT'),
  ('b', 'acme', 'stuck', '{}', 'failed', now(), 'the handler did not return when its context ended: not finished in time', 'TIMEOUT'),
  ('c', 'acme', 'called', '{}', 'failed', now(), 'https://example.com did not answer within 20s', 'TIMEOUT')`)
	said := map[string]health.Finding{}
	for _, f := range of(b.check(), health.FailedJobs) {
		said[f.Type] = f
	}
	for _, ended := range []string{"own", "stuck"} {
		assert.Contains(t, said[ended].Says, "longer than its policy allows")
		assert.Contains(t, said[ended].Todo, "give it more time")
	}
	assert.Contains(t, said["called"].Says, "what it called did not answer in time")
	assert.NotContains(t, said["called"].Todo, "give it more time")
}
