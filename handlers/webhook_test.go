package handlers

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// Two secrets of the specification's form, and one that is too short.
var (
	newSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("the newer secret of this test...."))
	oldSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("the older secret of this test...."))
)

// request is what a receiver got.
type request struct {
	method, path string
	header       http.Header
	body         []byte
}

// receiver is a server that keeps what it gets.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	got []request
}

// receive starts a server that answers as f does; nil: with 200.
func receive(t *testing.T, f http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(r.keep(f))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) keep(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		r.got = append(r.got, request{q.Method, q.URL.RequestURI(), q.Header.Clone(), body})
		r.mu.Unlock()
		if f != nil {
			f(w, q)
		}
	}
}

func (r *receiver) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]request(nil), r.got...)
}

// hooks registers the type webhook; without a word on it, loopback may be asked.
func (b *bundle) hooks(c WebhookConfig) *WebhookHandler {
	b.t.Helper()
	if c.AllowNetworks == nil {
		c.AllowNetworks = loopback
	}
	if c.Secrets.Lookup == nil {
		c.Secrets = environmentSecrets(nil)
	}
	h, err := NewWebhook(b.Pool, c)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { assert.NoError(b.t, h.Close()) })
	jobs.Register(b.registry, WebhookPolicy(), h.Handle)
	return h
}

// secretsOf are secrets that are bound to all organizations, unless the variables say to which.
func secretsOf(vars map[string]string) Secrets {
	for variable := range maps.Clone(vars) {
		for _, kind := range []string{"WEBHOOK_SECRET_", "WEBHOOK_AUTHORIZATION_"} {
			if name, ok := strings.CutPrefix(variable, environmentPrefix+kind); ok &&
				vars[environmentPrefix+"SECRET_ORGS_"+name] == "" {
				vars[environmentPrefix+"SECRET_ORGS_"+name] = "*"
			}
		}
	}
	return environmentSecrets(vars)
}

func TestWebhookIsDelivered(t *testing.T) {
	t.Parallel()
	r := receive(t, nil)
	b := setup(t)
	b.hooks(WebhookConfig{Secrets: secretsOf(map[string]string{"DAYBOOK_WEBHOOK_SECRET_ORDERS": newSecret + " " +
		oldSecret})})
	id := b.enqueueFor(org, Webhook{
		URL: r.URL + "/in?token=s3cret", Data: json.RawMessage(`{"order": "<7>", "lines": [1, 2]}`), Secret: "orders",
		Headers: map[string]string{"x-shop": "nine"},
	}, queue.JobOptions{IdempotencyKey: "order-7"})
	b.work()

	got := r.requests()
	require.Len(t, got, 1)
	assert.Equal(t, http.MethodPost, got[0].method)
	assert.Equal(t, "/in?token=s3cret", got[0].path)
	assert.Equal(t, "application/json", got[0].header.Get("Content-Type"))
	assert.Equal(t, "nine", got[0].header.Get("X-Shop"))
	assert.Equal(t, "order-7", got[0].header.Get("Idempotency-Key"))
	assert.Equal(t, id, got[0].header.Get("Webhook-Id"))
	assert.JSONEq(t, `{"order": "<7>", "lines": [1, 2]}`, string(got[0].body))
	assert.Contains(t, string(got[0].body), `"<7>"`, "nothing is escaped that need not be")
	for _, secret := range []string{newSecret, oldSecret} {
		verifier, err := standardwebhooks.NewWebhook(secret)
		require.NoError(t, err)
		require.NoError(t, verifier.Verify(got[0].body, got[0].header))
		require.Error(t, verifier.Verify(append(got[0].body, ' '), got[0].header))
	}

	assert.Equal(t, WebhookResult{WebhookID: id, Status: 200, Attempt: 1}, result[WebhookResult](t, b.job(id)))
	assert.Equal(t, 1, b.count(`
SELECT count(*) FROM daybook.webhook_deliveries
 WHERE job_id = $1 AND attempt = 1 AND url = $2 AND status = 200 AND ok AND error_code IS NULL`, id, r.URL+"/in"))
}

func TestWebhookOfSeed000(t *testing.T) {
	t.Parallel()
	r := receive(t, nil)
	b := setup(t)
	b.hooks(WebhookConfig{})
	raw := `{"webhookUrl": "` + r.URL +
		`", "formId": "form_1", "submissionId": "sub_1", "data": {"a": 1}, "headers": {"X-A": "b"}}`
	var id string
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`SELECT job_id FROM daybook.enqueue_job($1, 'webhook_delivery', $2::jsonb)`, org, raw).Scan(&id))
	b.work()

	require.Equal(t, models.JobCompleted, b.job(id).State, b.job(id).Error)
	require.Len(t, r.requests(), 1)
	got := r.requests()[0]
	assert.JSONEq(t, `{"formId": "form_1", "submissionId": "sub_1", "data": {"a": 1}}`, string(got.body))
	assert.Equal(t, "b", got.header.Get("X-A"))
	assert.Equal(t, id, got.header.Get("Idempotency-Key"), "without a key it is the job's id")
	assert.Empty(t, got.header.Get("Webhook-Signature"), "no secret is configured")
}

func TestWebhookIsSignedByTheDefault(t *testing.T) {
	t.Parallel()
	r := receive(t, nil)
	b := setup(t)
	b.hooks(WebhookConfig{Secrets: secretsOf(map[string]string{"DAYBOOK_WEBHOOK_SECRET_DEFAULT": newSecret})})
	require.Equal(t, models.JobCompleted, b.run(Webhook{URL: r.URL}).State)
	verifier, err := standardwebhooks.NewWebhook(newSecret)
	require.NoError(t, err)
	require.NoError(t, verifier.Verify(r.requests()[0].body, r.requests()[0].header))
	assert.Equal(t, "null", string(r.requests()[0].body))
}

func TestWebhookAnswers(t *testing.T) {
	t.Parallel()
	for status, c := range map[int]struct {
		state models.JobState
		code  models.ErrorCode
	}{
		201: {models.JobCompleted, ""},
		204: {models.JobCompleted, ""},
		301: {models.JobFailed, models.CodeHandlerError},
		302: {models.JobFailed, models.CodeHandlerError},
		303: {models.JobFailed, models.CodeHandlerError},
		400: {models.JobFailed, models.CodeHandlerError},
		401: {models.JobFailed, models.CodeAuthenticationFailed},
		403: {models.JobFailed, models.CodeAuthenticationFailed},
		404: {models.JobFailed, models.CodeNotFound},
		408: {models.JobPending, models.CodeTimeout},
		410: {models.JobFailed, models.CodeNotFound},
		413: {models.JobFailed, models.CodeHandlerError},
		422: {models.JobFailed, models.CodeHandlerError},
		425: {models.JobPending, models.CodeRateLimited},
		429: {models.JobPending, models.CodeRateLimited},
		500: {models.JobPending, models.CodeUpstream5xx},
		503: {models.JobPending, models.CodeUpstream5xx},
		599: {models.JobPending, models.CodeUpstream5xx},
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/elsewhere?token=s3cret")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, "a body that is not repeated")
			})
			b := setup(t)
			b.hooks(WebhookConfig{})
			j := b.run(Webhook{URL: r.URL + "/hook?token=s3cret"})
			assert.Equal(t, c.state, j.State)
			assert.Equal(t, c.code, j.Code)
			assert.Len(t, r.requests(), 1)
			assert.Equal(t, 1, b.count(`
SELECT count(*) FROM daybook.webhook_deliveries WHERE status = $1 AND ok = ($2 = '') AND coalesce(error_code, '') = $2`,
				status, string(c.code)))
			for _, secret := range []string{"s3cret", "not repeated"} {
				assert.NotContains(t, b.everything(), secret)
			}
			if c.state == models.JobPending {
				jittered(t, time.Second, j.Wait)
			}
		})
	}
}

func TestWebhookRetriesByItsTable(t *testing.T) {
	t.Parallel()
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	b := setup(t)
	b.hooks(WebhookConfig{})
	id := b.enqueue(Webhook{URL: r.URL})
	for _, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second} {
		b.due()
		b.work()
		require.Equal(t, models.JobPending, b.job(id).State)
		jittered(t, wait, b.job(id).Wait)
	}
	b.due()
	b.work()
	assert.Equal(t, models.JobFailed, b.job(id).State)
	assert.Equal(t, 5, b.count(`SELECT count(*) FROM daybook.webhook_deliveries WHERE NOT ok`))
	got := r.requests()
	require.Len(t, got, 5)
	for _, q := range got {
		assert.Equal(t, id, q.header.Get("Webhook-Id"), "the same in all attempts")
	}
}

func TestWebhookIsNotSentTwice(t *testing.T) {
	t.Parallel()
	r := receive(t, nil)
	b := setup(t)
	b.hooks(WebhookConfig{})
	id := b.enqueue(Webhook{URL: r.URL})
	b.exec(`INSERT INTO daybook.webhook_deliveries (job_id, attempt, url, status, ok, duration_ms) VALUES ($1, 1, 'http://x', 503, false, 1), ($1, 2, 'http://x', 202, true, 1)`, id)
	b.work()
	assert.Empty(t, r.requests())
	assert.Equal(t, WebhookResult{WebhookID: id, Status: 202, Attempt: 2}, result[WebhookResult](t, b.job(id)))
	assert.Equal(t, 2, b.count(`SELECT count(*) FROM daybook.webhook_deliveries`))
}

func TestWebhookTimesOut(t *testing.T) {
	t.Parallel()
	r := receive(t, func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() })
	b := setup(t)
	b.hooks(WebhookConfig{Timeout: 50 * time.Millisecond})
	j := b.run(Webhook{URL: r.URL + "/?token=s3cret"})
	assert.Equal(t, models.JobPending, j.State)
	assert.Equal(t, models.CodeTimeout, j.Code)
	assert.Contains(t, j.Error, "did not answer within 50ms")
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.webhook_deliveries WHERE status IS NULL AND NOT ok AND error_code = 'TIMEOUT'`))
	assert.NotContains(t, b.everything(), "s3cret")
}

func TestWebhookReadsNoMoreOfAnAnswerThanItMust(t *testing.T) {
	t.Parallel()
	r := receive(t, func(w http.ResponseWriter, q *http.Request) {
		for q.Context().Err() == nil { // without end
			if _, err := w.Write(make([]byte, 32<<10)); err != nil {
				return
			}
		}
	})
	b := setup(t)
	b.hooks(WebhookConfig{})
	assert.Equal(t, models.JobCompleted, b.run(Webhook{URL: r.URL}).State)
}

func TestWebhookNetworkErrors(t *testing.T) {
	t.Parallel()
	rude := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	})
	plain := receive(t, nil)
	foreign := httptest.NewTLSServer(http.NotFoundHandler())
	foreign.Config.ErrorLog = nil
	t.Cleanup(foreign.Close)
	for name, c := range map[string]struct{ url, reason string }{
		"refused":     {"http://127.0.0.1:1", "connection refused"}, // no other program gets a port below 1024 by chance
		"closed":      {rude.URL, "closed the connection without an answer"},
		"no TLS":      {strings.Replace(plain.URL, "http:", "https:", 1), ""},
		"certificate": {foreign.URL, "certificate is not trusted"},
		"no host":     {"http://unknown.invalid", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.hooks(WebhookConfig{Timeout: 5 * time.Second})
			j := b.run(Webhook{URL: c.url + "/path-s3cret?token=s3cret"})
			assert.Equal(t, models.JobPending, j.State)
			assert.Contains(t, []models.ErrorCode{models.CodeNetworkError}, j.Code, j.Error)
			assert.Contains(t, j.Error, c.reason)
			assert.NotContains(t, j.Error, "s3cret")
		})
	}
}

func TestWebhookOverTLSWithAuthorization(t *testing.T) {
	t.Parallel()
	r := &receiver{}
	r.Server = httptest.NewTLSServer(r.keep(nil))
	t.Cleanup(r.Close)
	roots := r.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	host := strings.TrimPrefix(r.URL, "https://")
	config := WebhookConfig{
		TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		Secrets: secretsOf(map[string]string{
			"DAYBOOK_WEBHOOK_AUTHORIZATION_CRM":  host + " Bearer t0psecret",
			"DAYBOOK_WEBHOOK_AUTHORIZATION_ELSE": "api.example.com Bearer t0psecret",
			"DAYBOOK_WEBHOOK_AUTHORIZATION_BAD":  "t0psecret", "DAYBOOK_WEBHOOK_SECRET_CRM": newSecret,
			"DAYBOOK_WEBHOOK_SECRET_SHORT": "whsec_c2hvcnQ=",
			"DAYBOOK_WEBHOOK_SECRET_BAD":   "t0psecret!t0psecret!t0psecret!t0psecret!t0psecret!",
		}),
	}
	b := setup(t)
	b.hooks(config)

	j := b.run(Webhook{URL: r.URL, Authorization: "crm"})
	require.Equal(t, models.JobCompleted, j.State, j.Error)
	assert.Equal(t, "Bearer t0psecret", r.requests()[0].header.Get("Authorization"))

	plain := receive(t, nil)
	for name, p := range map[string]Webhook{
		"for another host":   {URL: r.URL, Authorization: "else"},
		"not configured":     {URL: r.URL, Authorization: "unknown"},
		"no header in it":    {URL: r.URL, Authorization: "bad"},
		"without encryption": {URL: plain.URL, Authorization: "crm"},
		"no such secret":     {URL: r.URL, Secret: "unknown"},
		"short secret":       {URL: r.URL, Secret: "short"},
		"secret not base64":  {URL: r.URL, Secret: "bad"},
	} {
		j := b.run(p)
		assert.Equal(t, models.JobFailed, j.State, name)
		assert.Equal(t, models.CodeAuthenticationFailed, j.Code, name)
	}
	assert.Len(t, r.requests(), 1, "nothing else was sent")
	assert.Empty(t, plain.requests())
	for _, secret := range []string{"t0psecret", newSecret, strings.TrimPrefix(newSecret, "whsec_"), "c2hvcnQ="} {
		assert.NotContains(t, b.everything(), secret)
	}
}

func TestWebhookRefusesPayloads(t *testing.T) {
	t.Parallel()
	r := receive(t, nil)
	b := setup(t)
	b.hooks(WebhookConfig{})
	header := func(name, value string) Webhook { return Webhook{URL: r.URL, Headers: map[string]string{name: value}} }
	many := map[string]string{}
	for n := range maxHeaders + 1 {
		many["X-"+strings.Repeat("a", n)+"b"] = "c"
	}
	for name, p := range map[string]Webhook{
		"no url":            {},
		"two urls":          {URL: r.URL, WebhookURL: r.URL + "/x"},
		"scheme":            {URL: "ftp://example.com/s3cret"},
		"file":              {URL: "file:///etc/passwd"},
		"no host":           {URL: "http:///s3cret"},
		"relative":          {URL: "/s3cret"},
		"user and password": {URL: "http://user:s3cret@example.com"},
		"unreadable":        {URL: "http://[s3cret"},
		"control":           {URL: "http://example.com/\r\nHost: s3cret"},
		"Host":              header("Host", "s3cret"),
		"authorization":     header("authorization", "s3cret"),
		"cookie":            header("Cookie", "s3cret"),
		"content-length":    header("content-length", "1"),
		"Content-Type":      header("Content-Type", "text/plain"),
		"transfer":          header("Transfer-Encoding", "chunked"),
		"connection":        header("Connection", "close"),
		"proxy":             header("Proxy-Authorization", "s3cret"),
		"webhook-id":        header("Webhook-Id", "s3cret"),
		"signature":         header("webhook-signature", "s3cret"),
		"forwarded":         header("X-Forwarded-For", "10.0.0.1"),
		"idempotency":       header("Idempotency-Key", "s3cret"),
		"no token":          header("X A", "b"),
		"empty name":        header("", "b"),
		"line break":        header("X-A", "b\r\nHost: s3cret"),
		"long":              header("X-A", strings.Repeat("a", maxHeaderBytes)),
		"many":              {URL: r.URL, Headers: many},
		"secret's name":     {URL: r.URL, Secret: "../../etc/passwd"},
	} {
		j := b.run(p)
		assert.Equal(t, models.JobFailed, j.State, name)
		assert.Equal(t, models.CodePayloadInvalid, j.Code, "%s: %s", name, j.Error)
		assert.NotContains(t, j.Error, "s3cret", name)
	}
	assert.Empty(t, r.requests())
}

func TestHeaderKey(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "order-7", headerKey("order-7"))
	for _, key := range []string{"größe", "a\nb", " a", ""} {
		assert.Len(t, headerKey(key), 64, key)
	}
}
