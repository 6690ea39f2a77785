// Package entry is where a token is known by which a request was sent: the API and the console note
// it there, for the request's line in the log, and have it counted, so that one rate holds for both.
package entry

import (
	"context"
	"time"

	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// Entry is what a request brings along. One goroutine has it at a time.
type Entry struct {
	// Token is the id of the request's token; empty: it has none, or none is known yet.
	Token string
	// Count counts a request of a token. While the token has no more it returns after what time there
	// will be one; nil: nothing is counted.
	Count func(t *tokens.Token) (wait time.Duration)
}

type key struct{}

// With returns a context of a request with its entry.
func With(ctx context.Context, e *Entry) context.Context { return context.WithValue(ctx, key{}, e) }

// Note notes the request's token and counts the request. A wait above zero says that it is one too
// many, and after what time there will be another one.
func Note(ctx context.Context, t *tokens.Token) (wait time.Duration) {
	e, ok := ctx.Value(key{}).(*Entry)
	if !ok {
		return 0
	}
	e.Token = t.ID
	if e.Count == nil {
		return 0
	}
	return e.Count(t)
}
