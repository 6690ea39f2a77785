package store_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
)

// quietable are connections that can be made to carry nothing, as when their server has frozen.
type quietable struct {
	mu  sync.Mutex
	all []*quietConn
}

type quietConn struct {
	net.Conn
	quiet atomic.Bool
}

// Write implements net.Conn.
func (c *quietConn) Write(b []byte) (int, error) {
	if c.quiet.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (q *quietable) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &quietConn{Conn: conn}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = append(q.all, c)
	return c, nil
}

// quiet silences the connections of the moment; later ones are good.
func (q *quietable) quiet() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.all {
		c.quiet.Store(true)
	}
}

// TestRenewBesideSilentConnections: a server that was replaced without a word leaves a pool full of
// connections that carry nothing. The second try renews all the same, before the lease expires, and
// has the pool make others.
func TestRenewBesideSilentConnections(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.pending("a", 1, 1)
	turn := b.turn("run/0/1")
	require.Len(t, b.lease(turn, 1), 1)
	config := b.Pool.Config().Copy()
	conns := &quietable{}
	config.MaxConns, config.ConnConfig.DialFunc = 8, conns.dial
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	var open []*pgxpool.Conn
	for range config.MaxConns {
		c, err := pool.Acquire(t.Context())
		require.NoError(t, err)
		open = append(open, c)
	}
	for _, c := range open {
		c.Release()
	}
	conns.quiet()
	s := store.New(pool)
	renew := func(limit time.Duration) (store.Renewed, error) {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return s.Renew(ctx, turn, []string{}, 0)
	}
	_, err = renew(200 * time.Millisecond)
	require.ErrorIs(t, err, context.DeadlineExceeded, "the connection is silent")
	renewed, err := renew(time.Minute)
	require.NoError(t, err)
	assert.Len(t, renewed.Held, 1)
	try, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, pool.Ping(try), "the pool has made another connection")
}
