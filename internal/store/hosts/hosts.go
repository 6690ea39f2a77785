// Package hosts compares the servers that a database's address names. A cluster has one primary. Two
// servers that take writes are two ledgers that nothing can join again, and the connections of one
// pool may lead to both.
package hosts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// ErrSplit: more than one server of the address takes writes, or the one that does is behind
// another one's timeline.
var ErrSplit = failure.New(failure.DatabaseUnavailable, "the servers of the database's address do not agree on one primary")

const (
	// lookEvery is the pause between two comparisons of the servers of an address.
	lookEvery = 2 * time.Second
	// lookLimit bounds one comparison; a server that does not answer in it is not compared.
	lookLimit = 3 * time.Second
)

// Host is one server of an address.
type Host struct {
	// Name is its host and port.
	Name string
	// Err is why it was not asked, or did not answer; nil: it did. Then the others are known.
	Err error
	// Standby says that it only reads. Timeline counts the promotions in its history; 0: the server
	// does not say, as some that only speak PostgreSQL's protocol.
	Standby  bool
	Timeline int64
}

// each lists the servers of an address, each as an address of its own that asks for no role.
func each(config *pgx.ConnConfig) (names []string, configs []*pgx.ConnConfig) {
	add := func(host string, port uint16, f *pgconn.FallbackConfig) {
		name := net.JoinHostPort(host, strconv.Itoa(int(port)))
		for i, known := range names {
			if known == name { // it stands there a second time, without TLS
				configs[i].Fallbacks = append(configs[i].Fallbacks, f)
				return
			}
		}
		own := config.Copy()
		own.Host, own.Port, own.TLSConfig = f.Host, f.Port, f.TLSConfig
		own.Fallbacks, own.ValidateConnect = nil, nil
		names, configs = append(names, name), append(configs, own)
	}
	add(config.Host, config.Port, &pgconn.FallbackConfig{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig})
	for _, f := range config.Fallbacks {
		add(f.Host, f.Port, f)
	}
	return names, configs
}

// Names are the servers of an address, each once: one may stand there a second time, without TLS.
func Names(config *pgx.ConnConfig) []string {
	names, _ := each(config)
	return names
}

// Several reports whether an address names more than one server.
func Several(config *pgx.ConnConfig) bool { return len(Names(config)) > 1 }

// Ask asks the servers of a pool's address side by side what they are. It returns within lookLimit.
func Ask(ctx context.Context, pool *pgxpool.Config) []Host {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	names, configs := each(pool.ConnConfig)
	all := make([]Host, len(names))
	var asking sync.WaitGroup
	for i, config := range configs {
		all[i].Name = names[i]
		asking.Go(func() { all[i].Err = all[i].ask(ctx, pool, config) })
	}
	asking.Wait()
	return all
}

// TimelineSQL is the timeline that a primary writes, as an expression. A control file may name an
// older one for a while after a promotion, a position to write at does not. Some servers that only
// speak PostgreSQL's protocol refuse it.
const TimelineSQL = `('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint`

// askStmt asks a server's role and timeline.
const askStmt = `
SELECT pg_is_in_recovery(),
       CASE WHEN pg_is_in_recovery() THEN (SELECT timeline_id FROM pg_control_checkpoint())::bigint ELSE ` + TimelineSQL + ` END`

func (h *Host) ask(ctx context.Context, pool *pgxpool.Config, config *pgx.ConnConfig) error {
	if pool.BeforeConnect != nil {
		if err := pool.BeforeConnect(ctx, config); err != nil {
			return err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	err = conn.QueryRow(ctx, askStmt, pgx.QueryExecModeSimpleProtocol).Scan(&h.Standby, &h.Timeline)
	if _, refused := errors.AsType[*pgconn.PgError](err); refused {
		h.Timeline = 0
		err = conn.QueryRow(ctx, `SELECT pg_is_in_recovery()`, pgx.QueryExecModeSimpleProtocol).Scan(&h.Standby)
	}
	return err
}

// Split says in a sentence why the servers do not agree on one primary; empty: they do, as far as
// they answer.
func Split(all []Host) string {
	var primaries []string
	var writes, newest Host
	for _, h := range all {
		if h.Err != nil {
			continue
		}
		if !h.Standby {
			primaries, writes = append(primaries, fmt.Sprintf("%s (timeline %d)", h.Name, h.Timeline)), h
		}
		if h.Timeline > newest.Timeline {
			newest = h
		}
	}
	switch {
	case len(primaries) > 1:
		return phrase.And(primaries) + " take writes"
	case len(primaries) == 1 && writes.Timeline > 0 && writes.Timeline < newest.Timeline:
		return fmt.Sprintf("%s takes writes on timeline %d, and %s is on timeline %d: another server was promoted since",
			writes.Name, writes.Timeline, newest.Name, newest.Timeline)
	default:
		return ""
	}
}

// Watch compares the servers of a pool's address from time to time.
type Watch struct {
	config *pgxpool.Config

	mu      sync.Mutex
	looking chan struct{} // closed when the comparison that is under way has ended; nil: there is none
	at      time.Time
	split   string
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
	return &Watch{config: config}
}

// Check fails with ErrSplit while the servers do not agree on one primary. It compares them anew
// when the last time is longer ago than lookEvery, and waits for that when it is ten seconds ago.
func (w *Watch) Check(ctx context.Context) error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	age := time.Since(w.at)
	if age > lookEvery && w.looking == nil {
		w.looking = make(chan struct{})
		go w.look(context.WithoutCancel(ctx)) // others wait for it as well
	}
	looking := w.looking
	w.mu.Unlock()
	if looking != nil && age > 5*lookEvery {
		select {
		case <-looking:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.split == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrSplit, w.split)
}

// look asks once, and lets those go on who wait for it.
func (w *Watch) look(ctx context.Context) {
	split := Split(Ask(ctx, w.config))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at, w.split = time.Now(), split
	close(w.looking)
	w.looking = nil
}
