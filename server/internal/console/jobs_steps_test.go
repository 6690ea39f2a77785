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
	assert.NotContains(t, body, `class="steps"`, "no attempt is shown whose time line has a place for it")
}

// The time line of an attempt that runs, also of the first one, has the newest steps below it.
func TestTimeLineHasSteps(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead)
	id := s.enqueue(store.NewJob{OrgID: "acme", Type: "mail"})
	s.exec(`UPDATE daybook.jobs SET state = 'leased', working = true, run_count = 1, awaited = true, worker = 'w', turn_id = 't', fence = 1, leased_generation = generation,
		created_at = now() - interval '1 minute', attempt_started_at = now() - interval '30 seconds', last_attempted_at = clock_timestamp() WHERE id = $1`, id)
	s.exec(`
INSERT INTO daybook.job_steps (job_id, name, position, attempt, result, done, times, started_at, kept_at)
SELECT $1, 'step ' || i, i, 1, '{"password": "se-cret"}'::jsonb, true, 1, now() - make_interval(secs => 31 - i), now() - make_interval(secs => 30 - i)
  FROM generate_series(1, 22) i
UNION ALL SELECT $1, 'rows', 23, 1, '{"at": 40000, "password": "se-cret"}', false, 40, now() - interval '8 seconds', now() - interval '1 second'`, id)
	body := s.see("/console/jobs/" + id)
	for _, want := range []string{
		"Attempts: 1 running", `<tspan>step 22</tspan> attempt 1`, `<tspan>step 4</tspan>`, "; 3 earlier steps are in the table alone",
		`<tspan>rows</tspan> attempt 1, 40 rounds, at {&#34;at&#34;:40000,`, ", goes on</text>", "<title>rows: kept 1 s ago, took 7 s</title>",
	} {
		assert.Contains(t, body, want)
	}
	assert.NotContains(t, body, `<tspan>step 3</tspan>`)
	assert.NotContains(t, body, "se-cret")
	assert.NotContains(t, body, "It was not tried yet.")
}
