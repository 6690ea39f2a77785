// Command daybook runs Daybook: the worker, the schema, imports, rules, and a look at the queue and
// the ledger. Its commands and exit codes are described in docs/cli.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameSignal is how long after the first signal another one counts as the same: programs that run
// this one may pass on what the terminal has sent already.
const sameSignal = 500 * time.Millisecond

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		// The first signal ends the command in an orderly way. After it the signals have their usual
		// effect again, so that the second one ends the process at once.
		<-signals
		cancel()
		time.Sleep(sameSignal)
		signal.Stop(signals)
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
