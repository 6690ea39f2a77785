package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/server/internal/httpapi"
)

func job(jobType string) object {
	return object{"orgId": "acme", "type": jobType, "payload": object{}}
}

// Which types a token may enqueue: those it names; without, all but those that want the scope
// operate.
func TestTypesOfATokenAreWhatItMayEnqueue(t *testing.T) {
	t.Parallel()
	names := func(o *httpapi.Options) {
		o.TypeName = func(name string) string {
			if name == "webhook_delivery" {
				return "webhook"
			}
			return name
		}
	}
	enqueue, operate := []tokens.Scope{tokens.ScopeEnqueue}, []tokens.Scope{tokens.ScopeEnqueue, tokens.ScopeOperate}
	for name, c := range map[string]struct {
		types         []string
		scopes        []tokens.Scope
		allows, lacks []string
	}{
		"enqueue alone": {
			nil, enqueue,
			[]string{"webhook", "webhook_delivery", "email", "report", "mine"},
			[]string{"cleanup", "db_function"},
		},
		"enqueue and operate": {nil, operate, []string{"webhook", "cleanup", "db_function"}, nil},
		"named types": {
			[]string{"webhook"},
			enqueue,
			[]string{"webhook", "webhook_delivery"},
			[]string{"email", "cleanup", "db_function", "mine"},
		},
		"named, and operate":   {[]string{"webhook"}, operate, []string{"webhook"}, []string{"email", "cleanup"}},
		"cleanup by its name":  {[]string{"cleanup"}, enqueue, []string{"cleanup"}, []string{"db_function", "webhook"}},
		"an alias by its name": {[]string{"webhook_delivery"}, enqueue, []string{"webhook_delivery"}, []string{"webhook"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupWith(t, names)
			token := b.limited("acme", tokens.Limits{Types: c.types}, c.scopes...)
			for _, jobType := range c.allows {
				assert.Equal(t, http.StatusCreated, b.send(token, http.MethodPost, "/api/jobs/enqueue", job(jobType)).status,
					jobType)
			}
			for _, jobType := range c.lacks {
				a := b.send(token, http.MethodPost, "/api/jobs/enqueue", job(jobType))
				assert.Equal(t, http.StatusForbidden, a.status, jobType)
				assert.Equal(t, "TYPE_NOT_ALLOWED", a.code(), jobType)
				assert.Contains(t, string(a.body), "--types", "what to do")
				assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs WHERE type = $1`, jobType))
			}
		})
	}
}

// tooMany asserts that an answer says when to come back.
func tooMany(t *testing.T, a answer) {
	t.Helper()
	require.Equal(t, http.StatusTooManyRequests, a.status, string(a.body))
	assert.Equal(t, "RATE_LIMITED", a.code())
	after, err := strconv.Atoi(a.header.Get("Retry-After"))
	require.NoError(t, err)
	assert.Positive(t, after)
	assert.LessOrEqual(t, after, 60)
}

// Requests beyond a token's rate are answered with 429 on every operation, and cost other tokens
// nothing.
func TestRequestsBeyondTheRate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, r := range b.spec.secured() {
		name := r.method + " " + r.path
		token := b.limited("", tokens.Limits{RequestsPerMinute: 1}, tokens.Scopes()...)
		first := b.send(token, r.method, r.address(), nil)
		assert.NotEqual(t, http.StatusTooManyRequests, first.status, name)
		tooMany(t, b.send(token, r.method, r.address(), nil))
		assert.NotEqual(t, http.StatusTooManyRequests, b.send(b.everything, r.method, r.address(), nil).status, name)

		var scopes []tokens.Scope // all but the one that it needs
		for _, s := range tokens.Scopes() {
			if security, _ := json.Marshal(r.operation["security"]); !strings.Contains(string(security), `"`+string(s)+`"`) {
				scopes = append(scopes, s)
			}
		}
		token = b.limited("", tokens.Limits{RequestsPerMinute: 1}, scopes...)
		assert.Equal(t, http.StatusForbidden, b.send(token, r.method, r.address(), nil).status, name)
		tooMany(t, b.send(token, r.method, r.address(), nil))
	}
}

// Jobs beyond a token's rate are not enqueued, of either queue; looking is free.
func TestJobsBeyondTheRate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for path, body := range map[string]object{
		"/api/jobs/enqueue":            job("mail"),
		"/api/accounting/jobs/enqueue": {"orgId": "acme", "documentId": "d", "version": 1},
	} {
		token := b.limited("", tokens.Limits{JobsPerMinute: 20}, tokens.ScopeEnqueue, tokens.ScopeRead)
		for range 2 {
			require.Less(t, b.send(token, http.MethodPost, path, body).status, 300, "a tenth of a minute's jobs come at once")
		}
		tooMany(t, b.send(token, http.MethodPost, path, body))
		assert.Equal(t, http.StatusOK, b.send(token, http.MethodGet, "/api/jobs", nil).status)
	}
	assert.Equal(t, 2, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs`))
}

// GET runs jobs for a token that says so; for every other one the address knows POST alone.
func TestRunByGet(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	b, ran := withRunner(t, func(context.Context) (httpapi.Report, error) {
		calls.Add(1)
		return httpapi.Report{}, nil
	})
	a := b.send(b.everything, http.MethodGet, "/api/jobs/run", nil)
	assert.Equal(t, http.StatusMethodNotAllowed, a.status)
	assert.Equal(t, http.MethodPost, a.header.Get("Allow"))
	assert.Equal(t, "METHOD_NOT_ALLOWED", a.code())
	assert.Contains(t, string(a.body), "--run-by-get")
	assert.Zero(t, calls.Load())

	token := b.limited("", tokens.Limits{RunByGet: true}, tokens.ScopeOperate)
	assert.Equal(t, http.StatusOK, b.send(token, http.MethodGet, "/api/jobs/run?limit=7", nil).status)
	assert.EqualValues(t, 1, calls.Load())
	assert.Equal(t, 7, ran.limit)
	assert.Equal(t, http.StatusForbidden,
		b.send(b.limited("acme", tokens.Limits{RunByGet: true}, tokens.ScopeOperate), http.MethodGet, "/api/jobs/run",
			nil).status)
}

// An address of its own is no job's: another method there is 405, with the methods that it knows.
func TestOtherMethodsOfAnAddress(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for path, allow := range map[string]string{
		"/api/jobs/enqueue": "POST", "/api/jobs/retry": "POST", "/api/jobs/cancel": "POST",
		"/api/accounting/jobs/enqueue": "POST",
	} {
		for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut} {
			a := b.send(b.everything, method, path, nil)
			assert.Equal(t, http.StatusMethodNotAllowed, a.status, "%s %s", method, path)
			assert.Equal(t, allow, a.header.Get("Allow"), "%s %s", method, path)
			assert.Equal(t, "METHOD_NOT_ALLOWED", a.code())
		}
	}
	assert.Equal(t, http.StatusNotFound, b.send(b.everything, http.MethodGet, "/api/jobs/nothing", nil).status)
}

// A token's limits that make no sense are refused when it is made.
func TestLimitsThatAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for says, limits := range map[string]tokens.Limits{
		"name the types as they are enqueued": {Types: []string{"a b"}},
		"limits a minute must be":             {RequestsPerMinute: -1},
		"from 1 to 1000000":                   {JobsPerMinute: 1_000_001},
		"wants the scope operate":             {RunByGet: true},
	} {
		_, _, err := tokens.Create(t.Context(), b.Pool,
			tokens.NewToken{Name: "n", Scopes: []tokens.Scope{tokens.ScopeEnqueue}, Limits: limits})
		require.ErrorIs(t, err, store.ErrInvalid)
		assert.ErrorContains(t, err, says)
	}
}
