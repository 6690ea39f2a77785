package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// task enqueues a task and returns its id.
func (s *site) task(kind, payload string) int64 {
	s.t.Helper()
	var id int64
	s.exec(`SELECT queues.enqueue($1, $2::jsonb)`, kind, payload)
	require.NoError(s.t, s.Pool.QueryRow(s.t.Context(), `SELECT max(task_id) FROM queues.task`).Scan(&id))
	return id
}

func TestTasksAreListedAndShown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead)
	assert.Contains(t, s.see("/console/tasks"), "Enqueue one")
	first := s.task("email", `{"to": "ann", "api_key": "k-1"}`)
	s.exec(`SELECT queues.fail_task(task_id, 'the server answered Bearer abcdefgh12345 with 500') FROM queues.dequeue_next_available_task()`)
	second := s.task("sms", `{}`)
	for filter, want := range map[string][]int64{
		"": {second, first}, "state=failed": {first}, "type=sms": {second},
		"state=ready": {second}, "type=sms&since=1h": {second}, "type=sms&until=1h": nil,
	} {
		body := s.see("/console/tasks?" + filter)
		for _, id := range []int64{first, second} {
			assert.Equal(t, fmt.Sprint(want) != "[]" && strings.Contains(fmt.Sprint(want), fmt.Sprint(id)),
				strings.Contains(body, fmt.Sprintf(`"/console/tasks/%d"`, id)), "%s: %d", filter, id)
		}
	}
	body := s.see(fmt.Sprintf("/console/tasks/%d", first))
	for _, says := range []string{"leased", "failed", "enqueued", "with 500", "A worker has it"} {
		assert.Contains(t, body, says)
	}
	for _, secret := range []string{"abcdefgh12345", "k-1"} {
		assert.NotContains(t, body, secret)
	}
	for _, none := range []string{"999999", "x"} {
		status, _ := s.get("/console/tasks/" + none)
		assert.Equal(t, http.StatusNotFound, status)
	}
	status, _ := s.get("/console/tasks?state=broken")
	assert.Equal(t, http.StatusUnprocessableEntity, status)
}

func TestTasksWantATokenForAllOrganizations(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.task("email", `{}`)
	s.signIn("acme", tokens.ScopeRead, tokens.ScopeOperate)
	for _, path := range []string{"/console/tasks", fmt.Sprintf("/console/tasks/%d", id)} {
		status, body := s.get(path)
		assert.Equal(t, http.StatusForbidden, status, path)
		assert.NotContains(t, body, "email", path)
	}
	assert.Contains(t, s.see(fmt.Sprintf("/console/search?q=%d", id)), "Nothing has")
}

func TestHostileFieldsOfTasksAreText(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead)
	id := s.task("email", fmt.Sprintf(`{"a": %q}`, hostile))
	_, err := s.Pool.Exec(t.Context(), `SELECT queues.fail_task(task_id, $1) FROM queues.dequeue_next_available_task()`,
		hostile)
	require.NoError(t, err)
	bad := url.QueryEscape(hostile)
	for _, path := range []string{
		"/console/tasks", fmt.Sprintf("/console/tasks/%d", id), "/console/tasks?type=" + bad,
		"/console/search?q=" + bad,
	} {
		body := s.see(path)
		assert.False(t, strings.Contains(body, "<script>alert") || strings.Contains(body, "<img src=x"), path)
		assert.Contains(t, body, "&lt;script&gt;", path)
	}
}

func TestSearchGoesToWhatItFinds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	fixture.Organization(t, s.Pool, "acme")
	fixture.Organization(t, s.Pool, "beta")
	job := s.enqueue(store.NewJob{OrgID: "acme", Type: "mail", IdempotencyKey: "key-1"})
	s.enqueue(store.NewJob{OrgID: "acme", Type: "mail", IdempotencyKey: "both"})
	s.enqueue(store.NewJob{OrgID: "beta", Type: "mail", IdempotencyKey: "both"})
	document := s.document("acme", "inv-1")
	task := s.task("email", `{}`)

	s.signIn("", tokens.ScopeRead)
	for q, title := range map[string]string{
		job: "Job mail", "key-1": "Job mail", "inv-1": "Document inv-1", document: "Document inv-1",
		fmt.Sprint(task): fmt.Sprintf("Task %d", task),
	} {
		assert.Contains(t, s.see("/console/search?q="+url.QueryEscape(" "+q+" ")), "<h1>"+title, q)
	}
	body := s.see("/console/search?q=both")
	assert.Contains(t, body, "2 things have")
	assert.Len(t, links(body, "-"), 2)
	assert.Contains(t, s.see("/console/search?q=both&org=beta"), "<h1>Job mail")
	assert.Contains(t, s.see("/console/search?q=none"), "Nothing has")
	assert.Contains(t, s.see("/console/search?q="), "Write the id")

	s.signIn("beta", tokens.ScopeRead)
	for _, q := range []string{job, "key-1", "inv-1", document} {
		assert.Contains(t, s.see("/console/search?q="+url.QueryEscape(q)), "Nothing has", q)
	}
}
