package health_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/watching/health"
)

// What took longer than its policy allows wants more time; of a call that was not answered in time
// the other side is slow.
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

// One code may have several causes: each is a finding of its own, with its own number, example and
// advice.
func TestCausesOfOneCodeAreToldApart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`
INSERT INTO daybook.accounting_work_queue (version_hint, org_id, document_id, state, last_error_code, last_error, finished_at, updated_at) VALUES
  (1, 'acme', 'rule', 'failed', 'NO_MATCHING_RULE', 'no rule matches the document', now(), now()),
  (1, 'acme', 'row 1', 'failed', 'NO_MATCHING_RULE', 'map "vat" has no row that matches rate=7', now(), now() - interval '1 hour'),
  (1, 'acme', 'row 2', 'failed', 'NO_MATCHING_RULE', 'map "vat" has no row that matches rate=9', now(), now() - interval '2 hours'),
  (1, 'acme', 'span', 'failed', 'PERIOD_CLOSED', 'the posting date 2025-12-30 lies in the closed period from 2025-12-01 to 2025-12-31', now(), now()),
  (1, 'acme', 'none', 'failed', 'PERIOD_CLOSED', 'the posting date 2024-12-30 lies in no period, and before one that is closed', now(), now()),
  (1, 'acme', 'has no row', 'failed', 'UNBALANCED', 'it has no row', now(), now()), (1, 'acme', 'u', 'failed', 'UNBALANCED', 'by 0.10', now(), now());
INSERT INTO daybook.jobs (id, org_id, type, payload, state, finished_at, last_error, last_error_code) VALUES
  ('a', 'acme', 't', '{}', 'failed', now(), 'not finished within 30s: context deadline exceeded', 'TIMEOUT'),
  ('b', 'acme', 't', '{}', 'failed', now(), 'the handler did not return when its context ended: not finished in time', 'TIMEOUT'),
  ('c', 'acme', 't', '{}', 'failed', now(), 'https://example.com did not answer within 20s', 'TIMEOUT')`)
	said := map[string]health.Finding{}
	r := b.check()
	for _, f := range of(r, health.FailedJobs) {
		said[f.ErrorCode+" "+f.Example] = f
	}
	assert.Len(t, said, 7)
	assert.Contains(t, said["NO_MATCHING_RULE rule"].Says, "1 document failed with NO_MATCHING_RULE: no posting rule")
	assert.Contains(t, said["NO_MATCHING_RULE row 1"].Says,
		"2 documents failed with NO_MATCHING_RULE: a rule matches the document, but the map")
	assert.Contains(t, said["PERIOD_CLOSED span"].Todo, "`daybook periods open --org acme --from 2025-12-01`")
	assert.Contains(t, said["PERIOD_CLOSED none"].Todo, "`daybook periods add`")
	assert.Contains(t, said["TIMEOUT c"].Says,
		"1 job of type t failed with TIMEOUT: what it called did not answer in time")
	assert.Contains(t, r.Summary, "7 documents could not be posted and 3 jobs failed")
}
