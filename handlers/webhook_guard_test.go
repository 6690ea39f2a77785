package handlers

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/daybook-dev/daybook/models"
)

func TestWebhookRefusesPrivateAddresses(t *testing.T) {
	t.Parallel()
	r := receive(t, nil)
	b := setup(t)
	b.hooks(WebhookConfig{AllowNetworks: []netip.Prefix{}})
	_, port, err := net.SplitHostPort(r.Listener.Addr().String())
	require.NoError(t, err)
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254",
		"10.0.0.1", "[64:ff9b::7f00:1]",
	} {
		j := b.run(Webhook{URL: "http://" + host + ":" + port})
		assert.Equal(t, models.JobFailed, j.State, host)
		assert.Equal(t, models.CodePayloadInvalid, j.Code, "%s: %s", host, j.Error)
		assert.Contains(t, j.Error, "DAYBOOK_WEBHOOK_ALLOW_NETWORKS can allow it", "doctor and the runbook know these words")
	}
	assert.Empty(t, r.requests())
}

// A server that may be asked leads to one that may not.
func TestWebhookRefusesRedirectsToPrivateAddresses(t *testing.T) {
	t.Parallel()
	inner := receive(t, nil)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.2:0")
	if err != nil {
		t.Skip("this system has no second address of loopback")
	}
	outer := &receiver{}
	outer.Server = httptest.NewUnstartedServer(outer.keep(func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, inner.URL+"/admin?token=s3cret", http.StatusTemporaryRedirect)
	}))
	require.NoError(t, outer.Listener.Close())
	outer.Listener = listener
	outer.Start()
	t.Cleanup(outer.Close)
	b := setup(t)
	b.hooks(WebhookConfig{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}})

	j := b.run(Webhook{URL: outer.URL})
	assert.Equal(t, models.JobFailed, j.State)
	assert.Equal(t, models.CodePayloadInvalid, j.Code, j.Error)
	assert.NotContains(t, j.Error, "s3cret")
	assert.Len(t, outer.requests(), 1)
	assert.Empty(t, inner.requests())
}

// resolver answers each question for an address with the next of a list, and the last for ever
// after.
func resolver(t *testing.T, answers ...string) *net.Resolver {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	require.NoError(t, err)
	var asked atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b[:n]) != nil || len(m.Questions) == 0 {
				continue
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				answer := netip.MustParseAddr(answers[min(int(asked.Add(1)), len(answers))-1])
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, Type: q.Type},
					Body:   &dnsmessage.AResource{A: answer.As4()},
				}}
			}
			packed, err := m.Pack()
			if err == nil {
				_, _ = conn.WriteTo(packed, from)
			}
		}
	}()
	t.Cleanup(func() {
		assert.NoError(t, conn.Close())
		<-ended
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// A name first leads to an address that may be asked, and for the redirect to itself to one that
// may not.
func TestWebhookRefusesRebinding(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "0.0.0.0:0")
	require.NoError(t, err)
	r := &receiver{}
	r.Server = httptest.NewUnstartedServer(r.keep(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Connection", "close")
		http.Redirect(w, q, "/again", http.StatusPermanentRedirect)
	}))
	require.NoError(t, r.Listener.Close())
	r.Listener = listener
	r.Start()
	t.Cleanup(r.Close)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	b := setup(t)
	b.hooks(WebhookConfig{
		AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		Resolver:      resolver(t, "127.0.0.1", "127.0.0.2"),
	})

	j := b.run(Webhook{URL: "http://rebind.test:" + port})
	assert.Equal(t, models.JobFailed, j.State)
	assert.Equal(t, models.CodePayloadInvalid, j.Code, j.Error)
	assert.Len(t, r.requests(), 1)
}

func TestWebhookFollowsRedirectsThatRepeatTheRequest(t *testing.T) {
	t.Parallel()
	end := receive(t, nil)
	first := receive(t, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/" {
			http.Redirect(w, q, "/second", http.StatusPermanentRedirect)
			return
		}
		http.Redirect(w, q, end.URL+"/end", http.StatusTemporaryRedirect)
	})
	b := setup(t)
	b.hooks(WebhookConfig{Secrets: secretsOf(map[string]string{"DAYBOOK_WEBHOOK_SECRET_DEFAULT": newSecret})})
	j := b.run(Webhook{
		URL: first.URL + "/?token=s3cret", Data: []byte(`{"a":1}`),
		Headers: map[string]string{"X-Tenant": "t"},
	})
	require.Equal(t, models.JobCompleted, j.State, j.Error)
	require.Len(t, first.requests(), 2)
	second := first.requests()[1]
	assert.Equal(t, "t", second.header.Get("X-Tenant"))
	assert.Empty(t, second.header.Get("Referer"))
	require.Len(t, end.requests(), 1)
	last := end.requests()[0]
	assert.Equal(t, http.MethodPost, last.method)
	assert.JSONEq(t, `{"a":1}`, string(last.body))
	assert.NotEmpty(t, last.header.Get("Webhook-Signature"))
	assert.NotEmpty(t, last.header.Get("Idempotency-Key"))
	assert.Empty(t, last.header.Get("X-Tenant"), "another host does not get it")
	assert.Empty(t, last.header.Get("Referer"))
}

func TestWebhookFollowsNoMoreRedirects(t *testing.T) {
	t.Parallel()
	r := receive(t, func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, "/s3cret", http.StatusTemporaryRedirect)
	})
	for limit, asked := range map[int]int{0: 4, 1: 2, -1: 1} {
		before := len(r.requests())
		b := setup(t)
		b.hooks(WebhookConfig{MaxRedirects: limit})
		j := b.run(Webhook{URL: r.URL})
		assert.Equal(t, models.JobFailed, j.State)
		assert.Equal(t, models.CodeHandlerError, j.Code)
		assert.NotContains(t, j.Error, "s3cret")
		assert.Equal(t, asked, len(r.requests())-before, "limit %d", limit)
	}
}

func TestWebhookFollowsNoRedirectToWeakerProtocol(t *testing.T) {
	t.Parallel()
	weak := receive(t, nil)
	strong := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, weak.URL, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(strong.Close)
	b := setup(t)
	b.hooks(WebhookConfig{TLS: &tls.Config{
		RootCAs:    strong.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs,
		MinVersion: tls.VersionTLS12,
	}})
	j := b.run(Webhook{URL: strong.URL})
	assert.Equal(t, models.JobFailed, j.State)
	assert.Equal(t, models.CodeHandlerError, j.Code)
	assert.Contains(t, j.Error, "from https to http")
	assert.Empty(t, weak.requests())
}

func TestNetworkReasonRepeatsNothing(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		errors.New("failed to parse Location header \"http://x/?s3cret\""),
		&net.OpError{Op: "read", Err: errors.New("s3cret")},
		&net.DNSError{Err: "s3cret", Name: "s3cret"},
		&net.DNSError{Err: "s3cret", Name: "s3cret", IsNotFound: true},
	} {
		assert.NotContains(t, networkReason(err), "s3cret")
	}
	h := &WebhookHandler{timeout: time.Second}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://example.com/p?s3cret",
		strings.NewReader(""))
	require.NoError(t, err)
	assert.Equal(t, models.CodeNetworkError, h.unanswered(q, context.Canceled).code)
	assert.Equal(t, models.CodeTimeout, h.unanswered(q, context.DeadlineExceeded).code)
}
