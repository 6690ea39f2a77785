package httpapi

import (
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/daybook-dev/daybook/server/internal/clientaddress"
)

const (
	// callbacksPerMinute is how many callbacks an address may send, a tenth of them at once.
	// Functions behind one address may have many.
	callbacksPerMinute = 6000
	// wrongPerMinute is how many of them may have a token that no job has given away. Tokens cannot
	// be guessed; it keeps guesses from being work for the database.
	wrongPerMinute, wrongAtOnce = 60, 20
	// mostAddresses bounds how many addresses are remembered.
	mostAddresses = 10_000
)

// addressLimits are the limiters of one address.
type addressLimits struct {
	callbacks, wrong *rate.Limiter
}

// address returns the limiters of the address that a request came from.
func (l *limits) address(r *http.Request) *addressLimits {
	from := clientaddress.Of(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.addresses[from]
	if known == nil {
		if l.addresses == nil || len(l.addresses) >= mostAddresses {
			l.addresses = map[string]*addressLimits{}
		}
		known = &addressLimits{
			callbacks: limiter(callbacksPerMinute),
			wrong:     rate.NewLimiter(wrongPerMinute/60.0, wrongAtOnce),
		}
		l.addresses[from] = known
	}
	return known
}

// callback counts a callback, or returns the problem of one too many.
func (a *addressLimits) callback() error {
	if missing := 1 - a.wrong.Tokens(); missing > 0 {
		return tooMany(time.Duration(missing*float64(time.Minute)/wrongPerMinute), "this address", wrongPerMinute,
			"callbacks with a wrong token")
	}
	if wait := taken(a.callbacks); wait > 0 {
		return tooMany(wait, "this address", callbacksPerMinute, "callbacks")
	}
	return nil
}

// refused counts a callback whose token was wrong.
func (a *addressLimits) refused() { a.wrong.Allow() }
