package handlers

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/span"
	"github.com/daybook-dev/daybook/jobs"
)

// Webhook is the payload of the type webhook: a request by POST with a body of JSON, signed by the
// Standard Webhooks specification. It says where by url or by webhookUrl, one of which is required.
type Webhook struct {
	// URL is where to, by http or https, without user and password. WebhookURL is another name for
	// it.
	URL        string `json:"url,omitempty"`
	WebhookURL string `json:"webhookUrl,omitempty"`
	// FormID and SubmissionID, if one is there, are sent beside the data:
	// {"formId":…,"submissionId":…,"data":…}.
	FormID       string `json:"formId,omitempty"`
	SubmissionID string `json:"submissionId,omitempty"`
	// Data is the body, whatever JSON it is.
	Data json.RawMessage `json:"data,omitempty"`
	// Headers are sent in addition. Headers with credentials, those of the connection and Daybook's
	// own are refused.
	Headers map[string]string `json:"headers,omitempty"`
	// Secret names the secret that signs; empty: "default" if there is one, otherwise nothing is
	// signed.
	Secret string `json:"secret,omitempty"`
	// Authorization names a secret for the header Authorization. It says to which host it may be
	// sent; see Secrets.
	Authorization string `json:"authorization,omitempty"`
}

// JobType is "webhook".
func (Webhook) JobType() string { return "webhook" }

// WebhookPolicy is the type's policy: 5 attempts, 1, 2, 4 and 8 seconds between them, each of up to
// 30 seconds. Jobs may also be enqueued as webhook_delivery.
func WebhookPolicy() jobs.Policy {
	return jobs.Policy{
		MaxAttempts: 5, Timeout: 30 * time.Second, Base: time.Second, Factor: 2, Cap: 16 * time.Second,
		Aliases: []string{"webhook_delivery"},
	}
}

// WebhookConfig says how requests are sent. The zero value of each field means its default.
type WebhookConfig struct {
	// Timeout bounds a request with its answer; default 20 s. It should be shorter than the policy's.
	Timeout time.Duration `env:"WEBHOOK_TIMEOUT"`
	// AllowNetworks are networks to which requests may go although their addresses are not public:
	// 10.1.0.0/16.
	AllowNetworks []netip.Prefix `env:"WEBHOOK_ALLOW_NETWORKS"`
	// MaxRedirects is how many redirects are followed, only such as repeat the request (307 and 308);
	// default 3, -1 for none.
	MaxRedirects int `env:"WEBHOOK_MAX_REDIRECTS"`
	// MaxRetryAfter bounds how long the Retry-After of an answer may put the next attempt off;
	// default 1 h.
	MaxRetryAfter time.Duration `env:"WEBHOOK_MAX_RETRY_AFTER"`
	// Secrets finds what payloads name.
	Secrets Secrets `env:"-"`
	// TLS is the configuration of connections by https; default Go's, with the system's authorities.
	TLS *tls.Config `env:"-"`
	// Resolver looks up hosts; default the system's.
	Resolver *net.Resolver `env:"-"`
}

// WebhookHandler works jobs of the type webhook. It is safe for concurrent use.
type WebhookHandler struct {
	pool          *pgxpool.Pool
	client        *http.Client
	secrets       Secrets
	timeout       time.Duration
	maxRetryAfter time.Duration
}

// NewWebhook returns a handler that keeps its receipts in the pool's database, which stays the
// caller's to close.
func NewWebhook(pool *pgxpool.Pool, c WebhookConfig) (*WebhookHandler, error) {
	if pool == nil {
		return nil, errors.New("webhook: a pool is required, for the receipts")
	}
	if c.Timeout < 0 || c.MaxRetryAfter < 0 {
		return nil, errors.New("webhook: WEBHOOK_TIMEOUT and WEBHOOK_MAX_RETRY_AFTER must not be negative")
	}
	h := guardedWebhook(c)
	h.pool = pool
	return h, nil
}

// guardedWebhook has a client whose connections are guarded, and no pool.
func guardedWebhook(c WebhookConfig) *WebhookHandler {
	c.Timeout = cmp.Or(c.Timeout, 20*time.Second)
	// A connection may be made for a request that has ended, so it has a time limit of its own.
	dialer := &net.Dialer{Control: guard{c.AllowNetworks}.control, Resolver: c.Resolver, Timeout: c.Timeout}
	return &WebhookHandler{
		client: &http.Client{
			// No proxy: it would connect in place of the dialer that is guarded.
			Transport: &http.Transport{
				DialContext: dialer.DialContext, TLSClientConfig: c.TLS, TLSHandshakeTimeout: c.Timeout,
				ForceAttemptHTTP2: true, DisableCompression: true,
				MaxIdleConns: 100, MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
			},
			CheckRedirect: redirects(cmp.Or(c.MaxRedirects, 3)),
		},
		secrets:       c.Secrets,
		timeout:       c.Timeout,
		maxRetryAfter: cmp.Or(c.MaxRetryAfter, longestWait),
	}
}

// Close gives idle connections back.
func (h *WebhookHandler) Close() error {
	h.client.CloseIdleConnections()
	return nil
}

// Handle sends one request, unless an earlier attempt of the job was answered with success. It
// fails with RATE_LIMITED (429, 425, or 413 with Retry-After), UPSTREAM_5XX, TIMEOUT or
// NETWORK_ERROR, which are tried again, and finally with AUTHENTICATION_FAILED (401, 403, or a
// secret is missing), NOT_FOUND (404, 410), PAYLOAD_INVALID (the URL, the headers, or an address
// that may not be asked) or HANDLER_ERROR (every other answer but 2xx).
func (h *WebhookHandler) Handle(ctx context.Context, job *jobs.Job[Webhook]) error {
	return outcome(h.deliver(ctx, callOf(job)))
}

// WebhookResult is the result of a job of the type webhook.
type WebhookResult struct {
	// WebhookID is the header webhook-id, the same in all attempts.
	WebhookID string `json:"webhook_id"`
	// Status is the answer's; Attempt is the attempt that it answered.
	Status  int `json:"status"`
	Attempt int `json:"attempt"`
}

// receiptTimeout bounds reading and writing a receipt, for which the attempt's own time may be
// over.
const receiptTimeout = 5 * time.Second

func (h *WebhookHandler) deliver(ctx context.Context, c *call[Webhook]) error {
	var earlier store.DeliveredWebhook
	sent := false
	if err := store.Await(ctx, receiptTimeout, func(ctx context.Context) (err error) {
		earlier, sent, err = store.WebhookDelivered(ctx, h.pool, c.id)
		return err
	}); err != nil {
		return err
	}
	if sent {
		c.result(WebhookResult{WebhookID: c.id, Status: earlier.Status, Attempt: earlier.Attempt})
		return nil
	}
	within, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	within, sending := span.Start(within, span.Span{Name: "send webhook", Kind: span.Client})
	request, err := h.request(within, c)
	if err != nil {
		sending.End(err)
		return err
	}

	receipt := store.WebhookReceipt{
		JobID: c.id, OrgID: c.orgID, Attempt: c.attempt, URL: bareURL(request.URL),
		SentAt: time.Now(),
	}
	address := request.URL.Hostname()
	if c.encrypted {
		receipt.URL, address = "encrypted", "encrypted"
	}
	status, failed := h.send(request)
	receipt.Duration = time.Since(receipt.SentAt)
	receipt.Status, receipt.OK = status, failed == nil
	sending.Set(span.Attr{Key: "server.address", Value: address},
		span.Attr{Key: "http.request.method", Value: http.MethodPost},
		span.Attr{Key: "http.response.status_code", Value: status})
	if failed != nil {
		receipt.ErrorCode = failed.code
		sending.End(failed)
	} else {
		sending.End(nil)
	}
	writing, cancelWriting := context.WithTimeout(context.WithoutCancel(ctx), receiptTimeout)
	defer cancelWriting()
	unwritten := store.WriteWebhookReceipt(writing, h.pool, receipt)
	switch {
	case failed != nil:
		// The error of the request matters more than that of the receipt.
		return failed
	case unwritten != nil:
		// The request was answered with success: the receipt has another chance with the job's
		// completion.
		c.writeOnCompletion(func(ctx context.Context,
			tx pgx.Tx,
		) error {
			return store.WriteWebhookReceipt(ctx, tx, receipt)
		})
	}
	c.result(WebhookResult{WebhookID: c.id, Status: status, Attempt: c.attempt})
	return nil
}

func init() {
	builtins = append(builtins, builtin{name: "webhook", register: func(r *jobs.Registry, s *environment) error {
		config, err := parse[WebhookConfig](s)
		if err != nil {
			return err
		}
		config.Secrets = s.secrets
		h, err := NewWebhook(s.Pool, config)
		if err != nil {
			return err
		}
		s.onClose(h.Close)
		jobs.Register(r, s.policy(WebhookPolicy()), h.Handle)
		return nil
	}})
}
