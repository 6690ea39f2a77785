// Package namedqueue changes named queues for people: the command line, the HTTP API and the
// console. Each change and its row in the log of actions are one transaction, which answers with
// the queue as it is then.
package namedqueue

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
)

// ErrExists: a queue that is to be made is there already.
var ErrExists = failure.New(failure.QueueExists, "there is such a queue already")

// Create makes a queue with these settings. It returns ErrExists where there is one of that name.
func Create(ctx context.Context, pool *pgxpool.Pool, u store.NamedQueue) (store.NamedQueue, error) {
	now, _, err := do(ctx, pool, u.Name, func(tx pgx.Tx) (bool, error) {
		known, err := store.LockQueue(ctx, tx, u.Name)
		if err == nil && known {
			err = store.Refuse(ErrExists, "there is a queue "+u.Name+" already", "change it by `daybook queues set`")
		}
		if err != nil {
			return false, err
		}
		return true, set(ctx, tx, u)
	})
	return now, err
}

// Put makes a queue with these settings, or gives it these settings, and says whether it was made.
// A pause stays.
func Put(ctx context.Context, pool *pgxpool.Pool, u store.NamedQueue) (now store.NamedQueue, made bool, err error) {
	now, _, err = do(ctx, pool, u.Name, func(tx pgx.Tx) (bool, error) {
		known, err := store.LockQueue(ctx, tx, u.Name)
		if err != nil {
			return false, err
		}
		if made = !known; made {
			return true, set(ctx, tx, u)
		}
		return change(ctx, tx, u.Name, func(store.NamedQueue) store.NamedQueue { return u })
	})
	return now, made && err == nil, err
}

// Set changes settings of a queue: to is given those that it has. changed is false where they are
// those already. It returns store.ErrQueueNotFound where there is none of that name.
func Set(ctx context.Context, pool *pgxpool.Pool, name string,
	to func(store.NamedQueue) store.NamedQueue,
) (now store.NamedQueue, changed bool, err error) {
	return do(ctx, pool, name, func(tx pgx.Tx) (bool, error) {
		if _, err := store.LockQueue(ctx, tx, name); err != nil {
			return false, err
		}
		return change(ctx, tx, name, to)
	})
}

// change gives a queue other settings, and says whether they are others, or are a person's only
// now.
func change(ctx context.Context, tx pgx.Tx, name string,
	to func(store.NamedQueue) store.NamedQueue,
) (changed bool, err error) {
	u, err := store.QueueOf(ctx, tx, name)
	if err != nil {
		return false, err
	}
	wanted := to(u)
	if same := settings(u) == settings(wanted); same && u.SetBy != "" {
		return false, nil
	}
	return true, set(ctx, tx, wanted)
}

// settings are a queue's settings alone, for comparison. The time of a rate is a second where none
// is given.
func settings(u store.NamedQueue) store.NamedQueue {
	if u.Rate > 0 && u.RateSeconds == 0 {
		u.RateSeconds = 1
	}
	return store.NamedQueue{
		Fleet: u.Fleet, MaxParallel: u.MaxParallel, PerProcess: u.PerProcess, Rate: u.Rate, RateSeconds: u.RateSeconds,
		RateBurst: u.RateBurst, Owner: u.Owner,
	}
}

// set gives a queue settings that count until Release: what its programs ask for when they start
// does not undo them.
func set(ctx context.Context, tx pgx.Tx, u store.NamedQueue) error {
	u.SetBy = actions.By(ctx)
	_, err := store.SetQueue(ctx, tx, u)
	return err
}

// Release gives a queue that a person has set back to its programs. It returns
// store.ErrQueueNotFound where there is none of that name.
func Release(ctx context.Context, pool *pgxpool.Pool, name string) (now store.NamedQueue, changed bool, err error) {
	return do(ctx, pool, name, func(tx pgx.Tx) (bool, error) { return store.ReleaseQueue(ctx, tx, name) })
}

// Pause has nothing of a queue begin until it is resumed; paused false resumes it. changed is false
// where it was so already. It returns store.ErrQueueNotFound where there is none of that name.
func Pause(ctx context.Context, pool *pgxpool.Pool, name string,
	paused bool,
) (now store.NamedQueue, changed bool, err error) {
	return do(ctx, pool, name, func(tx pgx.Tx) (bool, error) {
		return store.PauseQueue(ctx, tx, name, paused)
	})
}

// Delete deletes a queue that has no open jobs. It returns store.ErrQueueNotFound or
// store.ErrQueueNotEmpty.
func Delete(ctx context.Context, pool *pgxpool.Pool, name string) error {
	actions.About(ctx, "", name, nil)
	return store.Begin(ctx, pool, func(tx pgx.Tx) error {
		if err := store.DeleteQueue(ctx, tx, name); err != nil {
			return err
		}
		return actions.Note(ctx, tx, "", name, nil)
	})
}

// do makes a change, notes it, and reads the queue as it is then.
func do(ctx context.Context, pool *pgxpool.Pool, name string,
	change func(tx pgx.Tx) (changed bool, err error),
) (now store.NamedQueue, changed bool, err error) {
	actions.About(ctx, "", name, nil)
	err = store.Begin(ctx, pool, func(tx pgx.Tx) (err error) {
		if changed, err = change(tx); err != nil {
			return err
		}
		if err := actions.Note(ctx, tx, "", name, map[string]any{"changed": changed}); err != nil {
			return err
		}
		now, err = store.QueueOf(ctx, tx, name)
		return err
	})
	return now, changed && err == nil, err
}
