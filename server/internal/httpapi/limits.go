package httpapi

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// limits holds tokens to what they may do in a minute. Each server counts for itself, from its
// start on.
type limits struct {
	mu     sync.Mutex
	tokens map[string]*tokenLimits
	// addresses are the limiters of those who send callbacks, by the address that they come from.
	addresses map[string]*addressLimits
}

// tokenLimits are the limiters of one token; nil: no limit.
type tokenLimits struct {
	of             tokens.Limits
	requests, jobs *rate.Limiter
}

// burstParts is which part of a minute's number may come at once.
const burstParts = 10

// limiter lets n come a minute, a tenth of them at once.
func limiter(n int) *rate.Limiter {
	if n == 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(float64(n)/60), max(1, n/burstParts))
}

// token returns the limiters of a token, which are kept for as long as the server runs.
func (l *limits) token(t *tokens.Token) *tokenLimits {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.tokens[t.ID]
	if known == nil || known.of.RequestsPerMinute != t.RequestsPerMinute || known.of.JobsPerMinute != t.JobsPerMinute {
		if l.tokens == nil {
			l.tokens = map[string]*tokenLimits{}
		}
		known = &tokenLimits{of: t.Limits, requests: limiter(t.RequestsPerMinute), jobs: limiter(t.JobsPerMinute)}
		l.tokens[t.ID] = known
	}
	return known
}

// request counts a request of the token. Of one too many it returns after what time there will be
// room.
func (l *limits) request(t *tokens.Token) time.Duration {
	if t.RequestsPerMinute == 0 {
		return 0
	}
	return taken(l.token(t).requests)
}

// job counts a job that the token enqueues, or returns the problem of one too many.
func (l *limits) job(t *tokens.Token) error {
	if t.JobsPerMinute == 0 {
		return nil
	}
	if wait := taken(l.token(t).jobs); wait > 0 {
		return tooMany(wait, "the token", t.JobsPerMinute, "enqueued jobs")
	}
	return nil
}

// taken takes one from a limiter. When none is left it returns after what time there will be one.
func taken(l *rate.Limiter) time.Duration {
	r := l.Reserve()
	wait := r.Delay()
	if wait > 0 {
		r.Cancel()
	}
	return wait
}

// tooMany is the problem of one too many, for which there is room after the wait.
func tooMany(wait time.Duration, whose string, perMinute int, what string) *Problem {
	seconds := int(math.Ceil(wait.Seconds()))
	p := problemOf(errTooMany)
	p.Detail = fmt.Sprintf("more %s than %s may have, %d a minute: try again in %s", what, whose, perMinute,
		phrase.Duration(time.Duration(seconds)*time.Second))
	p.header = http.Header{"Retry-After": {strconv.Itoa(seconds)}}
	return p
}
