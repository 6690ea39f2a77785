package httpapi_test

import (
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// posted is a server whose organizations acme and other have three posted invoices each.
func posted(t *testing.T) *bundle {
	t.Helper()
	b := setup(t)
	for _, org := range []string{"acme", "other"} {
		fixture.Organization(t, b.Pool, org)
		for i := range 3 {
			fixture.Ready(t, b.Pool, fixture.Invoice(org, "a/"+strconv.Itoa(i), 1000))
		}
	}
	b.work()
	return b
}

// work posts what is due.
func (b *bundle) work() {
	b.t.Helper()
	e := engine.New(store.New(b.Pool), ledger.New(nil), engine.Options{Log: slog.New(slog.DiscardHandler)})
	defer e.Close()
	_, err := e.Process(b.t.Context(),
		engine.TurnRequest{Turn: store.Turn{ID: "run/0/1", Worker: "test"}, Batch: 100, Length: time.Minute})
	require.NoError(b.t, err)
}

func TestAccountingJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	acme := b.token("acme", tokens.Scopes()...)
	var out struct{ JobID, Result string }
	b.post(&out, "/api/accounting/jobs/enqueue",
		object{"orgId": "acme", "documentId": "a/1", "version": 2, "priority": "high"})
	assert.Equal(t, "enqueued", out.Result)
	a := b.send(acme, http.MethodPost, "/api/accounting/jobs/enqueue",
		object{"documentId": "a/1", "version": 3, "readyAt": "2999-01-01T00:00:00Z"})
	require.Equal(t, http.StatusOK, a.status, string(a.body))
	a.into(t, &out)
	assert.Equal(t, "coalesced", out.Result)

	var job struct {
		answers.AccountingJob
		History []answers.Attempt
	}
	b.get(&job, "/api/accounting/jobs/a%2F1?orgId=acme")
	assert.Equal(t, int64(3), job.Version)
	assert.Equal(t, "high", job.Priority)
	assert.Equal(t, "pending", job.State)
	assert.Empty(t, job.History)

	b.post(&out, "/api/accounting/jobs/a%2F1/retry?orgId=acme", object{"delaySeconds": 90})
	assert.Equal(t, "rescheduled", out.Result)
	a = b.send(acme, http.MethodPost, "/api/accounting/jobs/a%2F1/retry", nil)
	assert.Equal(t, http.StatusOK, a.status, "the body may be left out: %s", a.body)
	a = b.send(acme, http.MethodPost, "/api/accounting/jobs/a%2F1/cancel", nil)
	a.into(t, &out)
	assert.Equal(t, "cancelled", out.Result)
}

func TestAccountingJobsOfOthers(t *testing.T) {
	t.Parallel()
	b := posted(t)
	acme := b.token("acme", tokens.Scopes()...)
	for _, request := range [][2]string{
		{http.MethodGet, "/api/accounting/jobs/a%2F0?orgId=other"},
		{http.MethodGet, "/api/accounting/jobs?orgId=other"},
		{http.MethodPost, "/api/accounting/jobs/a%2F0/retry?orgId=other"},
		{http.MethodPost, "/api/accounting/jobs/a%2F0/cancel?orgId=other"},
		{http.MethodGet, "/api/documents?orgId=other"},
		{http.MethodGet, "/api/documents/a%2F0?orgId=other"},
		{http.MethodGet, "/api/entries?orgId=other"},
		{http.MethodGet, "/api/trial-balance?orgId=other"},
		{http.MethodGet, "/api/stats?orgId=other"},
		{http.MethodGet, "/api/jobs?orgId=other"},
	} {
		a := b.send(acme, request[0], request[1], nil)
		assert.Equal(t, http.StatusNotFound, a.status, "%v", request)
		assert.Equal(t, "ORGANIZATION_NOT_FOUND", a.code(), "%v", request)
		unknown := b.send(acme, request[0], request[1]+"-unknown", nil)
		assert.Equal(t, a.status, unknown.status, "an organization that is there is told from none: %v", request)
	}
	a := b.send(acme, http.MethodPost, "/api/accounting/jobs/enqueue",
		object{"orgId": "other", "documentId": "x", "version": 1})
	assert.Equal(t, "ORGANIZATION_NOT_FOUND", a.code())

	var list struct{ Jobs []answers.AccountingJob }
	b.send(acme, http.MethodGet, "/api/accounting/jobs", nil).into(t, &list)
	assert.Len(t, list.Jobs, 3)
	for _, j := range list.Jobs {
		assert.Equal(t, "acme", j.OrgID)
	}
	b.send(acme, http.MethodGet, "/api/accounting/jobs?until=2000-01-01T00:00:00Z", nil).into(t, &list)
	assert.Empty(t, list.Jobs)
	var documents struct{ Documents []answers.Document }
	b.send(acme, http.MethodGet, "/api/documents", nil).into(t, &documents)
	assert.Len(t, documents.Documents, 3)
}

func TestAccountingErrors(t *testing.T) {
	t.Parallel()
	b := posted(t)
	for _, test := range []struct {
		method, path string
		body         any
		status       int
		code         string
	}{
		{http.MethodGet, "/api/accounting/jobs/nothing?orgId=acme", nil, 404, "JOB_NOT_FOUND"},
		{http.MethodGet, "/api/accounting/jobs/a%2F0", nil, 422, "INVALID"}, // whose?
		{http.MethodPost, "/api/accounting/jobs/nothing/retry?orgId=acme", nil, 404, "JOB_NOT_FOUND"},
		{http.MethodPost, "/api/accounting/jobs/nothing/cancel?orgId=acme", nil, 404, "JOB_NOT_FOUND"},
		{http.MethodPost, "/api/accounting/jobs/a%2F0/cancel?orgId=acme", nil, 409, "JOB_COMPLETED"},
		{http.MethodPost, "/api/accounting/jobs/a%2F0/retry?orgId=acme", object{"delaySeconds": -1}, 422, "INVALID"},
		{
			http.MethodPost, "/api/accounting/jobs/enqueue",
			object{"orgId": "acme", "documentId": "x", "version": -1},
			422,
			"INVALID",
		},
		{
			http.MethodPost, "/api/accounting/jobs/enqueue",
			object{"orgId": "acme", "documentId": "x\x00", "version": 1},
			422,
			"INVALID",
		},
		{http.MethodPost, "/api/accounting/jobs/enqueue", object{"documentId": "x", "version": 1}, 422, "INVALID"},
		{http.MethodGet, "/api/accounting/jobs?state=odd", nil, 422, "INVALID"},
		{http.MethodGet, "/api/accounting/jobs?since=yesterday", nil, 422, "INVALID"},
		{http.MethodGet, "/api/accounting/jobs?limit=0", nil, 422, "INVALID"},
		{http.MethodGet, "/api/accounting/jobs?limit=1001", nil, 422, "INVALID"},
		{http.MethodGet, "/api/accounting/jobs?unknown=1", nil, 422, "INVALID"},
		{http.MethodGet, "/api/accounting/jobs?cursor=!", nil, 422, "INVALID"},
		{http.MethodGet, "/api/accounting/jobs?cursor=e30", nil, 422, "INVALID"},
		{http.MethodGet, "/api/documents/nothing?orgId=acme", nil, 404, "DOCUMENT_NOT_FOUND"},
		{http.MethodGet, "/api/documents/%FF?orgId=acme", nil, 422, "INVALID"},
		{http.MethodGet, "/api/documents?orgId=unknown", nil, 404, "ORGANIZATION_NOT_FOUND"},
		{http.MethodGet, "/api/documents", nil, 422, "INVALID"},
		{http.MethodGet, "/api/entries?orgId=unknown", nil, 404, "ORGANIZATION_NOT_FOUND"},
		{http.MethodGet, "/api/trial-balance?orgId=unknown", nil, 404, "ORGANIZATION_NOT_FOUND"},
		{http.MethodGet, "/api/trial-balance?orgId=acme&from=2026-02-30", nil, 422, "INVALID"},
		{http.MethodGet, "/api/trial-balance?orgId=acme&from=2026-02-02&to=2026-02-01", nil, 422, "INVALID"},
		{http.MethodGet, "/api/trial-balance?orgId=acme&currency=euro", nil, 422, "INVALID"},
		{http.MethodGet, "/api/trial-balance?orgId=acme&currency=eur", nil, 422, "INVALID"},
	} {
		a := b.send(b.everything, test.method, test.path, test.body)
		assert.Equal(t, test.status, a.status, "%s %s: %s", test.method, test.path, a.body)
		assert.Equal(t, test.code, a.code(), "%s %s", test.method, test.path)
	}
}

func TestDocumentsAndWhatBecameOfThem(t *testing.T) {
	t.Parallel()
	b := posted(t)
	var d struct {
		answers.Document
		Content object
		Posting *answers.Posting
	}
	b.get(&d, "/api/documents/a%2F0?orgId=acme")
	assert.Equal(t, "invoice", d.Type)
	assert.Equal(t, "a/0", d.ID)
	assert.NotEmpty(t, d.Content["lines"])
	require.NotNil(t, d.Posting)
	assert.Equal(t, "completed", d.Posting.State)
	require.NotNil(t, d.Posting.PostedVersion)
	assert.Equal(t, d.Version, *d.Posting.PostedVersion)

	var job struct{ History []answers.Attempt }
	b.get(&job, "/api/accounting/jobs/a%2F0?orgId=acme")
	require.Len(t, job.History, 1)
	assert.Equal(t, "completed", job.History[0].Outcome)
	assert.Equal(t, "test", job.History[0].Worker)
}

func TestTrialBalance(t *testing.T) {
	t.Parallel()
	b := posted(t)
	type balance struct {
		Accounts, Totals []answers.AccountBalance
		Balanced         bool
	}
	var all, before, span balance
	b.get(&all, "/api/trial-balance?orgId=acme")
	assert.True(t, all.Balanced)
	require.Len(t, all.Totals, 1)
	assert.NotEqual(t, answers.Minor("0"), all.Totals[0].DebitMinor)
	assert.Equal(t, all.Totals[0].DebitMinor, all.Totals[0].CreditMinor)
	assert.Contains(t, all.Totals[0].Debit, ".")
	b.get(&before, "/api/trial-balance?orgId=acme&to=2000-01-01")
	assert.Empty(t, before.Accounts)
	b.get(&span, "/api/trial-balance?orgId=acme&from=2999-01-01&currency="+all.Totals[0].Currency)
	require.Len(t, span.Accounts, len(all.Accounts))
	for i, a := range span.Accounts {
		assert.Equal(t, all.Accounts[i].ClosingMinor, a.OpeningMinor)
		assert.Equal(t, answers.Minor("0"), a.DebitMinor)
	}
}

// TestPages reads every list page by page and finds what it finds at once.
func TestPages(t *testing.T) {
	t.Parallel()
	b := posted(t)
	for i := range 7 {
		b.post(&object{}, "/api/jobs/enqueue", object{"orgId": "acme", "type": "t", "payload": object{"i": i}})
	}
	for path, rows := range map[string]string{
		"/api/accounting/jobs?": "jobs", "/api/jobs?": "jobs", "/api/documents?orgId=acme&": "documents",
		"/api/entries?orgId=acme&": "entries",
	} {
		var all map[string]any
		b.get(&all, path+"limit=1000")
		want := all[rows].([]any)
		require.Greater(t, len(want), 2, path)
		assert.NotContains(t, all, "nextCursor", path)
		for _, limit := range []int{1, 2, len(want) - 1, len(want)} {
			var got []any
			cursor, pages := "", 0
			for {
				var page map[string]any
				b.get(&page, path+"limit="+strconv.Itoa(limit)+"&cursor="+url.QueryEscape(cursor))
				got = append(got, page[rows].([]any)...)
				pages++
				cursor, _ = page["nextCursor"].(string)
				if cursor == "" {
					break
				}
			}
			assert.Equal(t, want, got, "%s by %d", path, limit)
			assert.Equal(t, (len(want)+limit-1)/limit, pages, "%s by %d", path, limit)
		}
	}
}
