// Package proxy stands between programs and a server, so that the server can be unavailable for
// them: connections are cut, reset or go silent, new ones are refused or lead elsewhere.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
)

// Proxy passes connections on to a server. Open and Cut may be called in turn.
type Proxy struct {
	// Address is host and port where it listens; it stays the same.
	Address string

	mu       sync.Mutex
	target   string
	listener net.Listener
	conns    map[*pair]bool
	away     bool
	running  sync.WaitGroup
}

// pair is a client's connection and the one to the server.
type pair struct {
	client, server net.Conn
	silent         atomic.Bool
}

func (p *pair) close() { _, _ = p.client.Close(), p.server.Close() } // they are gone either way

// New listens on a free port of 127.0.0.1 and passes everything on to the target.
func New(ctx context.Context, target string) (*Proxy, error) {
	p := &Proxy{target: target, Address: "127.0.0.1:0", conns: map[*pair]bool{}}
	return p, p.Open(ctx)
}

// Open listens, on the same port as before if there was one.
func (p *Proxy) Open(ctx context.Context) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", p.Address)
	if err != nil {
		return fmt.Errorf("listen for the server's clients: %w", err)
	}
	p.mu.Lock()
	p.listener, p.Address, p.away = listener, listener.Addr().String(), false
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

// Cut ends all connections and takes no new ones until Open.
func (p *Proxy) Cut() error {
	p.mu.Lock()
	p.away = true
	err := p.listener.Close()
	for c := range p.conns {
		c.close()
	}
	p.mu.Unlock()
	p.running.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Aim has new connections lead to another target, and ends the others.
func (p *Proxy) Aim(target string) {
	p.Lead(target)
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.close()
	}
}

// Lead has new connections lead to another target, as a changed name does. The others stay.
func (p *Proxy) Lead(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Reset ends all connections by a reset, as a firewall does, and returns how many there were.
func (p *Proxy) Reset() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		for _, conn := range []net.Conn{c.client, c.server} {
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // without it the end is an orderly one
			}
		}
		c.close()
	}
	return len(p.conns)
}

// Silence has the connections of the moment stay open and carry nothing, as when a machine or a
// router is gone; new ones are good. It returns how many there are, and what ends them.
func (p *Proxy) Silence() (n int, end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var silent []*pair
	for c := range p.conns {
		c.silent.Store(true)
		silent = append(silent, c)
	}
	return len(silent), func() {
		for _, c := range silent {
			c.close()
		}
	}
}

// pass copies in both directions until one of them ends.
func (p *Proxy) pass(ctx context.Context, conn net.Conn) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	var dialer net.Dialer
	server, err := dialer.DialContext(ctx, "tcp", target)
	if err != nil {
		_ = conn.Close() // the client learns what the server says
		return
	}
	c := &pair{client: conn, server: server}
	p.mu.Lock()
	p.conns[c] = true
	if p.away || p.target != target {
		// It was accepted just before.
		c.close()
	}
	p.mu.Unlock()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{conn, server}, {server, conn}} {
		both.Go(func() {
			_, _ = io.Copy(&end{way[0], c}, way[1]) // however it ends, it ends
			c.close()
		})
	}
	both.Wait()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

// end is where one direction leads. What is written while the pair is silent is gone.
type end struct {
	net.Conn
	pair *pair
}

// Write implements io.Writer.
func (e *end) Write(b []byte) (int, error) {
	if e.pair.silent.Load() {
		return len(b), nil
	}
	return e.Conn.Write(b)
}

// Through is the address of a database by way of the proxy.
func (p *Proxy) Through(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	u.Host = p.Address
	return u.String(), nil
}

// HostOf is host and port of a database's address.
func HostOf(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	return u.Host, nil
}
