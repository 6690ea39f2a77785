package console_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/server/internal/console"
)

// TestEditPayload corrects the payload of a dead letter by the form: what is wrong stands beside its
// field, secrets stay as they are, and the second of two who edit the job is told.
func TestEditPayload(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.exec(`
INSERT INTO daybook.jobs (id, org_id, type, payload, state, last_error, last_error_code, finished_at, run_count)
VALUES ('dead', 'acme', 'bill', '{"currency": "EU", "lines": [1, 2], "api_key": "hunter22"}', 'failed', 'e', 'INVALID', now(), 3)`)
	s.signIn("acme", tokens.ScopeRead, tokens.ScopeOperate)
	status, body := s.get("/console/jobs/dead")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "/console/jobs/dead/edit")
	status, body = s.get("/console/jobs/dead/edit")
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, "[redacted]")
	require.NotContains(t, body, "hunter22")

	form := url.Values{
		"generation": {"0"}, "name": {"api_key", "currency", "lines", "note"},
		"value": {`"[redacted]"`, `EUR`, `[1, 3]`, `"[redacted]"`},
	}
	_, body = s.post("/console/jobs/dead/edit/compare", form)
	assert.Contains(t, body, "It is no JSON: a text stands in quotes.")
	assert.Contains(t, body, "It has [redacted] where it had not")
	assert.NotContains(t, body, "Save and retry")
	status, _ = s.post("/console/jobs/dead/edit", form)
	assert.Equal(t, http.StatusUnprocessableEntity, status)

	form["value"] = []string{`"[redacted]"`, `"EUR"`, `[1, 3]`, ``}
	_, body = s.post("/console/jobs/dead/edit/compare", form)
	assert.Contains(t, body, "<code>/currency</code>")
	assert.Contains(t, body, "<code>/lines/1</code>")
	assert.Contains(t, body, "Save and retry")
	form.Set("retry", "now")
	status, body = s.post("/console/jobs/dead/edit", form)
	require.Equal(t, http.StatusOK, status, body) // the client follows to the job's page
	assert.Contains(t, body, "The payload was changed. The job is pending again.")
	assert.Contains(t, body, "Edits of the payload")
	assert.Equal(t, 1, fixture.Count(t, s.Pool, `
SELECT count(*) FROM daybook.jobs WHERE state = 'pending' AND payload = '{"currency": "EUR", "lines": [1, 3], "api_key": "hunter22"}'
   AND edits -> 0 ->> 'by' <> '' AND (edits -> 0 ->> 'attempts')::int = 3`))
	assert.Equal(t, 1, fixture.Count(t, s.Pool, `SELECT count(*) FROM daybook.actions WHERE action = 'jobs.edit' AND outcome = 'done' AND details::text NOT LIKE '%EUR%'`))
	status, _ = s.post("/console/jobs/dead/edit", form)
	assert.Equal(t, http.StatusConflict, status, "the form is of an earlier generation")
}

// sms is a payload with a schema.
type sms struct {
	To    string `json:"to"`
	Text  string `json:"text"`
	Parts int    `json:"parts,omitempty"`
}

// checksSMS has the console check payloads of the type sms.
func checksSMS(o *console.Options) {
	o.CheckPayload = func(jobType string, raw json.RawMessage) error {
		if jobType != "sms" {
			return nil
		}
		schema, err := payload.SchemaFor(reflect.TypeFor[sms]())
		if err != nil {
			return err
		}
		return schema.Validate(raw)
	}
}

// deadLetter makes a dead letter with a payload.
func (s *site) deadLetter(id, jobType, raw string) {
	s.exec(`
INSERT INTO daybook.jobs (id, org_id, type, payload, state, last_error, last_error_code, finished_at, run_count)
VALUES ($1, 'acme', $2, $3::text::jsonb, 'failed', 'e', 'INVALID', clock_timestamp(), 3)`, id, jobType, raw)
}

// TestAllErrorsOfAForm stand beside their fields at once: what is no JSON, what the schema refuses,
// and what is missing.
func TestAllErrorsOfAForm(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, checksSMS)
	s.deadLetter("dead", "sms", `{"to": 1, "parts": "many", "colour": "red"}`)
	s.signIn("acme", tokens.ScopeRead, tokens.ScopeOperate)
	status, body := s.post("/console/jobs/dead/edit/compare", url.Values{
		"generation": {"0"}, "name": {"to", "parts", "colour"}, "value": {`1`, `many`, `"red"`},
	})
	require.Equal(t, http.StatusOK, status)
	for _, says := range []string{
		"4 fields are wrong", "It is number and should be string.", "It is no JSON: a text stands in quotes.",
		"The schema has no such field.", "It is missing.", `name="name" value="text"`,
	} {
		assert.Contains(t, body, says)
	}
	assert.Equal(t, 4, strings.Count(body, `aria-invalid="true"`))
	assert.NotContains(t, body, "Save and retry")
	_, body = s.post("/console/jobs/dead/edit/compare", url.Values{
		"generation": {"0"}, "name": {"to", "text"}, "value": {`"+4912"`, `"hello"`},
	})
	assert.Contains(t, body, "Save and retry")
}

// TestSecretsInLists stay with the elements that they belong to, or are asked for.
func TestSecretsInLists(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.deadLetter("dead", "bill", `{"list": [{"n": 1, "token": "first"}, {"n": 2, "token": "second"}]}`)
	s.signIn("acme", tokens.ScopeRead, tokens.ScopeOperate)
	compare := func(value string) string {
		_, body := s.post("/console/jobs/dead/edit/compare", url.Values{"generation": {"0"}, "name": {"list"}, "value": {value}})
		return body
	}
	for value, want := range map[string]string{
		`[{"n": 2, "token": "[redacted]"}]`:                                  `{"list": [{"n": 2, "token": "second"}]}`,
		`[{"n": 2, "token": "[redacted]"}, {"n": 1, "token": "[redacted]"}]`: `{"list": [{"n": 2, "token": "second"}, {"n": 1, "token": "first"}]}`,
		`[{"n": 1, "token": "[redacted]"}, {"n": 3, "token": "[redacted]"}]`: `{"list": [{"n": 1, "token": "first"}, {"n": 3, "token": "second"}]}`,
	} {
		assert.Contains(t, compare(value), "Save and retry", value)
		s.exec(`UPDATE daybook.jobs SET payload = '{"list": [{"n": 1, "token": "first"}, {"n": 2, "token": "second"}]}', generation = 0, edits = NULL`)
		status, body := s.post("/console/jobs/dead/edit", url.Values{"generation": {"0"}, "name": {"list"}, "value": {value}})
		require.Equal(t, http.StatusOK, status, body)
		assert.Equal(t, 1, fixture.Count(t, s.Pool, `SELECT count(*) FROM daybook.jobs WHERE payload = $1::text::jsonb`, want), value)
		s.exec(`UPDATE daybook.jobs SET payload = '{"list": [{"n": 1, "token": "first"}, {"n": 2, "token": "second"}]}', generation = 0, edits = NULL`)
	}
	assert.Contains(t, compare(`[{"n": 5, "token": "[redacted]"}]`), "write the value itself", "which one it was cannot be told")
}

// TestEditOfAnEncryptedPayload reaches what is there in plain, and adds nothing in plain.
func TestEditOfAnEncryptedPayload(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.deadLetter("dead", "bill", `{"n": 1, "$encrypted": {"key": "k", "wrapped": "AA==", "data": "AA=="}}`)
	s.signIn("acme", tokens.ScopeRead, tokens.ScopeOperate)
	body := s.see("/console/jobs/dead/edit")
	assert.Contains(t, body, "Encrypted fields are not shown")
	assert.NotContains(t, body, "AA==")
	form := url.Values{"generation": {"0"}, "name": {"n", "secret_note"}, "value": {"2", `"x"`}}
	_, body = s.post("/console/jobs/dead/edit/compare", form)
	assert.Contains(t, body, "a further field would be kept in plain")
	form["value"] = []string{"2", ""}
	status, _ := s.post("/console/jobs/dead/edit", form)
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, 1, fixture.Count(t, s.Pool, `SELECT count(*) FROM daybook.jobs WHERE payload -> 'n' = '2' AND payload ? '$encrypted'`))
}
