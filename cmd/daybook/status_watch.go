package main

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

	"github.com/daybook-dev/daybook/internal/health"
)

// watchDefault is how many seconds `status --watch` waits between two looks.
const watchDefault = "2"

// watchInterval reads the seconds of --watch, which may stand behind it as an argument; 0: the status is shown once.
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
		return 0, usagef("--watch %s: want seconds, from 0.1 to 3600", text)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// watchStatus shows the status again and again until the context ends, which is no failure. What cannot be read is said, and tried again. On a terminal
// each look takes the place of the one before, without flicker; elsewhere it follows behind a blank line.
func (a *app) watchStatus(ctx context.Context, every time.Duration, show func(io.Writer) error) error {
	for first := true; ; first = false {
		var b bytes.Buffer
		if err := show(screen{&b, a.stdout}); err != nil && ctx.Err() == nil {
			b.Reset()
			fmt.Fprintf(&b, "The status cannot be read: %s\n", oneLine(err.Error()))
		}
		if ctx.Err() != nil {
			return nil
		}
		if err := a.draw(b.String(), first, every); err != nil {
			return err
		}
		timer := time.NewTimer(every)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// draw shows a look.
func (a *app) draw(text string, first bool, every time.Duration) error {
	const home, rest, endOfLine = "\x1b[H", "\x1b[J", "\x1b[K\n"
	switch {
	case isTerminal(a.stdout):
		text = fmt.Sprintf("every %s, %s; Ctrl-C ends\n\n%s", health.Age(every), formatTime(time.Now()), text)
		text = home + strings.ReplaceAll(text, "\n", endOfLine) + rest
		if first {
			text = "\x1b[2J" + text
		}
	case !first && !a.json:
		text = "\n" + text
	}
	_, err := io.WriteString(a.stdout, text)
	return err
}

// screen buffers what goes to the terminal that it stands for.
type screen struct {
	*bytes.Buffer
	terminal io.Writer
}

// unlessUnnamed leaves Temporal out where the environment does not name it and it does not answer within a second: then it may well run, and this
// program does not know where.
func unlessUnnamed(ctx context.Context, o health.Options, named bool) health.Options {
	if o.Temporal == nil || named {
		return o
	}
	asking, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := o.Temporal.WorkflowService().DescribeNamespace(asking, &workflowservice.DescribeNamespaceRequest{Namespace: cmp.Or(o.Namespace, "default")})
	if err != nil {
		o.Temporal = nil
	}
	return o
}
