package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/server"
)

// api is the HTTP API on the database of a test, and a token of it that may do everything.
type api struct {
	t     *testing.T
	url   string
	token string
}

func (b *bundle) api() *api {
	b.t.Helper()
	pages, err := server.New(b.t.Context(), server.Options{Pool: b.Pool})
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = pages.Close() })
	serving := httptest.NewServer(pages)
	b.t.Cleanup(serving.Close)
	_, secret, err := tokens.Create(b.t.Context(), b.Pool, tokens.NewToken{Name: "test", Scopes: tokens.Scopes()})
	require.NoError(b.t, err)
	return &api{b.t, serving.URL, secret}
}

// ask sends a request that must succeed, and returns its answer.
func (h *api) ask(method, path, body string) any {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, strings.NewReader(body))
	require.NoError(h.t, err)
	r.Header.Set("Authorization", "Bearer "+h.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(h.t, err)
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	require.NoError(h.t, err)
	require.Less(h.t, response.StatusCode, 300, "%s %s: %s", method, path, data)
	var answer any
	require.NoError(h.t, json.Unmarshal(data, &answer))
	return answer
}

// printed is what a command prints with --json.
func (b *bundle) printed(args ...string) any {
	b.t.Helper()
	var out any
	require.NoError(b.t, json.Unmarshal([]byte(b.ok(append(args, "--json")...)), &out))
	return out
}

// steady leaves out what differs between two readings of one thing.
func steady(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range []string{"ageSeconds", "callbackToken"} {
			if _, has := v[member]; has {
				v[member] = "left out"
			}
		}
		if _, has := v["counts"]; has { // the clock, of how a queue stands
			delete(v, "at")
		}
		for name := range v {
			v[name] = steady(v[name])
		}
	case []any:
		for i := range v {
			v[i] = steady(v[i])
		}
	}
	return v
}

// everyKind fills a database with jobs of each kind, in each state, and returns the ids of the
// background jobs.
func (b *bundle) everyKind() (jobs []string) {
	b.t.Helper()
	b.sample("acme")
	fixture.Ready(b.t, b.Pool, fixture.Invoice("acme", "sale", 1000), fixture.Unbalanced("acme", "wrong"))
	b.work()
	b.ok("accounting", "repost", "acme", "sale")
	b.work()
	fixture.Ready(b.t, b.Pool, fixture.Invoice("acme", "sale", 1000)) // the same again: confirmed
	b.work()
	b.ok("accounting", "enqueue", "--create", "acme", "later", "--version", "3", "--priority", "low", "--ready-at",
		"2999-01-01T00:00:00Z")
	b.ok("accounting", "enqueue", "--create", "acme", "leased", "--version", "1", "--priority", "high")

	b.ok("queues", "create", "bank", "--max-parallel", "10", "--rate", "100", "--per", "1m", "--burst", "3", "--owner",
		"payments")
	b.ok("queues", "pause", "bank")
	first := b.background("mail", "--org", "acme", "--payload", `{"html": "<a&b>", "snake_case": 1}`, "--key", "k",
		"--link", "order=17", "--link", "form=f", "--priority", "high",
		"--max-attempts", "7", "--queue", "bank", "--sequence", "s", "--delay", "1h")
	second := b.background("mail", "--org", "acme", "--sequence", "s")
	third := b.background("mail", "--org", "other", "--unique")
	jobs = []string{
		first, second, third,
		b.background("mail", "--org", "acme", "--after", first, "--priority", "low"),
		b.background("mail", "--org", "acme", "--callback", "paid"),
		b.background("mail", "--org", "acme", "--payload", `{"n": 1}`),
		b.background("mail", "--org", "acme", "--payload", `{"n": 2}`),
	}
	b.ok("jobs", "cancel", third)
	for _, stmt := range []string{
		`SELECT daybook.check_waits()`,
		`INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, attempt, outcome, error_code, error, started_at, turn_id, fence, worker, workflow_run_id, times, first_started_at)
SELECT id, org_id, 'jobs', type, n, 'retried', 'TIMEOUT', 'too slow', now() - interval '1 second', 't', 1, 'w', 'run', n, CASE WHEN n > 1 THEN now() - interval '1 hour' END
  FROM daybook.jobs, generate_series(1, 3) n WHERE payload = '{"n": 1}'`,
		`UPDATE daybook.jobs SET state = 'failed', run_count = 3, last_error = 'too slow', last_error_code = 'TIMEOUT', last_attempted_at = now(), finished_at = now() WHERE payload = '{"n": 1}'`,
		`UPDATE daybook.jobs SET state = 'leased', turn_id = 'turn', fence = 1, leased_generation = generation, run_count = 1, worker = 'w', attempt_started_at = now(), last_attempted_at = now(),
       progress = '{"done_so_far": 1}', cancel_requested = true WHERE payload = '{"n": 2}'`,
		`UPDATE daybook.accounting_work_queue SET state = 'leased', turn_id = 'turn', fence = 1, leased_generation = generation, run_count = 1, worker = 'w', attempt_started_at = now(),
       last_attempted_at = now(), cancel_requested = true WHERE document_id = 'leased'`,
		`INSERT INTO daybook.posted_elsewhere (org_id, document_id, document_version, posted_on, system, next, entries, left_version)
VALUES ('acme', 'later', 2, '2027-01-31', 'legacy', 'wait', '[{"account": "1200", "side": "debit", "amount": 500, "currency": "EUR"}]', 2)`,
	} {
		_, err := b.Pool.Exec(b.t.Context(), stmt)
		require.NoError(b.t, err, stmt)
	}

	b.task("email", "--payload", `{"task_type": "email"}`)
	b.task("sms", "--delay", "1h")
	_, err := b.Pool.Exec(b.t.Context(), `SELECT queues.dequeue_next_available_task()`)
	require.NoError(b.t, err)
	_, err = b.Pool.Exec(b.t.Context(), `SELECT queues.fail_task(1, 'busy'), queues.complete_task(1)`)
	require.NoError(b.t, err)
	b.task("fax")
	return jobs
}

// TestCommandsAndAPINameAlike: what a command prints of a thing and what the HTTP API answers have
// the same members and values. A command may show more, which is named here.
func TestCommandsAndAPINameAlike(t *testing.T) {
	t.Parallel()
	b := setup(t)
	jobs := b.everyKind()
	h := b.api()
	type pair struct {
		command, path string
		// member of the API's answer is compared with the same member of what is printed; empty: the
		// whole.
		member string
		// more are members that the command alone shows.
		more []string
	}
	pairs := []pair{
		{command: "jobs list", path: "/api/jobs"},
		{command: "jobs list --state failed --limit 1", path: "/api/jobs?state=failed&limit=1"},
		{command: "jobs list --limit 2", path: "/api/jobs?limit=2"},
		{command: "jobs stats", path: "/api/stats", member: "jobs"},
		{command: "status --no-temporal", path: "/api/stats", member: "queues"},
		{command: "status --no-temporal --org acme", path: "/api/stats?orgId=acme", member: "queues"},
		{command: "accounting list", path: "/api/accounting/jobs"},
		{command: "accounting elsewhere acme later", path: "/api/accounting/jobs/later/elsewhere?orgId=acme"},
		{command: "queues list", path: "/api/queues"},
		{command: "tasks list", path: "/api/tasks"},
		{command: "tasks history 1", path: "/api/tasks/1/history"},
		{command: "tasks history 1 --limit 2", path: "/api/tasks/1/history?limit=2"},
		{command: "entries --org acme", path: "/api/entries?orgId=acme"},
		{command: "entries --org acme --limit 2", path: "/api/entries?orgId=acme&limit=2"},
		{command: "trial-balance --org acme", path: "/api/trial-balance?orgId=acme"},
		{
			command: "trial-balance --org acme --from 2020-01-01 --to 2020-12-31",
			path:    "/api/trial-balance?orgId=acme&from=2020-01-01&to=2020-12-31",
		},
		{command: "actions list", path: "/api/actions"},
	}
	for _, id := range jobs {
		pairs = append(pairs, pair{command: "jobs show " + id, path: "/api/jobs/" + id + "?limit=20"})
	}
	pairs = append(pairs, pair{command: "jobs show " + jobs[5] + " --limit 1", path: "/api/jobs/" + jobs[5] + "?limit=1"})
	for _, document := range []string{"sale", "wrong", "later", "leased"} {
		pairs = append(
			pairs,
			pair{
				command: "accounting show acme " + document, path: "/api/accounting/jobs/" + document + "?orgId=acme",
				more: []string{"impacts"},
			},
			pair{
				command: "explain acme " + document, path: "/api/documents/" + document + "?orgId=acme",
				more: []string{"job", "elsewhere", "history", "impacts"},
			},
		)
	}
	for _, id := range []string{"1", "2", "3"} {
		pairs = append(pairs, pair{command: "tasks show " + id, path: "/api/tasks/" + id, more: []string{"history"}})
	}
	for _, p := range pairs {
		t.Run(p.command, func(t *testing.T) {
			t.Parallel()
			printed, ok := steady((&bundle{b.DB, t}).printed(strings.Fields(p.command)...)).(map[string]any)
			require.True(t, ok)
			answered, ok := steady((&api{t, h.url, h.token}).ask(http.MethodGet, p.path, "")).(map[string]any)
			require.True(t, ok)
			for _, member := range p.more {
				delete(printed, member)
			}
			if p.member != "" {
				require.NotEmpty(t, answered[p.member])
				assert.Equal(t, answered[p.member], printed[p.member])
				return
			}
			assert.Equal(t, answered, printed)
		})
	}
}

// What `daybook explain` shows of a document's job, entries and attempts is what the API answers of
// each.
func TestExplainNamesAsTheAPIDoes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.everyKind()
	h := b.api()
	explained := b.printed("explain", "acme", "sale").(map[string]any)
	job := h.ask(http.MethodGet, "/api/accounting/jobs/sale?orgId=acme", "").(map[string]any)
	assert.Equal(t, job["history"], explained["history"])
	delete(job, "history")
	assert.Equal(t, job, explained["job"])
	var entries []any
	for _, impact := range explained["impacts"].([]any) {
		entries = append(entries, impact.(map[string]any)["entries"].([]any)...)
	}
	answered := h.ask(http.MethodGet, "/api/entries?orgId=acme&documentId=sale", "").(map[string]any)
	require.NotEmpty(t, entries)
	assert.ElementsMatch(t, answered["entries"], entries)
	ledger := b.printed("accounts", "ledger", "1200", "--org", "acme").(map[string]any)
	trial := h.ask(http.MethodGet, "/api/trial-balance?orgId=acme", "").(map[string]any)
	for _, balance := range ledger["balances"].([]any) {
		assert.Contains(t, trial["accounts"], balance)
	}
}

// Requests that lead to the same are answered alike.
func TestRequestsAreAnsweredAlike(t *testing.T) {
	t.Parallel()
	b := setup(t)
	h := b.api()
	post := func(path, body string) any {
		t.Helper()
		return steady(h.ask(http.MethodPost, path, body))
	}
	printed := func(command string) any {
		t.Helper()
		return steady(b.printed(strings.Fields(command)...))
	}
	id := b.background("mail", "--org", "acme", "--key", "k")
	b.ok("accounting", "enqueue", "--create", "acme", "d", "--version", "1")
	b.deadLetter(b.background("mail", "--org", "acme"), "TIMEOUT")
	assert.Equal(t, post("/api/jobs/enqueue", `{"orgId": "acme", "type": "mail", "payload": {}, "idempotencyKey": "k"}`),
		printed("jobs enqueue mail --org acme --key k"))
	assert.Equal(t, post("/api/accounting/jobs/enqueue", `{"orgId": "acme", "documentId": "d", "version": 1}`),
		printed("accounting enqueue acme d --version 1"))
	assert.Equal(t, post("/api/jobs/retry", `{"all": true, "mode": "now", "dryRun": true}`),
		printed("jobs retry --all --dry-run"))
	assert.Equal(t, post("/api/jobs/cancel", `{"all": true, "dryRun": true}`), printed("jobs cancel --all --dry-run"))
	assert.Equal(t, map[string]any{"jobId": id, "result": "cancelled"}, post("/api/jobs/"+id+"/cancel", ""))
	b.ok("jobs", "retry", id)
	assert.Equal(t, map[string]any{"jobId": id, "result": "cancelled"}, printed("jobs cancel "+id))

	bulk := printed("jobs retry --all").(map[string]any)
	assert.Equal(t, h.ask(http.MethodGet, "/api/bulk-operations/"+bulk["operationId"].(string), ""), bulk)
	assert.Equal(t, bulk, printed("jobs resume "+bulk["operationId"].(string)))
	assert.Equal(t, map[string]any{"id": 1.0}, printed("tasks enqueue fax"))
	assert.Equal(t, map[string]any{"id": 2.0}, post("/api/tasks/enqueue", `{"type": "fax", "payload": {}}`))
	assert.Equal(t, printed("queues create bank --rate 10"), steady(h.ask(http.MethodGet, "/api/queues/bank", "")))
}

// TestCommandsAndAPITakeTheSameOptions: each option of a request is a flag of the command, of the
// same name.
func TestCommandsAndAPITakeTheSameOptions(t *testing.T) {
	t.Parallel()
	document, err := server.OpenAPI("")
	require.NoError(t, err)
	var spec struct {
		Paths map[string]map[string]struct {
			Parameters  []struct{ Name, In string }
			RequestBody struct {
				Content map[string]struct {
					Schema struct {
						Ref string `json:"$ref"`
					}
				}
			}
		}
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	require.NoError(t, json.Unmarshal(document, &spec))
	// The flags that are shorter than the option, and the options that are arguments or no flag ("").
	flags := map[string]string{
		"orgId": "org", "idempotencyKey": "key", "links": "link", "linkKind": "link", "linkId": "link",
		"documentId": "document", "filter": "", "rateSeconds": "per", "rateBurst": "burst",
		"delaySeconds": "delay", "whereKey": "where", "whereValue": "where",
	}
	for command, request := range map[string]string{
		"jobs enqueue": "POST /api/jobs/enqueue", "jobs list": "GET /api/jobs", "jobs retry": "POST /api/jobs/retry",
		"jobs cancel":        "POST /api/jobs/cancel",
		"jobs edit":          "POST /api/jobs/edit",
		"accounting enqueue": "POST /api/accounting/jobs/enqueue", "accounting list": "GET /api/accounting/jobs",
		"accounting elsewhere": "POST /api/accounting/jobs/{documentId}/elsewhere",
		"tasks enqueue":        "POST /api/tasks/enqueue", "tasks list": "GET /api/tasks",
		"queues create": "PUT /api/queues/{name}", "queues list": "GET /api/queues",
		"statement balance": "GET /api/statements/balance", "statement income": "GET /api/statements/income",
		"statement cash": "GET /api/statements/cash", "statement vat": "GET /api/statements/vat",
		"entries": "GET /api/entries", "trial-balance": "GET /api/trial-balance", "actions list": "GET /api/actions",
	} {
		found, _, err := newRoot(&cli.App{}).Find(strings.Fields(command))
		require.NoError(t, err)
		method, path, _ := strings.Cut(request, " ")
		operation, known := spec.Paths[path][strings.ToLower(method)]
		require.True(t, known, request)
		var options []string
		for _, p := range operation.Parameters {
			if p.In == "query" {
				options = append(options, p.Name)
			}
		}
		schema := operation.RequestBody.Content["application/json"].Schema.Ref
		for name := range spec.Components.Schemas[schema[strings.LastIndex(schema, "/")+1:]].Properties {
			options = append(options, name)
		}
		require.NotEmpty(t, options, request)
		for _, option := range options {
			name, other := flags[option]
			if !other {
				name = kebab(option)
			}
			if name == "" || strings.Contains(found.Use, strings.ToUpper(name)) { // an argument
				continue
			}
			assert.NotNil(t, found.Flag(name), "%s has no flag --%s for %s of %s", command, name, option, request)
		}
	}
}

// kebab is a name of camelCase as flags are written.
func kebab(camel string) string {
	var b strings.Builder
	for _, r := range camel {
		if unicode.IsUpper(r) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// What is printed is taken: the words of a priority and of a state, and the ids.
func TestCommandsTakeWhatTheyPrint(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.everyKind()
	for _, j := range b.printed("jobs", "list").(map[string]any)["jobs"].([]any) {
		job := j.(map[string]any)
		text := func(member string) string { return job[member].(string) }
		b.ok("jobs", "enqueue", "--create", text("type"), "--org", text("orgId"), "--priority", text("priority"),
			"--run-at", text("runAt"))
		b.ok("jobs", "list", "--state", text("state"), "--since", text("createdAt"))
		b.ok("jobs", "show", text("id"))
	}
	for _, j := range b.printed("accounting", "list").(map[string]any)["jobs"].([]any) {
		job := j.(map[string]any)
		text := func(member string) string { return job[member].(string) }
		b.ok("accounting", "enqueue", "--create", text("orgId"), text("documentId"), "--version", "9", "--priority",
			text("priority"), "--ready-at", text("readyAt"))
		b.ok("accounting", "list", "--state", text("state"))
	}
}
