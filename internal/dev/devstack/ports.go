package devstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

const loopback = "127.0.0.1"

// choosePorts returns the wanted ports, and a free one for each that is 0. A port that is named but
// taken is waited for shortly, because a stack that was killed a moment ago may still be closing.
func choosePorts(ctx context.Context, wanted ...int) ([]int, error) {
	ports := make([]int, len(wanted))
	var open []net.Listener
	// All stay open until all are chosen, so that no two are the same.
	defer func() {
		for _, l := range open {
			_ = l.Close()
		}
	}()
	for i, port := range wanted {
		l, err := listen(ctx, port)
		if err != nil {
			return nil, err
		}
		open = append(open, l)
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

func listen(ctx context.Context, port int) (net.Listener, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var config net.ListenConfig
	for {
		l, err := config.Listen(ctx, "tcp", address(port))
		if err == nil {
			return l, nil
		}
		if port == 0 || errors.Is(err, context.Canceled) {
			return nil, fmt.Errorf("choose a port: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("port %d: %w: end the program that listens there or choose another port (%w)", port,
				ErrPortTaken, err)
		case <-tick.C:
		}
	}
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
