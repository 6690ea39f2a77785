package handlers

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/daybook-dev/daybook/models"
)

// upstream is a server that the configuration names, or leads to.
type upstream struct {
	client  *http.Client
	timeout time.Duration
	// limit is how many bytes of an answer are read; 0: maxAnswer.
	limit int64
}

// newUpstream makes a client that follows no redirect: what it sends is for the named server alone.
func newUpstream(timeout time.Duration) upstream {
	return upstream{timeout: timeout, client: &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: timeout,
			MaxIdleConns: 100, MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// close gives idle connections back.
func (u upstream) close() error {
	u.client.CloseIdleConnections()
	return nil
}

// reply is a server's answer, with the beginning of its body.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// ok reports whether it is a success.
func (a reply) ok() bool { return a.status >= 200 && a.status <= 299 }

// ask sends a request. Its error says that there was no answer.
func (u upstream) ask(r *http.Request) (reply, error) {
	ctx, cancel := context.WithTimeout(r.Context(), u.timeout)
	defer cancel()
	var wrote atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }})
	answer, err := u.client.Do(r.WithContext(ctx)) //nolint:gosec // the address is the configuration's, or what a service answers that the configuration names
	if err != nil {
		f := u.unanswered(r, err)
		f.unsure = wrote.Load()
		return reply{}, f
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, cmp.Or(u.limit, maxAnswer)))
	if err != nil {
		f := u.unanswered(r, err)
		f.unsure = true
		return reply{}, f
	}
	return reply{status: answer.StatusCode, header: answer.Header, body: body}, nil
}

func (u upstream) unanswered(r *http.Request, err error) *failure {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // its own words repeat the address
	}
	to := origin(r.URL)
	switch {
	case errors.Is(err, errAddress):
		return invalid("%s: %w", to, errAddress)
	case errors.Is(err, context.Canceled):
		return fail(models.CodeNetworkError, "%s: %w", to, context.Canceled)
	case isTimeout(err):
		return fail(models.CodeTimeout, "%s did not answer within %s", to, u.timeout)
	}
	return fail(models.CodeNetworkError, "%s: %s", to, networkReason(err))
}

// judge says what an answer that is no success leads to. text is what the server says, if that may be repeated.
func judge(r *http.Request, answer reply, text string) *failure {
	status := answer.status
	said := origin(r.URL) + " answered " + strconv.Itoa(status) + " " + http.StatusText(status)
	if text != "" {
		said += ": " + clip(text)
	}
	switch {
	case status == http.StatusTooManyRequests:
		f := fail(models.CodeRateLimited, "%s", said)
		f.after = retryAfter(answer.header.Get("Retry-After"), time.Now(), time.Hour)
		return f
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout:
		code := models.CodeTimeout
		if status >= 500 {
			code = models.CodeUpstream5xx
		}
		f := fail(code, "%s", said)
		f.unsure = true
		return f
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fail(models.CodeAuthenticationFailed, "%s", said)
	case status == http.StatusNotFound, status == http.StatusGone:
		return fail(models.CodeNotFound, "%s", said)
	case status >= 500:
		return fail(models.CodeUpstream5xx, "%s", said)
	}
	return failFinally("%s", said)
}

// retryAfter reads the header Retry-After, which has seconds or a date: 1 s at least, and longest at most. 0: there is none that can be read.
func retryAfter(header string, now time.Time, longest time.Duration) time.Duration {
	var after time.Duration
	header = strings.TrimSpace(header)
	if seconds, err := strconv.ParseUint(header, 10, 63); err == nil {
		after = longest
		if seconds < uint64(longest/time.Second) {
			after = time.Duration(seconds) * time.Second
		}
	} else if at, err := http.ParseTime(header); err == nil {
		after = at.Sub(now)
	} else {
		return 0
	}
	return min(max(after, time.Second), longest)
}

// isHTTP reports whether an address is one of a server, without user and password.
func isHTTP(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil
}
