package handlers

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/internal/telemetry/span"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// FunctionConfig says how the jobs of a type are worked by a function elsewhere, in any language,
// that is asked by HTTP. URL and Secret are required.
type FunctionConfig struct {
	// URL is where the function is, by http or https, without user and password.
	URL string `json:"url"`
	// Secret names the secret that signs each request: DAYBOOK_WEBHOOK_SECRET_<NAME>, or the file
	// <name>.
	Secret string `json:"secret"`
	// Organizations are those whose jobs the function works; empty: all.
	Organizations []string `json:"organizations"`
	// Timeout bounds a request with its answer; default 30 s, at most jobs.MaxTimeout less 10 s.
	Timeout time.Duration `json:"timeout"`
	// Callback lets the function answer 202 and call back, within so long; 0: it answers at once.
	Callback time.Duration `json:"callback"`
	// CallbackURL is the address of Daybook's HTTP API as the function reaches it:
	// https://daybook.example.com. Empty: the function is told the token alone.
	CallbackURL string `json:"callback_url"`
	// MaxResult is how many bytes of JSON an answer may have; default 64 KB.
	MaxResult int `json:"max_result"`

	// Secrets finds the secret.
	Secrets Secrets `json:"-"`
	// AllowNetworks, TLS and Resolver are as those of WebhookConfig. Redirects are not followed.
	AllowNetworks []netip.Prefix `json:"-"`
	TLS           *tls.Config    `json:"-"`
	Resolver      *net.Resolver  `json:"-"`
}

// FunctionHandler works jobs by a function elsewhere. It is safe for concurrent use. Register it by
// jobs.RegisterRaw.
type FunctionHandler struct {
	c   FunctionConfig
	to  *url.URL
	web *WebhookHandler
}

// functionRoom is how much longer than a request its attempt may take.
const functionRoom = 10 * time.Second

// FunctionPolicy is a policy for a function whose requests have that Timeout (0: the default): the
// defaults of jobs.Policy, and time for the request.
func FunctionPolicy(timeout time.Duration) jobs.Policy {
	return jobs.Policy{MaxAttempts: 3, Timeout: cmp.Or(timeout, defaultFunctionTimeout) + functionRoom}
}

const defaultFunctionTimeout = 30 * time.Second

// NewFunction returns a handler.
func NewFunction(c FunctionConfig) (*FunctionHandler, error) {
	c.Timeout = cmp.Or(c.Timeout, defaultFunctionTimeout)
	c.MaxResult = cmp.Or(c.MaxResult, 64<<10)
	c.CallbackURL = strings.TrimSuffix(c.CallbackURL, "/")
	to, err := url.Parse(c.URL)
	switch {
	case err != nil || !isHTTP(c.URL):
		return nil, errors.New("function: url must be an address by https:// or http://, without user and password")
	case !secretName.MatchString(c.Secret):
		return nil, errors.New("function: secret must name the secret that signs, by lower-case letters, digits, - and _")
	case c.Timeout < 0 || c.Timeout > jobs.MaxTimeout-functionRoom:
		return nil, fmt.Errorf("function: timeout must be positive and at most %s: let a function that takes longer call "+
			"back", jobs.MaxTimeout-functionRoom)
	case c.Callback < 0 || c.MaxResult < 0:
		return nil, errors.New("function: callback and max_result must not be negative")
	case c.CallbackURL != "" && (c.Callback == 0 || !isHTTP(c.CallbackURL)):
		return nil, errors.New("function: callback_url must be an address by https:// or http://, and needs callback, " +
			"the time until the function must have called back")
	}
	return &FunctionHandler{c: c, to: to, web: guardedWebhook(WebhookConfig{
		Timeout: c.Timeout, AllowNetworks: c.AllowNetworks, MaxRedirects: -1, Secrets: c.Secrets, TLS: c.TLS,
		Resolver: c.Resolver,
	})}, nil
}

// Close gives idle connections back.
func (h *FunctionHandler) Close() error { return h.web.Close() }

// FunctionRequest is the body of the request that asks a function to work a job. The request is
// signed by the Standard Webhooks specification; its webhook-id is the job's.
type FunctionRequest struct {
	JobID   string `json:"jobId"`
	Type    string `json:"type"`
	OrgID   string `json:"orgId"`
	Attempt int    `json:"attempt"`
	// IdempotencyKey is the same in all attempts.
	IdempotencyKey string          `json:"idempotencyKey"`
	Payload        json.RawMessage `json:"payload"`
	// Deadline is when the answer is no longer waited for.
	Deadline time.Time `json:"deadline"`
	// Callback says how to answer later; nil: the function must answer at once.
	Callback *FunctionCallback `json:"callback,omitempty"`
}

// FunctionCallback is where a function that answered 202 sends its result: POST
// /api/callbacks/{token}.
type FunctionCallback struct {
	// URL is the whole address; empty: the configuration does not say where the HTTP API is.
	URL      string    `json:"url,omitempty"`
	Token    string    `json:"token"`
	Deadline time.Time `json:"deadline"`
}

// Handle asks the function. An answer 200 with JSON is the job's result; 202 has the job wait for
// the callback. Other answers fail as those to a webhook do, unless their body says otherwise
// (FunctionError).
func (h *FunctionHandler) Handle(ctx context.Context, job *jobs.Job[queue.RawPayload]) error {
	return outcome(h.work(ctx, job))
}

func (h *FunctionHandler) work(ctx context.Context, job *jobs.Job[queue.RawPayload]) error {
	if len(h.c.Organizations) > 0 && !slices.Contains(h.c.Organizations, job.OrgID) {
		return fail(models.CodeAuthenticationFailed,
			"the configuration does not let the organization %s use the function of the type %s", clip(job.OrgID), job.Type)
	}
	var round string
	if h.c.Callback > 0 {
		var done bool
		var err error
		if round, done, err = h.resume(ctx, job); err != nil || done {
			return err
		}
	}
	within, cancel := context.WithTimeout(ctx, h.c.Timeout)
	defer cancel()
	ask := FunctionRequest{
		JobID: job.ID, Type: job.Type, OrgID: job.OrgID, Attempt: job.Attempt, IdempotencyKey: job.IdempotencyKey,
		Payload: job.Payload.Data,
	}
	ask.Deadline, _ = within.Deadline()
	var callback *jobs.Callback
	if round != "" {
		var err error
		if callback, err = job.NewCallback(ctx, round, h.c.Callback); err != nil {
			return err
		}
		ask.Callback = &FunctionCallback{Token: callback.Token, Deadline: time.Now().Add(h.c.Callback)}
		if h.c.CallbackURL != "" {
			ask.Callback.URL = h.c.CallbackURL + "/api/callbacks/" + callback.Token
		}
	}
	answer, err := h.ask(within, ask)
	if callback != nil && refused(answer, err) {
		h.withdraw(ctx, job, callback)
	}
	if err != nil {
		return err
	}
	if answer.status == http.StatusAccepted {
		if callback == nil {
			return failFinally("%s answered 202 Accepted, and the configuration gives the type %s no callback: set "+
				"callback to the time within which it calls back",
				origin(h.to), job.Type)
		}
		return jobs.AwaitCallback(callback)
	}
	return h.conclude(job, answer)
}

// refused reports that the function is known not to have taken a request: it has answered it
// otherwise, or it was not sent. Without an answer, or with one of a gateway that had none, the
// function may be at work, and may call back.
func refused(answer reply, err error) bool {
	if unsent, ok := errors.AsType[*failure](err); ok {
		return unsent.code == models.CodeAuthenticationFailed || unsent.code == models.CodePayloadInvalid
	}
	return err == nil && !slices.Contains([]int{http.StatusAccepted, http.StatusBadGateway, http.StatusGatewayTimeout},
		answer.status)
}

// withdraw closes a callback that will not come, also when the attempt's time is over. If it fails,
// the callback stays open until its deadline.
func (h *FunctionHandler) withdraw(ctx context.Context, job *jobs.Job[queue.RawPayload], c *jobs.Callback) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
	defer cancel()
	_ = job.WithdrawCallback(within, c)
}

// withdrawTimeout bounds the statement that closes a callback.
const withdrawTimeout = 2 * time.Second

// ask sends one request.
func (h *FunctionHandler) ask(ctx context.Context, ask FunctionRequest) (answer reply, err error) {
	ctx, asking := span.Start(ctx, span.Span{Name: "ask function", Kind: span.Client})
	defer func() { asking.End(err) }()
	body, err := json.Marshal(ask)
	if err != nil {
		return reply{}, invalid("the payload is not JSON")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.to.String(), bytes.NewReader(body))
	if err != nil {
		return reply{}, invalid("url cannot be asked")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", functionAgent)
	r.Header.Set(headerIdempotencyKey, headerKey(ask.IdempotencyKey))
	if trace := span.Parent(ctx); trace != "" {
		r.Header.Set(headerTrace, trace)
	}
	secrets, err := h.c.Secrets.find(environmentPrefix+"WEBHOOK_SECRET_"+secretVariable(h.c.Secret), h.c.Secret)
	if err != nil {
		return reply{}, fail(models.CodeAuthenticationFailed, "%w", err)
	}
	now := time.Now()
	identify(r, ask.JobID, now)
	if err := signWith(r, secrets, h.c.Secret, ask.JobID, now, body); err != nil {
		return reply{}, err
	}
	asking.Set(span.Attr{Key: "server.address", Value: r.URL.Hostname()},
		span.Attr{Key: "http.request.method", Value: http.MethodPost})
	return h.send(r)
}

// functionAgent is the agent's name.
const functionAgent = "Daybook-Function"

// send returns the answer with the beginning of its body: one byte more than a result may have.
func (h *FunctionHandler) send(r *http.Request) (reply, error) {
	answer, err := h.web.client.Do(r)
	if err != nil {
		return reply{}, h.web.unanswered(r, err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, int64(h.c.MaxResult)+1))
	if err != nil {
		return reply{}, h.web.unanswered(r, err)
	}
	return reply{status: answer.StatusCode, header: answer.Header, body: body}, nil
}
