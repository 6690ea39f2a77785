package hosts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/failure"
)

// ErrSplit: more than one server of the address takes writes, or the one that does is behind
// another one's timeline.
var ErrSplit = failure.New(failure.SplitBrain, "the servers of the database's address do not agree on one primary")

const (
	// askEvery is after what time the servers of an address are asked again.
	askEvery = 2 * time.Second
	// askLimit is how long they may take; a server that does not answer in it is not compared.
	askLimit = 3 * time.Second
	// othersLimit is how long the others are waited for when one that will do has answered, beyond the
	// time that it took itself: one that was promoted since is better.
	othersLimit = 50 * time.Millisecond
)

// known is what this process knows of the servers of an address.
type known struct {
	mu sync.Mutex
	// last has ended, current has not; nil: there is none. told is the one of which the log was told,
	// and silent has the servers that did not answer in it.
	last, current, told *inquiry
	silent              map[string]bool
}

// addresses has what is known by address: all pools and connections of the process share it.
var addresses sync.Map

// of returns what is known of the servers of an address.
func of(config *pgx.ConnConfig) *known {
	key := fmt.Sprint(Names(config), config.User, config.Database, reflect.ValueOf(config.ValidateConnect).Pointer())
	k, _ := addresses.LoadOrStore(key, &known{})
	return k.(*known)
}

// inquiry asks all servers of an address once. front is set when found is closed, the rest when ended
// is.
type inquiry struct {
	// found: the server is known that is best connected to, or that there is none.
	found chan struct{}
	front string
	ended chan struct{}
	at    time.Time
	all   []Host
	split string
}

// ask begins an inquiry, unless one is under way. It is called with mu held.
func (k *known) ask(ctx context.Context, pool *pgxpool.Config) *inquiry {
	if k.current != nil {
		return k.current
	}
	q := &inquiry{found: make(chan struct{}), ended: make(chan struct{})}
	k.current = q
	go func() {
		q.run(context.WithoutCancel(ctx), pool) // others wait for it as well
		k.mu.Lock()
		k.last, k.current = q, nil
		k.mu.Unlock()
		close(q.ended)
	}()
	return q
}

// run asks the servers side by side.
func (q *inquiry) run(ctx context.Context, pool *pgxpool.Config) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	began, servers := time.Now(), serversOf(pool.ConnConfig)
	type answer struct {
		of   int
		host Host
	}
	answers := make(chan answer, len(servers))
	for i, s := range servers {
		q.all = append(q.all, Host{Name: s.name, Err: context.DeadlineExceeded})
		go func() { answers <- answer{i, s.ask(ctx, pool)} }()
	}
	var others <-chan time.Time
	choose := sync.OnceFunc(func() {
		q.front = best(q.all)
		close(q.found)
	})
	for left := len(servers); left > 0 && ctx.Err() == nil; {
		select {
		case a := <-answers:
			left--
			q.all[a.of] = a.host
			if a.host.Why() == "" && !a.host.Second && others == nil {
				others = time.After(time.Since(began) + othersLimit)
			}
		case <-others:
			choose()
		case <-ctx.Done(): // a hook of the pool may not heed it
		}
	}
	choose()
	q.at, q.split = time.Now(), Split(q.all)
}

// best is the server that is best connected to: of those that will do, one that was promoted later
// comes first, then one that stands first in the address. Empty: none will do.
func best(all []Host) string {
	var chosen *Host
	for i := range all {
		h := &all[i]
		switch {
		case h.Why() != "":
		case chosen == nil, chosen.Second && !h.Second, chosen.Second == h.Second && h.Timeline > chosen.Timeline:
			chosen = h
		}
	}
	if chosen == nil {
		return ""
	}
	return chosen.Name
}

// find returns the server that is best connected to, within askLimit.
func (k *known) find(ctx context.Context, pool *pgxpool.Config) (string, error) {
	k.mu.Lock()
	q := k.last
	if q == nil || q.front == "" || time.Since(q.at) > askEvery {
		q = k.ask(ctx, pool)
	}
	k.mu.Unlock()
	select {
	case <-q.found:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if q.front == "" {
		<-q.ended
		return "", &noneError{q.all}
	}
	return q.front, nil
}

// noneError: no server of an address can be used.
type noneError struct{ all []Host }

// IsNone reports whether no server of an address could be used.
func IsNone(err error) bool {
	_, ok := errors.AsType[*noneError](err)
	return ok
}

// Error implements error.
func (e *noneError) Error() string {
	var says []string
	for _, h := range e.all {
		says = append(says, h.Name+": "+h.Why())
	}
	return "no server of the database's address can be used: " + strings.Join(says, "; ")
}

// Unwrap returns why not, server by server.
func (e *noneError) Unwrap() (all []error) {
	for _, h := range e.all {
		all = append(all, errors.Join(h.Err, h.Unfit))
	}
	return all
}

// Ask asks the servers of a pool's address side by side what they are, unless that was done in the
// last seconds. It returns within askLimit.
func Ask(ctx context.Context, pool *pgxpool.Config) []Host {
	k := of(pool.ConnConfig)
	k.mu.Lock()
	q := k.last
	if q == nil || time.Since(q.at) > askEvery {
		q = k.ask(ctx, pool)
	}
	k.mu.Unlock()
	<-q.ended
	return q.all
}

// Watch compares the servers of a pool's address from time to time.
type Watch struct {
	pool *pgxpool.Config
	*known
	log *slog.Logger
}

// NewWatch watches the servers of a pool's address. It is nil where that names one server, and then
// costs nothing.
func NewWatch(pool *pgxpool.Pool) *Watch {
	if pool == nil {
		return nil
	}
	config := pool.Config()
	if !Several(config.ConnConfig) {
		return nil
	}
	return &Watch{config, of(config.ConnConfig), slog.New(slog.DiscardHandler)}
}

// Tell has the log told of servers that do not answer, of those that do again, and of a pool that
// would wait for the former. Call it before Check.
func (w *Watch) Tell(log *slog.Logger) {
	if w == nil || log == nil {
		return
	}
	w.log = log
	if w.pool.ConnConfig.ConnectTimeout == 0 {
		log.Warn("the pool tries the servers of its address one after the other, and waits two minutes for each: "+
			"make it by queue.SideBySide, or add connect_timeout=3 to the address", "servers", Names(w.pool.ConnConfig))
	}
}

// Check fails with ErrSplit while the servers do not agree on one primary. It compares them anew
// when the last time is longer ago than askEvery, and waits for that when it is ten seconds ago.
func (w *Watch) Check(ctx context.Context) error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	q := w.last
	if q == nil || time.Since(q.at) > askEvery {
		if q = w.ask(ctx, w.pool); w.last != nil && time.Since(w.last.at) <= 5*askEvery {
			q = w.last
		}
	}
	w.mu.Unlock()
	select {
	case <-q.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	w.tell(q)
	if q.split == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrSplit, q.split)
}

// tell logs which servers have fallen silent since the last time, and which answer again.
func (w *Watch) tell(q *inquiry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told == q {
		return
	}
	silent := map[string]bool{}
	for _, h := range q.all {
		silent[h.Name] = h.Err != nil
		switch {
		case h.Err != nil && !w.silent[h.Name]:
			w.log.Warn("a server of the database's address does not answer; the others are used",
				"server", h.Name, "error", h.Why())
		case h.Err == nil && w.silent[h.Name]:
			w.log.Info("a server of the database's address answers again", "server", h.Name)
		}
	}
	w.told, w.silent = q, silent
}
