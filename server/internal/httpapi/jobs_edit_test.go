package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// A dead letter gets another payload, of the generation that the caller has read.
func TestEditJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.enqueue(nil)
	b.fail(id, "UPSTREAM_5XX")
	var d answers.JobDetail
	path := "/api/jobs/" + id
	b.get(&d, path)
	assert.Empty(t, d.Edits)
	before := string(d.Payload)
	edit := object{"payload": object{"url": "https://example.com/other"}, "generation": d.Generation, "retry": "now"}
	var change answers.Change
	b.post(&change, path+"/edit", edit)
	assert.Equal(t, "requeued", change.Result)
	b.get(&d, path)
	assert.Equal(t, "pending", d.State)
	assert.JSONEq(t, `{"url": "https://example.com/other"}`, string(d.Payload))
	if assert.Len(t, d.Edits, 1) {
		assert.JSONEq(t, before, string(d.Edits[0].Payload))
		assert.NotEmpty(t, d.Edits[0].By)
		assert.Equal(t, d.Attempts, d.Edits[0].Attempts)
	}
	a := b.send(b.everything, http.MethodPost, path+"/edit", edit)
	assert.Equal(t, http.StatusConflict, a.status)
	assert.Equal(t, "JOB_CHANGED", a.code())
	a = b.send(b.everything, http.MethodPost, path+"/edit", `{"payload": []}`)
	assert.Equal(t, http.StatusUnprocessableEntity, a.status)
	a = b.send(b.token("other", tokens.ScopeOperate), http.MethodPost, path+"/edit", edit)
	assert.Equal(t, "JOB_NOT_FOUND", a.code())
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.actions WHERE action = 'jobs.edit' AND outcome = 'done'`))
}

// Many are edited by a patch, which a dry run tries; those that it does not apply to are left alone.
func TestEditJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.deadLetters(600)
	_, err := b.Pool.Exec(t.Context(), `UPDATE daybook.jobs SET payload = '{"url": "http://a.example", "n": 1}'
 WHERE id IN (SELECT id FROM daybook.jobs LIMIT 550)`)
	assert.NoError(t, err)
	patch := `[{"op": "test", "path": "/n", "value": 1}, {"op": "replace", "path": "/url", "value": "https://b.example"}]`
	var op answers.BulkOperation
	b.post(&op, "/api/jobs/edit", `{"dryRun": true, "patch": `+patch+`}`)
	assert.Equal(t, []int{600, 550, 50}, []int{op.Matched, op.Changed, op.Left})
	assert.Empty(t, op.OperationID)
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs WHERE edits IS NOT NULL`))
	b.post(&op, "/api/jobs/edit", `{"all": true, "retry": "reset", "patch": `+patch+`}`)
	assert.True(t, op.Finished)
	assert.Equal(t, []int{600, 550, 50}, []int{op.Matched, op.Changed, op.Left})
	assert.Equal(t, 550, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.jobs WHERE state = 'pending' AND payload ->> 'url' = 'https://b.example' AND jsonb_array_length(edits) = 1`))
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.bulk_operations WHERE patch IS NOT NULL`),
		"the patch may hold what is to be erased")

	for _, bad := range []string{`[{"op": "spam", "path": "/a"}]`, `[]`, `{}`} {
		a := b.send(b.everything, http.MethodPost, "/api/jobs/edit", `{"all": true, "patch": `+bad+`}`)
		assert.Equal(t, http.StatusUnprocessableEntity, a.status, bad)
	}
	large, err := json.Marshal(make([]int, 70_000))
	assert.NoError(t, err)
	a := b.send(b.everything, http.MethodPost, "/api/jobs/edit", `{"all": true, "patch": [{"op": "add", "path": "/l", "value": `+string(large)+`}]}`)
	assert.Equal(t, "PAYLOAD_TOO_LARGE", a.code(), "all of it, or nothing")
	a = b.send(b.everything, http.MethodPost, "/api/jobs/edit", `{"patch": `+patch+`}`)
	assert.Equal(t, "CONFIRMATION_REQUIRED", a.code())
}
