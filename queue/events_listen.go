package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/direct"
)

// ListenEvents calls handle with each event that matches the filter, of all workers that were told
// to notify (NotifyEvents of their options), until ctx ends: then it returns nil. handle is called
// by one goroutine, an event after the other. ListenEvents holds a connection of the pool, which
// must be a direct one or go through a pooler in session mode.
//
// Events come within a fraction of a second of their commit, and say which job is meant, and how it
// ended: its error and its result are read by ReadJobStatus. They are a hint and no record. A
// worker that is killed may not have sent its last ones, and what is sent while the connection is
// lost is not heard. ListenEvents connects again, and then tells EventMissed first: read the state
// of the jobs that you wait for then, and when you begin to listen. What must not be missed belongs
// into the transaction of the job: Job.InTx, a hook of the ledger, or a job of its own.
//
// Errors: ErrNoQuerier without a pool, ErrNoFunction without a function, ErrDirectAddressNeeded
// behind a pooler in transaction mode, and one of the first connection.
func ListenEvents(ctx context.Context, pool *pgxpool.Pool, f EventFilter, handle func(Event)) error {
	switch {
	case pool == nil:
		return store.Refuse(ErrNoQuerier, "the pool is nil", "pass one that is connected to Daybook's database")
	case handle == nil:
		return fmt.Errorf("listen to events: %w", ErrNoFunction)
	}
	pause, heard := firstListenPause, false
	for {
		err := listenOnce(ctx, pool, func() {
			if heard {
				handle(Event{Name: EventMissed, At: time.Now()})
			}
			pause, heard = firstListenPause, true
		}, func(e Event) {
			if f.Matches(&e) {
				handle(e)
			}
		})
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the caller's context ended: that is how listening ends
		case !heard:
			return fmt.Errorf("listen to events: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, longestListenPause)
	}
}

// The pauses between two tries to connect again.
const (
	firstListenPause   = 100 * time.Millisecond
	longestListenPause = 5 * time.Second
)

// listenOnce listens on one connection until that is lost. began is called when it is heard what is
// sent from now on.
func listenOnce(ctx context.Context, pool *pgxpool.Pool, began func(), handle func(Event)) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	// It is not given back: it listens.
	own := conn.Hijack()
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = own.Close(closing)
	}()
	if err := direct.Require(ctx, own); err != nil {
		return err
	}
	// The session idles by design, whatever limit the role or the database has.
	if _, err := own.Exec(ctx, "SET idle_session_timeout = 0; LISTEN "+store.EventsChannel); err != nil {
		return err
	}
	began()
	for {
		n, err := own.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		var some []Event
		if err := json.Unmarshal([]byte(n.Payload), &some); err != nil {
			return errors.Join(errors.New("what was heard is no list of events: a worker of another version may have sent it"), err)
		}
		for _, e := range some {
			handle(e)
		}
	}
}
