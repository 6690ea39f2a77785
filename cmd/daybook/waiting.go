package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// longCommands are commands that may take minutes and have no bar, with what they do meanwhile.
var longCommands = map[string]string{
	"accounting repost": "reposting", "accounting retry": "retrying", "accounts import": "importing accounts",
	"adopt accounting-queue": "adopting", "adopt async-operations": "adopting",
	"archive move": "moving to the archive", "archive restore": "restoring", "archive verify": "verifying the archive",
	"audit": "checking the ledger", "erase": "erasing", "export": "exporting", "jobs cancel": "cancelling", "jobs retry": "retrying",
	"jobs resume": "going on", "migrate up": "migrating", "rules activate": "activating the rules", "rules apply": "applying the rules",
	"tasks archive": "archiving", "trial-balance": "adding up",
}

// How soon a command that goes on says so, on a terminal and elsewhere, such as in a log, and how often.
const (
	waitsOnTerminal = time.Second
	waitsElsewhere  = 10 * time.Second
)

// showWaiting has the commands of longCommands say that they go on, on the error stream, and never beside JSON.
func showWaiting(a *app, root *cobra.Command) {
	for _, command := range root.Commands() {
		showWaiting(a, command)
	}
	label, inner := longCommands[strings.TrimPrefix(root.CommandPath(), "daybook ")], root.RunE
	if label == "" || inner == nil {
		return
	}
	root.RunE = func(c *cobra.Command, args []string) error {
		defer a.waiting(label)()
		return inner(c, args)
	}
}

// waiting says again and again for how long something has gone on, until the function that it returns is called.
func (a *app) waiting(label string) (end func()) {
	if a.json {
		return func() {}
	}
	screen := isTerminal(a.stderr)
	every := waitsElsewhere
	if screen {
		every = waitsOnTerminal
	}
	if a.waitsEvery > 0 {
		every = a.waitsEvery
	}
	began, stop, ended := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		shown := false
		for {
			select {
			case <-tick.C:
			case <-stop:
				if shown && screen {
					_, _ = fmt.Fprint(a.stderr, "\r\x1b[K")
				}
				return
			}
			if a.drawing.Load() {
				continue // a bar says more
			}
			shown = true
			text := label + ", for " + phrase.Age(time.Since(began))
			if screen {
				_, _ = fmt.Fprintf(a.stderr, "\r%s\x1b[K", text)
				continue
			}
			_, _ = fmt.Fprintln(a.stderr, text)
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}
