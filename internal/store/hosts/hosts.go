// Package hosts knows the servers that a database's address names. A cluster has one primary. Two
// servers that take writes are two ledgers that nothing can join again, and the connections of one
// pool may lead to both. One that does not answer must not keep a program from the others.
//
// hosts.go asks servers what they are, watch.go remembers what they said, and connect.go opens
// connections by it.
package hosts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// Host is one server of an address.
type Host struct {
	// Name is its host and port.
	Name string
	// Err is why it was not asked, or did not answer; nil: it did. Then the others are known.
	Err error
	// Unfit is why it is not what the address asks for (target_session_attrs); nil: it is. Second
	// says that it will do where no other one is there.
	Unfit  error
	Second bool
	// Standby says that it only reads. Timeline counts the promotions in its history; 0: the server
	// does not say, as some that only speak PostgreSQL's protocol.
	Standby  bool
	Timeline int64
	// Started is when it was started, in microseconds: two names may lead to one server, for instance
	// those of two proxies; 0: it does not say.
	Started int64
}

// server is one server of an address, and the ways to connect to it: with TLS and without.
type server struct {
	name string
	ways []*pgconn.FallbackConfig
}

// serversOf lists the servers of an address, each once.
func serversOf(config *pgx.ConnConfig) (all []server) {
	ways := append([]*pgconn.FallbackConfig{{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}},
		config.Fallbacks...)
next:
	for _, way := range ways {
		name := net.JoinHostPort(way.Host, strconv.Itoa(int(way.Port)))
		for i := range all {
			if all[i].name == name {
				all[i].ways = append(all[i].ways, way)
				continue next
			}
		}
		all = append(all, server{name, []*pgconn.FallbackConfig{way}})
	}
	return all
}

// setWays has a configuration connect by these ways, in their order.
func setWays(config *pgx.ConnConfig, ways []*pgconn.FallbackConfig) {
	config.Host, config.Port, config.TLSConfig, config.Fallbacks = ways[0].Host, ways[0].Port, ways[0].TLSConfig, ways[1:]
}

// Names are the servers of an address, each once: one may stand there a second time, without TLS.
func Names(config *pgx.ConnConfig) (names []string) {
	for _, s := range serversOf(config) {
		names = append(names, s.name)
	}
	return names
}

// Several reports whether an address names more than one server.
func Several(config *pgx.ConnConfig) bool { return len(serversOf(config)) > 1 }

// TimelineSQL is the timeline that a primary writes, as an expression. A control file may name an
// older one for a while after a promotion, a position to write at does not. Some servers that only
// speak PostgreSQL's protocol refuse it.
const TimelineSQL = `('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint`

// askStmt asks a server's role and timeline.
const askStmt = `
SELECT pg_is_in_recovery(), (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint,
       CASE WHEN pg_is_in_recovery() THEN (SELECT timeline_id FROM pg_control_checkpoint())::bigint ELSE ` + TimelineSQL + ` END`

// closeLimit bounds the end of a connection: a server that stands still ends none.
const closeLimit = time.Second

// ask asks one server of a pool's address what it is.
func (s server) ask(ctx context.Context, pool *pgxpool.Config) Host {
	h := Host{Name: s.name}
	config := pool.ConnConfig.Copy()
	setWays(config, s.ways)
	config.ValidateConnect = nil // what is unfit is to say what it is as well
	conn, err := dial(ctx, pool, config)
	if err != nil {
		h.Err = err
		return h
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	h.Err = conn.QueryRow(ctx, askStmt, pgx.QueryExecModeSimpleProtocol).Scan(&h.Standby, &h.Started, &h.Timeline)
	if _, refused := errors.AsType[*pgconn.PgError](h.Err); refused {
		h.Timeline, h.Started = 0, 0
		h.Err = conn.QueryRow(ctx, `SELECT pg_is_in_recovery()`, pgx.QueryExecModeSimpleProtocol).Scan(&h.Standby)
	}
	wanted := pool.ConnConfig.ValidateConnect
	if wanted == nil {
		h.Second = h.Standby // Daybook writes
	} else if h.Err == nil {
		h.Unfit = wanted(ctx, conn.PgConn())
		if _, h.Second = errors.AsType[*pgconn.NotPreferredError](h.Unfit); h.Second {
			h.Unfit = nil
		}
	}
	return h
}

// Why says in a few words why a server cannot be used.
func (h Host) Why() string {
	switch {
	case h.Err == nil && h.Unfit == nil:
		return ""
	case h.Err == nil:
		return h.Unfit.Error()
	case errors.Is(h.Err, context.DeadlineExceeded):
		return "no answer in time"
	}
	if cause, _ := Cause(h.Err); cause != "" {
		return cause
	}
	return h.Err.Error()
}

// Cause is what the network or the server says in an error, and of which address the network says
// it; both are empty if neither says anything.
func Cause(err error) (cause, address string) {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		cause = op.Err.Error()
		if sys, ok := errors.AsType[*os.SyscallError](op.Err); ok {
			cause = sys.Err.Error()
		}
		if op.Addr != nil {
			address = op.Addr.String()
		}
	} else if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		cause = pg.Message + " (SQLSTATE " + pg.Code + ")"
	}
	return cause, address
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
		if !h.Standby && (h.Started == 0 || h.Started != writes.Started) {
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
