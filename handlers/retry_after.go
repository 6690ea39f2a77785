package handlers

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/models"
)

// longestWait is how long a server may put a job's next attempt off, where no setting says
// otherwise.
const longestWait = time.Hour

// statusFailure is what an answer that is no success leads to by its status, and for how long its
// Retry-After puts the next attempt off, if there is one.
func statusFailure(said string, status int, header http.Header, longest time.Duration) *failure {
	after := askedWait(header, time.Now(), longest)
	code := statusCode(status, after > 0)
	final := code == models.CodeHandlerError || models.JobErrorIsFinal(code)
	if after > 0 && !final {
		said += " (it asks to be called again in " + after.String() + " or later)"
	}
	f := fail(code, "%s", said)
	f.after, f.final = after, code == models.CodeHandlerError
	return f
}

// statusCode is the code of an answer's status. asks: the server says when to call again, without
// which a request that is too large (413) is refused for good.
func statusCode(status int, asks bool) models.ErrorCode {
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusTooEarly,
		status == http.StatusRequestEntityTooLarge && asks:
		return models.CodeRateLimited
	case status == http.StatusRequestTimeout:
		return models.CodeTimeout
	case status == http.StatusNotFound, status == http.StatusGone:
		return models.CodeNotFound
	case status >= 500:
		return models.CodeUpstream5xx
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return models.CodeAuthenticationFailed
	}
	return models.CodeHandlerError
}

// askedWait is for how long the Retry-After of an answer puts the next attempt off, longest at
// most. 0: there is none that can be read, or it asks for no wait. A date counts from the answer's
// own, if it has one: the server's clock may be another one.
func askedWait(header http.Header, now time.Time, longest time.Duration) time.Duration {
	said := strings.TrimSpace(header.Get("Retry-After"))
	if at, err := http.ParseTime(said); err == nil {
		if date, err := http.ParseTime(header.Get("Date")); err == nil {
			now = date
		}
		return boundedWait(at.Sub(now).Seconds(), longest)
	}
	if strings.Trim(said, "0123456789.") != "" {
		return 0
	}
	seconds, err := strconv.ParseFloat(said, 64)
	if err != nil && !math.IsInf(seconds, 1) {
		return 0
	}
	return boundedWait(seconds, longest)
}

// boundedWait is a wait of so many seconds, a whole one at least and longest at most; 0 if there is
// none.
func boundedWait(seconds float64, longest time.Duration) time.Duration {
	switch {
	case !(seconds > 0):
		return 0
	case seconds >= longest.Seconds():
		return longest
	}
	return time.Duration(math.Ceil(seconds)) * time.Second
}
