package proxy_test

import (
	"context"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/bench/proxy"
)

// echo is a server that answers each byte with answer.
func echo(t *testing.T, answer byte) (address string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				b := make([]byte, 1)
				for {
					if _, err := conn.Read(b); err != nil {
						_ = conn.Close()
						return
					}
					_, _ = conn.Write([]byte{answer})
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func dial(t *testing.T, p *proxy.Proxy) (net.Conn, error) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Address)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}

func dialled(t *testing.T, p *proxy.Proxy) net.Conn {
	t.Helper()
	conn, err := dial(t, p)
	require.NoError(t, err)
	return conn
}

func ask(conn net.Conn) (byte, error) {
	if _, err := conn.Write([]byte("x")); err != nil {
		return 0, err
	}
	b := make([]byte, 1)
	_, err := io.ReadFull(conn, b)
	return b[0], err
}

func answers(t *testing.T, conn net.Conn, want byte) {
	t.Helper()
	got, err := ask(conn)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
}

func TestCutAndBackAtTheSameAddress(t *testing.T) {
	t.Parallel()
	p, err := proxy.New(context.Background(), echo(t, 'a'))
	require.NoError(t, err)
	conn := dialled(t, p)
	answers(t, conn, 'a')
	require.NoError(t, p.Cut())
	_, err = ask(conn)
	require.Error(t, err, "the connection is cut")
	_, err = dial(t, p)
	require.Error(t, err, "none is taken")
	require.NoError(t, p.Open(context.Background()))
	answers(t, dialled(t, p), 'a')
	require.NoError(t, p.Cut())
	require.NoError(t, p.Cut(), "twice is as good as once")
}

func TestAimedElsewhere(t *testing.T) {
	t.Parallel()
	p, err := proxy.New(context.Background(), echo(t, 'a'))
	require.NoError(t, err)
	conn := dialled(t, p)
	answers(t, conn, 'a')
	p.Aim(echo(t, 'b'))
	_, err = ask(conn)
	require.Error(t, err, "the old server is left")
	answers(t, dialled(t, p), 'b')
	require.NoError(t, p.Cut())
}

func TestLeadElsewhere(t *testing.T) {
	t.Parallel()
	p, err := proxy.New(context.Background(), echo(t, 'a'))
	require.NoError(t, err)
	conn := dialled(t, p)
	answers(t, conn, 'a')
	p.Lead(echo(t, 'b'))
	answers(t, conn, 'a') // it stays
	answers(t, dialled(t, p), 'b')
	require.NoError(t, p.Cut())
}

func TestReset(t *testing.T) {
	t.Parallel()
	p, err := proxy.New(context.Background(), echo(t, 'a'))
	require.NoError(t, err)
	conn := dialled(t, p)
	answers(t, conn, 'a')
	assert.Equal(t, 1, p.Reset())
	_, err = io.ReadFull(conn, make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	answers(t, dialled(t, p), 'a')
	require.NoError(t, p.Cut())
}

// TestSilence: nothing comes any more, and nothing says so.
func TestSilence(t *testing.T) {
	t.Parallel()
	p, err := proxy.New(context.Background(), echo(t, 'a'))
	require.NoError(t, err)
	conn := dialled(t, p)
	answers(t, conn, 'a')
	n, end := p.Silence()
	assert.Equal(t, 1, n)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	_, err = ask(conn)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "no answer, and no end")
	answers(t, dialled(t, p), 'a')
	end()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = io.ReadFull(conn, make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "it has ended")
	require.NoError(t, p.Cut())
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	const address = "postgres://u:p@127.0.0.1:5432/bench_1?sslmode=disable"
	host, err := proxy.HostOf(address)
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1:5432", host)
	through, err := (&proxy.Proxy{Address: "127.0.0.1:9"}).Through(address)
	require.NoError(t, err)
	assert.Equal(t, "postgres://u:p@127.0.0.1:9/bench_1?sslmode=disable", through)
}
