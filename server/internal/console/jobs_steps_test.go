package console_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// The page of a job shows the steps that are kept, without secrets.
func TestJobPageShowsSteps(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead)
	id := s.enqueue(store.NewJob{OrgID: "acme", Type: "mail"})
	assert.NotContains(t, s.see("/console/jobs/"+id), "<h2>Steps</h2>")
	s.exec(`UPDATE daybook.jobs SET awaited = true WHERE id = $1`, id)
	s.exec(`
INSERT INTO daybook.job_steps (job_id, name, position, attempt, result, done, times, started_at, kept_at)
VALUES ($1, 'upload', 1, 1, '{"key": "f-1", "password": "se-cret"}', true, 1, now() - interval '9 seconds', now() - interval '7 seconds'),
       ($1, 'rows', 2, 2, '40000', false, 40, now() - interval '5 seconds', now())`, id)
	body := s.see("/console/jobs/" + id)
	for _, want := range []string{"<h2>Steps</h2>", "upload", "f-1", "2 s", "rows", "40000", "40, goes on"} {
		assert.Contains(t, body, want)
	}
	assert.NotContains(t, body, "se-cret")
}
