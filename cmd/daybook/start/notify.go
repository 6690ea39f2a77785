package start

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
)

const (
	// askAgain is the pause between two questions whether the program is ready.
	askAgain = 250 * time.Millisecond
	// beatsPerWatchdog is how many beats are sent in the time after which the service manager would
	// take the program for hung.
	beatsPerWatchdog = 3
)

// notify tells the service manager (systemd, NOTIFY_SOCKET) that the program is ready once alive
// says so, then that it is alive, for as long as alive does: a program that is hung is restarted. It
// ends when stop is called. Without a service manager it does nothing.
func notify(ctx context.Context, a *cli.App, waits, works string, alive func(context.Context) bool) (stop func()) {
	if a.Environment.NotifySocket == "" {
		return func() {}
	}
	n := notifier{app: a, alive: alive}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		n.tell("STATUS=" + waits)
		if n.await(ctx) {
			n.tell("READY=1\nSTATUS=" + works)
			n.beat(ctx)
		}
		n.tell("STOPPING=1\nSTATUS=finishes what it has begun")
	})
	return func() {
		cancel()
		running.Wait()
	}
}

type notifier struct {
	app   *cli.App
	alive func(context.Context) bool
}

// await returns when the program is alive for the first time; false: it was told to stop before.
func (n notifier) await(ctx context.Context) bool {
	for !n.alive(ctx) {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(askAgain):
		}
	}
	return true
}

// beat says that the program is alive while it is. A service without a watchdog needs no beat.
func (n notifier) beat(ctx context.Context) {
	limit := time.Duration(n.app.Environment.WatchdogMicroseconds) * time.Microsecond
	if limit <= 0 {
		<-ctx.Done()
		return
	}
	silent := false
	for {
		switch alive := n.alive(ctx); {
		case ctx.Err() != nil:
			return
		case alive:
			n.tell("WATCHDOG=1")
			silent = false
		case !silent:
			n.app.Log.Error("the program does not get on: unless it does, the service manager will restart it", "within", limit.String())
			silent = true
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(limit / beatsPerWatchdog):
		}
	}
}

// tell sends lines to the service manager. A socket that begins with @ is one without a file, as
// package net has it too.
func (n notifier) tell(lines string) {
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.app.Environment.NotifySocket, Net: "unixgram"})
	if err == nil {
		_, err = c.Write([]byte(lines))
		_ = c.Close()
	}
	if err != nil {
		n.app.Log.Warn("the service manager could not be told", "lines", lines, "error", err)
	}
}
