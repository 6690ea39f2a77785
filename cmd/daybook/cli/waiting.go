package cli

import (
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// How soon a command that goes on says so, on a terminal and elsewhere, such as in a log, and how
// often.
const (
	waitsOnTerminal = time.Second
	waitsElsewhere  = 10 * time.Second
)

// Waiting says again and again for how long something has gone on, until the function that it
// returns is called.
func (a *App) Waiting(label string) (end func()) {
	if a.JSON {
		return func() {}
	}
	screen := IsTerminal(a.Stderr)
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
					_, _ = fmt.Fprint(a.Stderr, "\r\x1b[K")
				}
				return
			}
			if a.drawing.Load() {
				continue // a bar says more
			}
			shown = true
			text := label + ", for " + phrase.Age(time.Since(began))
			if screen {
				_, _ = fmt.Fprintf(a.Stderr, "\r%s\x1b[K", text)
				continue
			}
			_, _ = fmt.Fprintln(a.Stderr, text)
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}
