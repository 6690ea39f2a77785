package handlers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/daybook-dev/daybook/internal/telemetry/span"
	"github.com/daybook-dev/daybook/models"
)

// The headers for the idempotency key and the trace, and the agent's name.
const (
	headerIdempotencyKey = "Idempotency-Key"
	headerTrace          = "Traceparent"
	webhookAgent         = "Daybook-Webhook"
)

// ownHeaders may not be set by a payload: they carry credentials, belong to the connection, or are
// Daybook's to set.
var ownHeaders = map[string]bool{
	"Authorization": true, "Cookie": true, "Cookie2": true, "X-Api-Key": true, "X-Auth-Token": true,
	"Connection": true, "Content-Encoding": true, "Content-Length": true, "Content-Type": true, "Date": true,
	"Expect": true, "Forwarded": true,
	"Host": true, "Http2-Settings": true, "Keep-Alive": true, "Origin": true, "Referer": true, "Te": true,
	"Trailer":           true,
	"Transfer-Encoding": true, "Upgrade": true, "Via": true,
	headerIdempotencyKey: true, "User-Agent": true,
}

// ownPrefixes begin names of headers that a payload may not set.
var ownPrefixes = []string{"Proxy-", "Sec-", "Webhook-", "X-Forwarded-"}

// maxHeaders and maxHeaderBytes bound a payload's headers.
const (
	maxHeaders     = 32
	maxHeaderBytes = 4096
)

// target is where a payload wants its request to go.
func (p *Webhook) target() (*url.URL, error) {
	address := p.URL
	switch {
	case p.URL == "" && p.WebhookURL == "":
		return nil, invalid("url is missing")
	case p.URL != "" && p.WebhookURL != "" && p.URL != p.WebhookURL:
		return nil, invalid("url and webhookUrl differ: give one of them")
	case p.URL == "":
		address = p.WebhookURL
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, invalid("url cannot be read") // the parser's error repeats it
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, invalid("url must begin with https:// or http://")
	case u.Hostname() == "":
		return nil, invalid("url names no host")
	case u.User != nil:
		return nil, invalid("url must not hold a user or password: name a secret by authorization")
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// bareURL is an address without its parts that may be secret: user, password, query and fragment.
func bareURL(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// origin is the part of an address that an error may repeat: a path can be a secret, too.
func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// checkHeader refuses a header that a payload may not set.
func checkHeader(name, value string) error {
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	if !isToken(name) {
		return invalid("headers: a name is empty, or has characters that a header's name cannot have")
	}
	if hasControl(value) {
		return invalid("headers: the value of %s has control characters", canonical)
	}
	owned := ownHeaders[canonical]
	for _, prefix := range ownPrefixes {
		owned = owned || strings.HasPrefix(canonical, prefix)
	}
	if owned {
		return invalid("headers: %s cannot be set by a payload", canonical)
	}
	return nil
}

// body is what is posted.
func (p *Webhook) body() ([]byte, error) {
	data := p.Data
	if len(data) == 0 {
		data = json.RawMessage("null")
	}
	var content any = data
	if p.FormID != "" || p.SubmissionID != "" {
		content = struct {
			FormID       string          `json:"formId"`
			SubmissionID string          `json:"submissionId"`
			Data         json.RawMessage `json:"data"`
		}{p.FormID, p.SubmissionID, data}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(content); err != nil {
		return nil, invalid("data is not JSON")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// request makes the request of an attempt. Body, id and keys are the same in every attempt; the
// time of signing is not.
func (h *WebhookHandler) request(ctx context.Context, c *call[Webhook]) (*http.Request, error) {
	to, err := c.payload.target()
	if err != nil {
		return nil, err
	}
	body, err := c.payload.body()
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, invalid("url cannot be asked")
	}
	size := 0
	for name, value := range c.payload.Headers {
		if err := checkHeader(name, value); err != nil {
			return nil, err
		}
		r.Header.Set(name, value)
		size += len(name) + len(value)
	}
	if len(c.payload.Headers) > maxHeaders || size > maxHeaderBytes {
		return nil, invalid("headers: more than %d, or more than %d bytes", maxHeaders, maxHeaderBytes)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", webhookAgent)
	r.Header.Set(headerIdempotencyKey, headerKey(c.key))
	if trace := span.Parent(ctx); trace != "" && r.Header.Get(headerTrace) == "" {
		r.Header.Set(headerTrace, trace)
	}
	if err := h.sign(r, c, body); err != nil {
		return nil, err
	}
	if err := h.authorize(r, c.orgID, c.payload.Authorization); err != nil {
		return nil, err
	}
	return r, nil
}

// headerKey is an idempotency key as a header can hold it: itself, or its hash.
func headerKey(key string) string {
	if key != "" && isVisible(key) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// defaultSecret signs when a payload names none.
const defaultSecret = "default"

// sign sets the headers of the Standard Webhooks specification, with a signature of each secret
// there is.
func (h *WebhookHandler) sign(r *http.Request, c *call[Webhook], body []byte) error {
	name := c.payload.Secret
	if name == "" {
		name = defaultSecret
	}
	now := time.Now()
	identify(r, c.id, now)
	secrets, err := h.secrets.named(c.orgID, "WEBHOOK_SECRET_", name, "")
	if err != nil {
		// An organization that the default secret is not bound to signs nothing; a default secret that
		// is bound to none is a mistake.
		if c.payload.Secret == "" && (errors.Is(err, errNoSecret) || errors.Is(err, errOtherSecret)) {
			return nil
		}
		return err
	}
	return signWith(r, secrets, name, c.id, now, body)
}

// identify sets the headers of the Standard Webhooks specification that are signed with the body.
func identify(r *http.Request, id string, now time.Time) {
	r.Header.Set(standardwebhooks.HeaderWebhookID, id)
	r.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
}

// signWith sets the signature of each of the secrets, which have blanks between them and are of the
// name.
func signWith(r *http.Request, secrets, name, id string, now time.Time, body []byte) error {
	var signatures []string
	for secret := range strings.FieldsSeq(secrets) {
		signer, err := standardwebhooks.NewWebhook(secret)
		if err != nil || len(secret) < minSecretLength {
			return fail(models.CodeAuthenticationFailed,
				"the secret %s cannot sign: it must be whsec_ and at least 24 bytes in base64, several of them with blanks "+
					"between", name)
		}
		signature, err := signer.Sign(id, now, body)
		if err != nil {
			return fail(models.CodeHandlerError, "sign with the secret %s", name)
		}
		signatures = append(signatures, signature)
	}
	r.Header.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return nil
}

// minSecretLength is that of 24 bytes in base64, the least that the specification allows.
const minSecretLength = 32

// authorize sets the header Authorization by the secret of a name: the host to which it may be
// sent, and the header's value.
func (h *WebhookHandler) authorize(r *http.Request, org, name string) error {
	if name == "" {
		return nil
	}
	secret, err := h.secrets.named(org, "WEBHOOK_AUTHORIZATION_", name, ".authorization")
	if err != nil {
		return err
	}
	host, value, ok := strings.Cut(secret, " ")
	value = strings.TrimSpace(value)
	switch {
	case !ok || value == "" || !isVisible(value):
		return fail(models.CodeAuthenticationFailed,
			"the secret %s is no authorization: it must be a host, a blank, and the header's value", name)
	case !strings.EqualFold(host, r.URL.Host):
		return fail(models.CodeAuthenticationFailed, "the authorization %s is not for the host %s", name, r.URL.Host)
	case r.URL.Scheme != "https":
		return fail(models.CodeAuthenticationFailed, "the authorization %s is only sent by https", name)
	}
	r.Header.Set("Authorization", value)
	return nil
}
