package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

func parseState(name string) (models.JobState, error) {
	if name == "" {
		return "", nil
	}
	state, err := models.ParseJobState(name)
	if err != nil {
		return "", usagef("--state: %v", err)
	}
	return state, nil
}

// parseMoment reads a flag that is a duration back from now, or a time.
func parseMoment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usagef("%s %q: want a duration such as 24h, or a time such as 2026-01-31T09:00:00Z", flag, text)
}

// moment is parseMoment back from the database's clock, which the times in rows are from: for what is removed by its age.
func (db *database) moment(ctx context.Context, flag, text string) (time.Time, error) {
	now, err := store.Now(ctx, db.Pool)
	if err != nil {
		return now, err
	}
	return parseMoment(flag, text, now)
}

// dueIn is when something is due that waits for a delay, by the database's clock, which workers go by; 0: at, which says it.
func (db *database) dueIn(ctx context.Context, delay time.Duration, at time.Time) (time.Time, error) {
	if delay == 0 {
		return at, nil
	}
	now, err := store.Now(ctx, db.Pool)
	return now.Add(delay), err
}

// listLine is what a column of a list shows of a text that may have many lines, such as the stack of a panic.
func listLine(text string) string {
	line, _, more := strings.Cut(text, "\n")
	if more {
		line = strings.TrimRight(line, "\r ") + " …"
	}
	return line
}

func optionalTime(t *time.Time) string {
	if t == nil {
		return ""
	}
	return formatTime(*t)
}

// outcomeOf says how an attempt ended, and how often in a row.
func outcomeOf(at *models.Attempt) string {
	if at.FirstStartedAt == nil {
		return string(at.Outcome)
	}
	return fmt.Sprintf("%s %d times since %s", at.Outcome, at.Times, formatTime(*at.FirstStartedAt))
}

func parsePriority(name string) (queue.Priority, error) {
	p, ok := answers.ParsePriority(name)
	if !ok {
		return 0, usagef("--priority %q: want high, normal or low", name)
	}
	return p, nil
}

func notOneArg(_ *cobra.Command, args []string) error {
	if len(args) == 1 {
		return usagef("name the organization and the document")
	}
	return nil
}
