package handlers

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

const airtableToken = "patT0psecret.0123"

// airtableTable is a server that keeps one table as Airtable does: an upsert changes the record
// that has the key, or makes one.
type airtableTable struct {
	*receiver
	mu      sync.Mutex
	records []map[string]any
	// answer, if it is there, answers instead, and reports whether it has.
	answer func(w http.ResponseWriter, n int) bool
	asked  int
}

func serveAirtable(t *testing.T) *airtableTable {
	t.Helper()
	s := &airtableTable{}
	s.receiver = receive(t, nil)
	s.Config.Handler = s.keep(s.upsert)
	return s
}

func (s *airtableTable) upsert(w http.ResponseWriter, _ *http.Request) {
	all := s.requests()
	body := all[len(all)-1].body
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.answer != nil && s.answer(w, s.asked) {
		return
	}
	var q struct {
		PerformUpsert struct{ FieldsToMergeOn []string }
		Records       []struct{ Fields map[string]any }
	}
	if json.Unmarshal(body, &q) != nil || len(q.Records) > 10 || len(q.PerformUpsert.FieldsToMergeOn) != 1 {
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	key := q.PerformUpsert.FieldsToMergeOn[0]
	var said airtableAnswer
	for _, r := range q.Records {
		id, found := "", false
		for i, have := range s.records {
			if have[key] == r.Fields[key] {
				maps.Copy(s.records[i], r.Fields)
				id, found = fmt.Sprintf("rec%d", i), true
			}
		}
		if !found {
			id = fmt.Sprintf("rec%d", len(s.records))
			s.records = append(s.records, r.Fields)
			said.Created = append(said.Created, id)
		} else {
			said.Updated = append(said.Updated, id)
		}
		said.Records = append(said.Records, struct {
			ID string `json:"id"`
		}{id})
	}
	_ = json.NewEncoder(w).Encode(said)
}

// syncs registers the type with a server.
func (b *bundle) syncs(url string, more map[string]string) {
	b.t.Helper()
	vars := map[string]string{
		"DAYBOOK_AIRTABLE_URL": url, "DAYBOOK_AIRTABLE_TOKEN_DEFAULT": airtableToken, "DAYBOOK_SECRET_ORGS_DEFAULT": org,
		"DAYBOOK_AIRTABLE_TOKEN_OTHERS": airtableToken, "DAYBOOK_SECRET_ORGS_OTHERS": "acme",
	}
	maps.Copy(vars, more)
	b.variables(vars)
}

// submission is a payload as an application writes it that had the token in it before.
func submission() AirtableSync {
	return AirtableSync{
		FormID: "form-1", SubmissionID: "sub-1",
		Data: json.RawMessage(`{"name": "Ada", "age": 36, "big": 12345678901234567890, "topics": ["math", "poetry"], "cv": [{"url": "https://example.com/cv.pdf", "name": "cv.pdf"}],
			"address": {"city": "London"}, "secret_note": "not of the form"}`),
		Schema: json.RawMessage(`{"fields": [{"id": "name", "label": "Full name"}, {"id": "age", "label": "Age", "airtableField": "Years"}, {"id": "big"}, {"id": "topics", "label": "Topics"},
			{"id": "cv", "label": "CV"}, {"id": "address", "label": "Address"}]}`),
		Settings: AirtableSettings{BaseID: "app0123", TableName: "Applications 2026/1"},
	}
}

func TestAirtableWritesOneRecordASubmission(t *testing.T) {
	t.Parallel()
	s := serveAirtable(t)
	b := setup(t)
	b.syncs(s.URL, nil)

	first := result[AirtableResult](t, b.run(submission()))
	again := submission()
	again.Settings.FormField = "Form"
	second := result[AirtableResult](t, b.run(again))

	assert.Equal(t, AirtableResult{Records: []string{"rec0"}, Created: 1, Skipped: []string{"secret_note"}}, first)
	assert.Equal(t, AirtableResult{Records: []string{"rec0"}, Updated: 1, Skipped: []string{"secret_note"}}, second)
	assert.Equal(t, []map[string]any{{
		"Submission ID": "sub-1", "Form": "form-1", "Full name": "Ada", "Years": 36.0, "big": 12345678901234567890.0,
		"Topics":  []any{"math", "poetry"},
		"CV":      []any{map[string]any{"url": "https://example.com/cv.pdf", "filename": "cv.pdf"}},
		"Address": `{"city":"London"}`,
	}}, s.records)
	got := s.requests()[0]
	assert.Equal(t, "PATCH /v0/app0123/Applications%202026%2F1", got.method+" "+got.path)
	assert.Equal(t, "Bearer "+airtableToken, got.header.Get("Authorization"))
	assert.Contains(t, string(got.body), "12345678901234567890", "a number is written as it came")
	assert.NotContains(t, b.everything(), "T0psecret")
}

// An attempt that ended after the record was written writes the same one again.
func TestAirtableRepeatsWithoutASecondRecord(t *testing.T) {
	t.Parallel()
	s := serveAirtable(t)
	b := setup(t)
	b.syncs(s.URL, nil)
	id := b.enqueue(submission())
	b.work()
	fixture.Uncomplete(t, b.Pool, id)
	b.work()
	assert.Equal(t, 1, result[AirtableResult](t, b.job(id)).Updated)
	assert.Len(t, s.records, 1)
}

func TestAirtableSendsTenRecordsARequest(t *testing.T) {
	t.Parallel()
	s := serveAirtable(t)
	b := setup(t)
	b.syncs(s.URL, map[string]string{"DAYBOOK_AIRTABLE_KEY_FIELD": "Key"})
	p := AirtableSync{Settings: AirtableSettings{BaseID: "app0123", TableName: "tbl1"}}
	for i := range 21 {
		p.Records = append(p.Records, AirtableRecord{SubmissionID: fmt.Sprint(i), Data: json.RawMessage(`{"a": true}`)})
	}
	done := result[AirtableResult](t, b.run(p))
	assert.Equal(t, 21, done.Created)
	assert.Len(t, done.Records, 21)
	assert.Len(t, s.requests(), 3)
	assert.Equal(t, "20", s.records[20]["Key"])
}

func TestAirtableFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		header map[string]string
		body   string
		code   models.ErrorCode
		state  models.JobState
		text   string
		wait   time.Duration
	}{
		"too many": {
			429, nil, `{"errors":[{"error":"RATE_LIMIT_REACHED"}]}`, models.CodeRateLimited,
			models.JobPending, "answered 429", 30 * time.Second,
		},
		"too many, longer": {
			429,
			map[string]string{"Retry-After": "90"},
			``, models.CodeRateLimited, models.JobPending,
			"answered 429", 90 * time.Second,
		},
		"too many, shorter": {
			429,
			map[string]string{"Retry-After": "1"},
			``, models.CodeRateLimited, models.JobPending,
			"answered 429", 30 * time.Second,
		},
		"out of order": {
			503, nil, `<html>`, models.CodeUpstream5xx, models.JobPending, "answered 503",
			5 * time.Minute,
		},
		"login": {
			401, nil,
			`{"error":{"type":"AUTHENTICATION_REQUIRED","message":"Authentication required for ` + airtableToken + `"}}`,
			models.CodeAuthenticationFailed, models.JobFailed, "required for *** (AUTHENTICATION_REQUIRED)", 0,
		},
		"not allowed": {
			403, nil, `{"error":{"type":"INVALID_PERMISSIONS","message":"No."}}`,
			models.CodeAuthenticationFailed, models.JobFailed, "INVALID_PERMISSIONS", 0,
		},
		"no table": {404, nil, `{"error":"NOT_FOUND"}`, models.CodeNotFound, models.JobFailed, "NOT_FOUND", 0},
		"no column": {
			422, nil,
			`{"error":{"type":"UNKNOWN_FIELD_NAME","message":"Unknown field name: \"Years\""}}`, models.CodeHandlerError,
			models.JobFailed, `Unknown field name: "Years"`, 0,
		},
		"not what was asked": {
			200, nil, `<html>`, models.CodeUpstream5xx, models.JobPending,
			"without saying what it wrote", 5 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			s := receive(t, func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range c.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(c.status)
				_, _ = fmt.Fprint(w, c.body)
			})
			b.syncs(s.URL, nil)
			j := b.run(submission())
			assert.Equal(t, c.code, j.Code)
			assert.Equal(t, c.state, j.State)
			assert.Contains(t, j.Error, c.text)
			assert.NotContains(t, b.everything(), "T0psecret")
			if c.wait > 0 {
				jittered(t, c.wait, j.Wait)
			}
		})
	}
}

// After a base has answered 429, jobs of that base are put off without an attempt, and those of
// others go on.
func TestAirtableLeavesABusyBaseAlone(t *testing.T) {
	t.Parallel()
	s := serveAirtable(t)
	s.answer = func(w http.ResponseWriter, n int) bool {
		if n == 1 {
			w.WriteHeader(http.StatusTooManyRequests)
		}
		return n == 1
	}
	b := setup(t)
	b.syncs(s.URL, nil)
	b.run(submission())
	waits, goes := submission(), submission()
	waits.SubmissionID, goes.SubmissionID, goes.Settings.BaseID = "sub-2", "sub-3", "app4567"
	put, other := b.enqueue(waits), b.enqueue(goes)
	b.work()
	assert.Equal(t, models.JobPending, b.job(put).State)
	assert.Equal(t, 0, b.count(`SELECT run_count FROM daybook.jobs WHERE id = $1`, put), "no attempt is counted")
	assert.Equal(t, models.JobCompleted, b.job(other).State)
	assert.Len(t, s.requests(), 2)
}

// TestAirtableIsBounded: no answer, no server, and secrets that are missing or another
// organization's.
func TestAirtableIsBounded(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	slow := receive(t, func(http.ResponseWriter, *http.Request) { <-hold })
	t.Cleanup(func() { close(hold) })
	for name, c := range map[string]struct {
		vars   map[string]string
		secret string
		code   models.ErrorCode
		text   string
	}{
		"no answer": {
			map[string]string{"DAYBOOK_AIRTABLE_TIMEOUT": "100ms"},
			"", models.CodeTimeout,
			"did not answer within 100ms",
		},
		"no server": {
			map[string]string{"DAYBOOK_AIRTABLE_URL": "http://127.0.0.1:1"},
			"",
			models.CodeNetworkError, "connection refused",
		},
		"no token":               {nil, "missing", models.CodeAuthenticationFailed, "DAYBOOK_AIRTABLE_TOKEN_MISSING"},
		"another organization's": {nil, "others", models.CodeAuthenticationFailed, "not bound to the organization " + org},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.syncs(slow.URL, c.vars)
			p := submission()
			p.Settings.Secret = c.secret
			j := b.run(p)
			assert.Equal(t, c.code, j.Code)
			assert.Contains(t, j.Error, c.text)
		})
	}
}

func TestAirtableCheck(t *testing.T) {
	t.Parallel()
	require.NoError(t, submission().Check())
	with := func(f func(*AirtableSync)) AirtableSync {
		p := submission()
		f(&p)
		return p
	}
	for want, p := range map[string]AirtableSync{
		"Store the token as the secret DAYBOOK_AIRTABLE_TOKEN_DEFAULT": with(func(p *AirtableSync) { p.Settings.APIKey = "keyT0psecret" }),
		"Store the token as the secret DAYBOOK_AIRTABLE_TOKEN_GRANTS_EU": with(func(p *AirtableSync) {
			p.Settings.APIKey,
				p.Settings.Secret = "keyT0psecret", "grants-eu"
		}),
		"base_id":                  with(func(p *AirtableSync) { p.Settings.BaseID = "app/../x" }),
		"table_name":               with(func(p *AirtableSync) { p.Settings.TableName = ".." }),
		"submissionId is missing":  with(func(p *AirtableSync) { p.SubmissionID = "" }),
		"data is not an object":    with(func(p *AirtableSync) { p.Data = json.RawMessage(`[1]`) }),
		"schema is not an object":  with(func(p *AirtableSync) { p.Schema = json.RawMessage(`[1]`) }),
		"the name of a secret":     with(func(p *AirtableSync) { p.Settings.Secret = "../x" }),
		"records are given beside": with(func(p *AirtableSync) { p.Records = []AirtableRecord{{SubmissionID: "a"}} }),
		"the same submissionId": {
			Records:  []AirtableRecord{{SubmissionID: "a"}, {SubmissionID: "a"}},
			Settings: submission().Settings,
		},
		"records has 501 submissions": {Records: make([]AirtableRecord, 501), Settings: submission().Settings},
	} {
		err := p.Check()
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "T0psecret")
	}
}

// What was refused when the job was enqueued is refused by the handler as well: SQL does not check
// payloads.
func TestAirtableRefusesCredentials(t *testing.T) {
	t.Parallel()
	s := serveAirtable(t)
	b := setup(t)
	b.syncs(s.URL, nil)
	p := submission()
	p.Settings.APIKey = "keyT0psecret"
	_, err := queue.EnqueueJob(t.Context(), b.Pool, org, p, queue.JobOptions{})
	require.ErrorContains(t, err, "DAYBOOK_AIRTABLE_TOKEN_DEFAULT")
	j := b.run(p)
	assert.Equal(t, models.JobFailed, j.State)
	assert.Equal(t, models.CodePayloadInvalid, j.Code)
	assert.Contains(t, j.Error, "DAYBOOK_AIRTABLE_TOKEN_DEFAULT")
	assert.NotContains(t, b.everything(), "T0psecret")
	assert.Empty(t, s.requests())
}

func TestAirtableColumns(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]columns{
		``: nil, `null`: nil, `{}`: nil,
		`{"fields": [{"id": "a", "label": "A"}, {"name": "b"}]}`:                             {"a": "A", "b": "b"},
		`{"type": "object", "properties": {"a": {"type": "string", "title": "A"}, "b": {}}}`: {"a": "A", "b": "b"},
		`{"a": "A", "b": {"column": "B"}, "version": 2}`:                                     {"a": "A", "b": "B"},
	} {
		got, err := columnsOf(json.RawMessage(schema))
		require.NoError(t, err, schema)
		assert.Equal(t, want, got, schema)
	}
	assert.True(t, strings.HasPrefix(cell([]any{map[string]any{"a": 1}, "b"}).(string), `[{"a":1}`))
}
