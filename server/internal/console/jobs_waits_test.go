package console_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// The page of a job that waits says for what, and not that it is due in thousands of years.
func TestJobPageSaysWhatTheJobWaitsFor(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead)
	first := s.enqueue(store.NewJob{OrgID: "acme", Type: "mail", Sequence: "order-7"})
	next := s.enqueue(store.NewJob{OrgID: "acme", Type: "mail", Sequence: "order-7"})
	after := s.enqueue(store.NewJob{OrgID: "acme", Type: "mail", After: []string{first}})
	s.exec(`SELECT daybook.check_waits()`)
	s.exec(`INSERT INTO daybook.job_callbacks (token_hash, job_id, name, deadline) VALUES (sha256(''), $1, 'signed', now() + interval '1 day')`, first)
	for id, want := range map[string]string{
		first: "the callback signed", next: "its turn, after",
		after: "/console/jobs/" + first,
	} {
		body := s.see("/console/jobs/" + id)
		assert.Contains(t, body, "Waits for")
		assert.Contains(t, body, want)
		assert.NotContains(t, body, "9999-12")
	}
	assert.Contains(t, s.see("/console/jobs/"+next), "It waits for its turn or for other jobs")
	assert.NotContains(t, s.see("/console/jobs"), "9999-12")
}
