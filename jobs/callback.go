package jobs

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// Callback is an answer from outside that a job waits for.
type Callback struct {
	Name string
	// Token is for the other side, which sends it back with its answer; empty when the callback was
	// asked for by an earlier attempt.
	Token string
	// Data is the answer, a JSON object; nil: none has come.
	Data json.RawMessage
	// ReceivedAt is when it came.
	ReceivedAt time.Time
	// Expired says that none came until the deadline.
	Expired bool

	deadline time.Time
}

// ErrNoCallbacks: a bulk handler has asked for a callback, or the job is not worked by a worker.
var ErrNoCallbacks = failure.New(failure.Invalid,
	"a callback needs a handler of single jobs, and a worker: register the type by jobs.Register")

// NewCallback asks for a callback, which may come within so long, and puts it on record before it
// returns: give the Token to the other side after that, and end the attempt by returning
// AwaitCallback. The name is the handler's own, 64 bytes at most: a job may ask for several
// callbacks.
//
// An attempt that ends otherwise may be repeated, and may ask again: then the last three tokens are
// valid, and the first answer counts. An attempt that knows that the other side did not take the
// request withdraws the callback (WithdrawCallback).
func (j *Job[P]) NewCallback(ctx context.Context, name string, within time.Duration) (*Callback, error) {
	switch {
	case j.attempt.callbacks == nil:
		return nil, ErrNoCallbacks
	case name == "" || len(name) > 64:
		return nil, fmt.Errorf("the name of a callback must have 1 to 64 bytes, not %d", len(name))
	case within <= 0:
		return nil, fmt.Errorf("a callback must have some time to come, not %s", within)
	}
	random := make([]byte, 32)
	_, _ = rand.Read(random) // it never fails
	c := &Callback{Name: name, Token: base64.RawURLEncoding.EncodeToString(random)}
	err := store.Await(ctx, store.OutageLimit, func(ctx context.Context) error {
		return store.NewCallback(ctx, j.attempt.callbacks, j.ID, name, c.Token, within)
	})
	if err != nil {
		return nil, err
	}
	c.deadline = time.Now().Add(within)
	return c, nil
}

// WithdrawCallback closes a callback that this attempt has asked for: its token is not valid any
// more. One that has come stays.
func (j *Job[P]) WithdrawCallback(ctx context.Context, c *Callback) error {
	if j.attempt.callbacks == nil {
		return ErrNoCallbacks
	}
	return store.Await(ctx, store.OutageLimit, func(ctx context.Context) error {
		return store.WithdrawCallback(ctx, j.attempt.callbacks, j.ID, c.Token)
	})
}

// Callback reads the callback of that name; nil: none has come, and no attempt has ended by
// AwaitCallback. So an attempt asks for one also when the one before it failed, or was lost, after
// it had asked. A callback has come, is Expired, or may yet come: then return AwaitCallback again.
func (j *Job[P]) Callback(ctx context.Context, name string) (*Callback, error) {
	if j.attempt.callbacks == nil {
		return nil, ErrNoCallbacks
	}
	var found store.Callback
	var ok bool
	err := store.Await(ctx, store.OutageLimit, func(ctx context.Context) (err error) {
		found, ok, err = store.SeeCallback(ctx, j.attempt.callbacks, j.ID, name)
		return err
	})
	if err != nil || !ok {
		return nil, err
	}
	c := &Callback{
		Name: name, Data: found.Data, Expired: found.Data == nil && found.Left <= 0,
		deadline: time.Now().Add(found.Left),
	}
	if found.ReceivedAt != nil {
		c.ReceivedAt = *found.ReceivedAt
	}
	return c, nil
}

// AwaitCallback puts the job off until the callback comes, or until its deadline. No attempt is
// counted.
func AwaitCallback(c *Callback) error {
	d := max(time.Until(c.deadline), 0)
	return &outcome{
		kind: snoozed, delay: d, code: models.CodeAwaitingCallback,
		cause: fmt.Errorf("waiting for the callback %q, for %s at most", c.Name, d.Round(time.Second)),
	}
}
