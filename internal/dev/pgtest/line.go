package pgtest

import (
	"context"
	"net/url"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
)

// Line is a pool that reaches the test's database over a line that can be cut.
type Line struct {
	Pool  *pgxpool.Pool
	tb    testing.TB
	proxy *toxiproxy.Proxy
	// tried is told of each connection that the pool is about to make.
	tried chan struct{}
}

// Line returns a line of its own to the database. Its pool is closed when the test ends.
func (db *DB) Line(tb testing.TB) *Line {
	tb.Helper()
	address, err := url.Parse(db.URL)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &Line{
		tb: tb, proxy: toxiproxy.NewProxy(server, "postgres", "127.0.0.1:0", address.Host),
		tried: make(chan struct{}),
	}
	l.Mend()
	tb.Cleanup(l.proxy.Stop)
	address.Host = l.proxy.Listen
	config, err := pgxpool.ParseConfig(address.String())
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	config.BeforeConnect = func(context.Context, *pgx.ConnConfig) error {
		select {
		case l.tried <- struct{}{}:
		default:
		}
		return nil
	}
	if l.Pool, err = pgxpool.NewWithConfig(tb.Context(), config); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(l.Pool.Close)
	return l
}

// Cut ends all connections, and refuses others until Mend: to its holder the database is
// unavailable.
func (l *Line) Cut() { l.proxy.Stop() }

// Mend ends what Cut began.
func (l *Line) Mend() {
	l.tb.Helper()
	if err := l.proxy.Start(); err != nil {
		l.tb.Fatalf("pgtest: %v", err)
	}
}

// AwaitTries waits until the pool has tried n times more to connect: while the line is cut, in
// vain.
func (l *Line) AwaitTries(n int) {
	l.tb.Helper()
	for range n {
		select {
		case <-l.tried:
		case <-time.After(time.Minute):
			l.tb.Fatalf("pgtest: nothing connects over the line")
		}
	}
}
