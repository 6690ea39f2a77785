package handlers

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strconv"
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

// judge says what an answer that is no success leads to. text is what the server says, if that may
// be repeated.
func judge(r *http.Request, answer reply, text string) *failure {
	status := answer.status
	said := origin(r.URL) + " answered " + strconv.Itoa(status) + " " + http.StatusText(status)
	if text != "" {
		said += ": " + clip(text)
	}
	f := statusFailure(said, status, answer.header, longestWait)
	f.unsure = status == http.StatusRequestTimeout || status == http.StatusGatewayTimeout
	return f
}

// isSafe reports whether an address is one of a server to which credentials may be sent: by https, or
// on this machine.
func isSafe(address string) bool {
	u, err := url.Parse(address)
	if err != nil || !isHTTP(address) {
		return false
	}
	host, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Hostname() == "localhost" || err == nil && host.Unmap().IsLoopback()
}

// isHTTP reports whether an address is one of a server, without user and password.
func isHTTP(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil
}
