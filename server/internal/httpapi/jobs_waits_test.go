package httpapi_test

import (
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A job that waits says for what; runAt is when it is to be due after that.
func TestJobsInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.Pool.Exec(t.Context(), `SELECT daybook.set_queue('slow')`)
	require.NoError(t, err)
	enqueue := func(more map[string]any) string {
		request := map[string]any{"orgId": "acme", "type": "mail", "payload": map[string]any{}}
		maps.Copy(request, more)
		a := b.send(b.everything, http.MethodPost, "/api/jobs/enqueue", request)
		require.Equal(t, http.StatusCreated, a.status, string(a.body))
		var made struct{ ID string }
		a.into(t, &made)
		return made.ID
	}
	first := enqueue(map[string]any{"sequence": "order-7", "queue": "slow"})
	next := enqueue(map[string]any{"sequence": "order-7", "after": []string{first}})
	_, err = b.Pool.Exec(t.Context(), `SELECT daybook.check_waits()`)
	require.NoError(t, err)
	type found struct {
		Queue, Sequence string
		Waits           bool
		RunAt           time.Time
		WaitsFor        []struct{ What, ID, State string }
	}
	var got found
	b.get(&got, "/api/jobs/"+next)
	assert.True(t, got.Waits)
	assert.Equal(t, "order-7", got.Sequence)
	assert.WithinDuration(t, time.Now(), got.RunAt, time.Hour)
	assert.Equal(t, []struct{ What, ID, State string }{{"job", first, "pending"}, {"turn", first, "pending"}},
		got.WaitsFor)
	var page struct{ Jobs []struct{ ID string } }
	b.get(&page, "/api/jobs?waits=jobs")
	assert.Equal(t, []struct{ ID string }{{next}}, page.Jobs)
	b.get(&page, "/api/jobs?queue=slow")
	assert.Equal(t, []struct{ ID string }{{first}}, page.Jobs)
	got = found{}
	b.get(&got, "/api/jobs/"+first)
	assert.Equal(t, "slow", got.Queue)
	assert.False(t, got.Waits)
	assert.Empty(t, got.WaitsFor)
	a := b.send(b.everything, http.MethodPost, "/api/jobs/enqueue",
		map[string]any{"orgId": "acme", "type": "mail", "payload": map[string]any{}, "after": []string{"unknown"}})
	assert.Equal(t, http.StatusNotFound, a.status)
	assert.Contains(t, string(a.body), "JOB_NOT_FOUND")
}

// TestJobHasItsSteps: a job tells the steps that are kept of it.
func TestJobHasItsSteps(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const id = "job-1"
	_, err := b.Pool.Exec(t.Context(), `INSERT INTO daybook.jobs (id, org_id, type, payload, awaited) VALUES ($1, 'acme', 'mail', '{}', true)`, id)
	require.NoError(t, err)
	_, err = b.Pool.Exec(t.Context(), `
INSERT INTO daybook.job_steps (job_id, name, position, attempt, result, done, times, started_at) VALUES ($1, 'rows', 1, 2, '{"n": 7}', false, 3, now())`, id)
	require.NoError(t, err)
	type step struct {
		Name                     string
		Position, Attempt, Times int
		Result                   map[string]int
		Done                     bool
	}
	var got struct{ Steps []step }
	b.get(&got, "/api/jobs/"+id)
	assert.Equal(t, []step{{"rows", 1, 2, 3, map[string]int{"n": 7}, false}}, got.Steps)
}
