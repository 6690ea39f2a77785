package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
)

// proxy stands between programs and PostgreSQL, so that PostgreSQL can be unavailable for them:
// connections are cut, new ones refused.
type proxy struct {
	target, address string
	mu              sync.Mutex
	listener        net.Listener
	conns           map[net.Conn]bool
	away            bool
	running         sync.WaitGroup
}

// newProxy listens on a free port and passes everything on to the target.
func newProxy(ctx context.Context, target string) (*proxy, error) {
	p := &proxy{target: target, address: "127.0.0.1:0", conns: map[net.Conn]bool{}}
	return p, p.open(ctx)
}

// open listens, on the same port as before if there was one.
func (p *proxy) open(ctx context.Context) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", p.address)
	if err != nil {
		return fmt.Errorf("listen for PostgreSQL's clients: %w", err)
	}
	p.mu.Lock()
	p.listener, p.address, p.away = listener, listener.Addr().String(), false
	p.mu.Unlock()
	p.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // it was closed
			}
			p.running.Go(func() { p.pass(ctx, conn) })
		}
	})
	return nil
}

// cut ends all connections and takes no new ones until open.
func (p *proxy) cut() error {
	p.mu.Lock()
	p.away = true
	err := p.listener.Close()
	for conn := range p.conns {
		_ = conn.Close() // it is gone either way
	}
	p.mu.Unlock()
	p.running.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// pass copies in both directions until one of them ends.
func (p *proxy) pass(ctx context.Context, conn net.Conn) {
	var dialer net.Dialer
	server, err := dialer.DialContext(ctx, "tcp", p.target)
	if err != nil {
		_ = conn.Close() // the client learns what the server says
		return
	}
	p.mu.Lock()
	p.conns[conn], p.conns[server] = true, true
	if p.away {
		// It was accepted just before the cut.
		_, _ = conn.Close(), server.Close()
	}
	p.mu.Unlock()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{conn, server}, {server, conn}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // however it ends, it ends
			_, _ = conn.Close(), server.Close()
		})
	}
	both.Wait()
	p.mu.Lock()
	delete(p.conns, conn)
	delete(p.conns, server)
	p.mu.Unlock()
}

// through is the address of a database by way of the proxy.
func (p *proxy) through(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	u.Host = p.address
	return u.String(), nil
}

// hostOf is host and port of a database's address.
func hostOf(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	return u.Host, nil
}

// withApplicationName is the address with an application_name.
func withApplicationName(address, name string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	q := u.Query()
	q.Set("application_name", name)
	u.RawQuery = q.Encode()
	return u.String(), nil
}
