package handlers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/daybook-dev/daybook/models"
)

// maxAnswer is how many bytes of an answer are read, so that its connection can be used again. They
// are ignored.
const maxAnswer = 64 << 10

// Errors of a redirect.
var (
	errRedirects = errors.New("more redirects than are followed")
	errDowngrade = errors.New("a redirect leads from https to http")
)

// redirects decides on each redirect: at most limit of them, only such as repeat the request, and
// none to a weaker protocol.
func redirects(limit int) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, before []*http.Request) error {
		first, last := before[0], before[len(before)-1]
		switch {
		case next.Method != http.MethodPost || limit < 0:
			return http.ErrUseLastResponse // the answer's status says what it was
		case len(before) > limit:
			return errRedirects
		case last.URL.Scheme == "https" && next.URL.Scheme != "https":
			return errDowngrade
		}
		next.Header.Del("Referer") // it has the query
		if next.URL.Host != first.URL.Host {
			keepOwn(next.Header)
		}
		return nil
	}
}

// keepOwn removes what a payload or a secret set, which is for the first host alone.
func keepOwn(h http.Header) {
	for name := range h {
		switch {
		case name == "Content-Type", name == "User-Agent", name == headerIdempotencyKey,
			strings.HasPrefix(name, "Webhook-"):
		default:
			h.Del(name)
		}
	}
}

// send sends a request. The status is 0 when there was no answer.
func (h *WebhookHandler) send(r *http.Request) (int, *failure) {
	answer, err := h.client.Do(r)
	if err != nil {
		return 0, h.unanswered(r, err)
	}
	defer func() { _ = answer.Body.Close() }()
	// The status of the answer counts, even if its body cannot be read to its end.
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer)
	return answer.StatusCode, h.judge(r, answer)
}

// judge says what becomes of a job whose request was answered.
func (h *WebhookHandler) judge(r *http.Request, answer *http.Response) *failure {
	status := answer.StatusCode
	if status >= 200 && status <= 299 {
		return nil
	}
	said := fmt.Sprintf("%s answered %d %s", origin(r.URL), status, http.StatusText(status))
	if status >= 300 && status <= 399 {
		said += ": only redirects that repeat the request are followed; enqueue the address it leads to"
	}
	return statusFailure(said, status, answer.Header, h.maxRetryAfter)
}

// unanswered says what becomes of a job whose request got no answer.
func (h *WebhookHandler) unanswered(r *http.Request, err error) *failure {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // its own words repeat the address
	}
	to := origin(r.URL)
	switch {
	case errors.Is(err, errAddress):
		return invalid("%s: %w; %sWEBHOOK_ALLOW_NETWORKS can allow it", to, errAddress, environmentPrefix)
	case errors.Is(err, errRedirects):
		return failFinally("%s: %w", to, errRedirects)
	case errors.Is(err, errDowngrade):
		return failFinally("%s: %w", to, errDowngrade)
	case errors.Is(err, context.Canceled):
		return fail(models.CodeNetworkError, "%s: %w", to, context.Canceled)
	case isTimeout(err):
		return fail(models.CodeTimeout, "%s did not answer within %s", to, h.timeout)
	default:
		return fail(models.CodeNetworkError, "%s: %s", to, networkReason(err))
	}
}

// networkReason says what happened to a connection, in words that repeat nothing of what was sent
// or asked.
func networkReason(err error) string {
	var lookup *net.DNSError
	var number syscall.Errno
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return "there is no such host"
	case errors.As(err, &lookup):
		return "the host cannot be looked up"
	case errors.As(err, &certificate):
		return "its certificate is not trusted: " + clip(certificate.Err.Error())
	case errors.As(err, &record):
		return "it does not speak TLS"
	case errors.As(err, &alert):
		return alert.Error()
	case errors.As(err, &number):
		return number.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it closed the connection without an answer"
	default:
		return "the request failed"
	}
}
