// Command temporalcli prints the path of a Temporal CLI, which it builds into the user's cache
// directory if none is installed.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/daybook-dev/daybook/internal/dev/devstack"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	path, err := devstack.TemporalCLI(ctx, func(line string) { fmt.Fprintln(os.Stderr, line) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // the process ends: nothing is left to release
	}
	fmt.Println(path)
}
