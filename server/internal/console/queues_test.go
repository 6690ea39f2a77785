package console_test

import (
	"maps"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// TestQueuesPage makes a named queue and presses each button of its page; all are in the log of
// actions.
func TestQueuesPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	_, body := s.get("/console/queues")
	require.Contains(t, body, "There is no named queue")
	status, body := s.post("/console/queues",
		url.Values{
			"name": {"bank"}, "fleet": {"shop"}, "maxParallel": {"10"}, "rate": {"100"}, "rateSeconds": {"60"},
			"owner": {"payments"},
		})
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, "<h1>Queue bank</h1>")
	require.Contains(t, body, "10 jobs at a time")
	require.Contains(t, body, "100 in 1 min")
	page := "/console/queues/bank"
	for _, c := range []struct {
		button string
		form   url.Values
		shows  string
	}{
		{"/pause", nil, ">paused<"},
		{"/pause", nil, "Nothing was changed: the queue is paused already."},
		{"/resume", nil, "<dt>Paused</dt><dd>no</dd>"},
		{"/release", nil, "<dd>its programs</dd>"},
		{"/release", nil, "Nothing was changed: the settings are those of its programs already."},
		{"/set", url.Values{"maxParallel": {"3"}, "fleet": {"shop"}}, "3 jobs at a time"},
		{
			"/set",
			url.Values{"maxParallel": {"3"}, "fleet": {"shop"}},
			"Nothing was changed: the queue has these settings already.",
		},
		{
			"/set",
			url.Values{"rate": {"2"}, "rateSeconds": {"0.5"}, "rateBurst": {"4"}, "fleet": {"shop"}},
			"2 in 500 ms, 4 at once",
		},
	} {
		form := url.Values{"next": {page}}
		maps.Copy(form, c.form)
		status, body := s.post(page+c.button, form)
		require.Equal(t, http.StatusOK, status, "%s: %s", c.button, body)
		require.Contains(t, body, c.shows, c.button)
	}
	for button, form := range map[string]url.Values{
		"/set": {"maxParallel": {"-1"}}, "": {"name": {"a b"}},
	} {
		at := page + button
		if button == "" {
			at = "/console/queues"
		}
		status, _ := s.post(at, form)
		require.Equal(t, http.StatusUnprocessableEntity, status, at)
	}
	status, _ = s.post("/console/queues", url.Values{"name": {"bank"}})
	require.Equal(t, http.StatusConflict, status)

	_, err := s.Pool.Exec(t.Context(), `SELECT daybook.enqueue_job('acme', 'mail', '{}', queue => 'bank')`)
	require.NoError(t, err)
	_, body = s.get(page)
	require.Contains(t, body, "no worker of its fleet runs")
	_, body = s.get("/console/queues?fleet=shop")
	require.Contains(t, body, `href="/console/queues/bank"`)
	require.Regexp(t, `(?s)>Set by</th>.*<td>test</td>`, body)
	_, body = s.get("/console/queues?fleet=none")
	require.Contains(t, body, "The fleet has no queue")
	status, _ = s.post(page+"/delete", nil)
	require.Equal(t, http.StatusConflict, status)
	_, err = s.Pool.Exec(t.Context(), `DELETE FROM daybook.jobs`)
	require.NoError(t, err)
	status, body = s.post(page+"/delete", nil)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "The queue bank is deleted.")
	status, _ = s.get(page)
	require.Equal(t, http.StatusNotFound, status)

	list, err := actions.List(t.Context(), s.Pool, actions.Filter{})
	require.NoError(t, err)
	require.Len(t, list, 14)
	for _, one := range list {
		require.Contains(t, one.Action, "queues.")
		require.Equal(t, actions.Console, one.Via)
	}

	s.signIn("acme", tokens.ScopeRead, tokens.ScopeOperate)
	status, _ = s.get("/console/queues")
	require.Equal(t, http.StatusForbidden, status, "queues have jobs of all organizations")
	status, _ = s.post("/console/queues", url.Values{"name": {"mine"}})
	require.Equal(t, http.StatusForbidden, status)
}

// A job's page and the list of jobs name the queue and the fleet, and say what holds the job back.
func TestJobsNameTheirQueue(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, err := s.Pool.Exec(t.Context(), `
SELECT daybook.set_queue('print', 'shop');
SELECT daybook.enqueue_job('acme', 'mail', '{}', queue => 'print');
INSERT INTO daybook.job_workers (id, name, types) VALUES ('w', 'w', '{mail}')`)
	require.NoError(t, err)
	var id string
	require.NoError(t, s.Pool.QueryRow(t.Context(), `SELECT id FROM daybook.jobs`).Scan(&id))
	s.signIn("", tokens.ScopeRead)
	_, body := s.get("/console/jobs")
	require.Contains(t, body, "queue print, fleet shop")
	_, body = s.get("/console/jobs/" + id)
	require.Contains(t, body, `<a href="/console/queues/print">print</a>, fleet shop`)
	require.Contains(t, body, "No worker of the fleet shop", "one of another fleet works none of it")
	_, err = s.Pool.Exec(t.Context(), `SELECT daybook.pause_queue('print')`)
	require.NoError(t, err)
	_, body = s.get("/console/jobs/" + id)
	require.Contains(t, body, "Its queue print is paused")

	s.signIn("acme", tokens.ScopeRead)
	_, body = s.get("/console/jobs/" + id)
	require.Contains(t, body, "print, fleet shop")
	require.NotContains(t, body, `href="/console/queues/print">print`, "the page of queues is for a token of all")
}

// TestLimitsByKey: the page of the queues lists limits by key, the page of each has its keys and its
// change, and a job in the line says how it stands.
func TestLimitsByKey(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	s.exec(`SELECT daybook.set_queue('bank')`)
	require.Contains(t, s.see("/console/queues"), "No type and no queue is limited by key")
	require.Regexp(t, `href="/console/limits/queue/bank">none<`, s.see("/console/queues/bank"))
	status, body := s.post("/console/limits/queue/bank", url.Values{"by": {"org_id"}, "parallel": {"2"}})
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, "<h1>Limit of queue/bank</h1>")
	require.Contains(t, body, "2 at a time")
	require.Contains(t, body, "No job waits for it")
	status, body = s.post("/console/limits/", url.Values{"type": {"mail"}, "rate": {"10"}, "rateSeconds": {"60"}})
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, "10 in 1 min")
	list := s.see("/console/queues")
	require.Contains(t, list, `href="/console/limits/queue/bank">queue bank<`)
	require.Contains(t, list, `href="/console/limits/mail">mail<`)
	require.Contains(t, s.see("/console/queues/bank"), "2 at a time</a>")

	s.exec(`SELECT daybook.enqueue_job('acme', 'post', '{}', queue => 'bank', ready_at => now() - i * interval '1 minute') FROM generate_series(1, 4) i`)
	s.exec(`SELECT daybook.check_waits()`)
	require.Regexp(t, `(?s)<td>acme</td>.*<td class="n">2</td><td class="n">2</td>`, s.see("/console/limits/queue/bank"))
	var last string
	require.NoError(t, s.Pool.QueryRow(t.Context(),
		`SELECT id FROM daybook.jobs WHERE fleet = -2 ORDER BY priority, ready_at, id OFFSET 1`).Scan(&last))
	body = s.see("/console/jobs/" + last)
	require.Contains(t, body, `in the queue bank: 2 of 2 at work, 1 ahead of it`)
	require.Contains(t, body, "waits for the limit of its key")

	status, body = s.post("/console/limits/queue/bank", nil)
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, "<dt>Limit</dt><dd>none</dd>")
	for path, want := range map[string]int{
		"/console/limits/queue/none": http.StatusNotFound, "/console/limits/a%20b": http.StatusUnprocessableEntity,
	} {
		status, _ = s.post(path, url.Values{"parallel": {"1"}})
		require.Equal(t, want, status, path)
	}
}
