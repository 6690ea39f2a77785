package pgtest

import (
	"net/url"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
)

// Line is a pool that reaches the test's database over a line that can be cut.
type Line struct {
	Pool  *pgxpool.Pool
	tb    testing.TB
	proxy *toxiproxy.Proxy
}

// Line returns a line of its own to the database. Its pool is closed when the test ends.
func (db *DB) Line(tb testing.TB) *Line {
	tb.Helper()
	address, err := url.Parse(db.URL)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &Line{tb: tb, proxy: toxiproxy.NewProxy(server, "postgres", "127.0.0.1:0", address.Host)}
	l.Mend()
	tb.Cleanup(l.proxy.Stop)
	address.Host = l.proxy.Listen
	if l.Pool, err = pgxpool.New(tb.Context(), address.String()); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(l.Pool.Close)
	return l
}

// Cut ends all connections, and refuses others until Mend: to its holder the database is unavailable.
func (l *Line) Cut() { l.proxy.Stop() }

// Mend ends what Cut began.
func (l *Line) Mend() {
	l.tb.Helper()
	if err := l.proxy.Start(); err != nil {
		l.tb.Fatalf("pgtest: %v", err)
	}
}
