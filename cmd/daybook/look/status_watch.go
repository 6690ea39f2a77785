package look

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

// watchDefault is how many seconds `status --watch` waits before it shows the status again.
const watchDefault = "2"

// watchInterval reads the seconds of --watch, which may stand behind it as an argument; 0: the
// status is shown once.
func watchInterval(watch string, args []string) (time.Duration, error) {
	if watch == "" {
		return 0, nil
	}
	text := strings.Join(args, "")
	if text == "" {
		text = watch
	}
	seconds, err := strconv.ParseFloat(strings.TrimSuffix(text, "s"), 64)
	if err != nil || seconds < 0.1 || seconds > 3600 {
		return 0, cli.Usagef("--watch %s: want seconds, from 0.1 to 3600", text)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// watchStatus shows the status again and again until the context ends, which is no failure. What
// cannot be read is said, and tried again. On a terminal what was read takes the place of the one
// before, without flicker; elsewhere it follows behind a blank line.
func watchStatus(ctx context.Context, a *cli.App, every time.Duration, show func(io.Writer) error) error {
	for first := true; ctx.Err() == nil; first = false {
		text := textOf(a.Stdout, show)
		if ctx.Err() != nil {
			break
		}
		if err := draw(a, text, first, every); err != nil {
			return err
		}
		timer := time.NewTimer(every)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
	return nil //nolint:nilerr // a signal ends it, which is no failure
}

// textOf is what show writes for the terminal, or why it cannot.
func textOf(out io.Writer, show func(io.Writer) error) string {
	var b bytes.Buffer
	if err := show(cli.Screen{Buffer: &b, Terminal: out}); err != nil {
		return fmt.Sprintf("The status cannot be read: %s\n", terminal.OneLine(err.Error()))
	}
	return b.String()
}

// draw shows what was read.
func draw(a *cli.App, text string, first bool, every time.Duration) error {
	const home, rest, endOfLine = "\x1b[H", "\x1b[J", "\x1b[K\n"
	switch {
	case cli.IsTerminal(a.Stdout):
		text = fmt.Sprintf("every %s, %s; Ctrl-C ends\n\n%s", phrase.Duration(every), cli.FormatTime(time.Now()), text)
		text = home + strings.ReplaceAll(text, "\n", endOfLine) + rest
		if first {
			text = "\x1b[2J" + text
		}
	case !first && !a.JSON:
		text = "\n" + text
	}
	_, err := io.WriteString(a.Stdout, text)
	return err
}

// unlessUnnamed leaves Temporal out where the environment does not name it and it does not answer
// within a second: then it may well run, and this program does not know where.
func unlessUnnamed(ctx context.Context, o health.Options, named bool) health.Options {
	if o.Temporal == nil || named {
		return o
	}
	asking, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := o.Temporal.WorkflowService().DescribeNamespace(asking,
		&workflowservice.DescribeNamespaceRequest{Namespace: cmp.Or(o.Namespace, "default")})
	if err != nil {
		o.Temporal = nil
	}
	return o
}
