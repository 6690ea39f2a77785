package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLimitsByKey: limits of a type and of a queue are set, listed, and say how they stand for a job in
// their line.
func TestLimitsByKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	put := func(path, body, want string) {
		a := b.send(b.everything, http.MethodPut, path, body)
		require.Equal(t, http.StatusOK, a.status, string(a.body))
		assert.JSONEq(t, want, string(a.body))
	}
	a := b.send(b.everything, http.MethodPut, "/api/limits/queues/bnak", `{"parallel": 2}`)
	assert.Equal(t, http.StatusNotFound, a.status)
	assert.Equal(t, "QUEUE_NOT_FOUND", a.code())
	a = b.send(b.everything, http.MethodGet, "/api/limits/queues/bnak/keys", nil)
	assert.Equal(t, "QUEUE_NOT_FOUND", a.code())
	_, err := b.Pool.Exec(t.Context(), `SELECT daybook.set_queue('bank')`)
	require.NoError(t, err)
	put("/api/limits/types/mail", `{"by": "org_id", "parallel": 3}`, `{"type": "mail", "changed": true}`)
	put("/api/limits/queues/bank", `{"by": "payload.account", "parallel": 1, "rate": 100}`, `{"queue": "bank", "changed": true}`)
	put("/api/limits/queues/bank", `{"by": "payload.account", "parallel": 1, "rate": 100}`, `{"queue": "bank", "changed": false}`)
	type limit struct {
		Type, Queue, By string
		Parallel, Rate  int
		Declared        bool
	}
	var list struct{ Limits []limit }
	b.get(&list, "/api/limits")
	assert.Equal(t, []limit{
		{Type: "mail", By: "org_id", Parallel: 3}, {Queue: "bank", By: "payload.account", Parallel: 1, Rate: 100},
	}, list.Limits)

	var last string
	for _, jobType := range []string{"mail", "post", "mail"} {
		made := b.send(b.everything, http.MethodPost, "/api/jobs/enqueue",
			map[string]any{"orgId": "acme", "type": jobType, "queue": "bank", "payload": map[string]any{"account": "k"}})
		require.Equal(t, http.StatusCreated, made.status, string(made.body))
		var job struct{ ID string }
		made.into(t, &job)
		last = job.ID
		_, err = b.Pool.Exec(t.Context(), `SELECT daybook.check_waits()`)
		require.NoError(t, err)
	}
	var keys struct {
		Keys []struct {
			OrgID, Key        string
			Admitted, Waiting int
		}
	}
	b.get(&keys, "/api/limits/queues/bank/keys")
	require.Len(t, keys.Keys, 1)
	assert.Equal(t, []int{1, 2}, []int{keys.Keys[0].Admitted, keys.Keys[0].Waiting})
	b.get(&keys, "/api/limits/types/mail/keys")
	assert.Empty(t, keys.Keys)
	type standing struct {
		Queue                         string
		AtWork, Parallel, Rate, Ahead int
	}
	var got struct {
		WaitsFor []struct {
			What, ID string
			Limit    standing
		}
	}
	b.get(&got, "/api/jobs/"+last)
	require.Len(t, got.WaitsFor, 1)
	assert.Equal(t, "k", got.WaitsFor[0].ID)
	assert.Equal(t, standing{Queue: "bank", AtWork: 1, Parallel: 1, Rate: 100, Ahead: 1}, got.WaitsFor[0].Limit)
	var u struct{ Pending, Due int }
	b.get(&u, "/api/queues/bank")
	assert.Equal(t, 3, u.Pending)
	assert.Equal(t, 1, u.Due, "what stands in a line waits")
	put("/api/limits/queues/bank", `{}`, `{"queue": "bank", "changed": true}`)
}
