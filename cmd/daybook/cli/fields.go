package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// ParseState reads the flag --state; empty: any.
func ParseState(name string) (models.JobState, error) {
	if name == "" {
		return "", nil
	}
	state, err := models.ParseJobState(name)
	if err != nil {
		return "", Usagef("--state: %v", err)
	}
	return state, nil
}

// ParseMoment reads a flag that is a duration back from now, or a time.
func ParseMoment(flag, text string, now time.Time) (time.Time, error) {
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
	return time.Time{}, Usagef("%s %q: want a duration such as 24h, or a time such as 2026-01-31T09:00:00Z", flag, text)
}

// ParsePriority reads the flag --priority.
func ParsePriority(name string) (queue.Priority, error) {
	p, ok := answers.ParsePriority(name)
	if !ok {
		return 0, Usagef("--priority %q: want high, normal or low", name)
	}
	return p, nil
}

// NotOneArg is the check of commands that are about one document, or about all that flags choose.
func NotOneArg(_ *cobra.Command, args []string) error {
	if len(args) == 1 {
		return Usagef("name the organization and the document")
	}
	return nil
}

// Fields are names and values, one a line; those without a value are left out.
type Fields [][2]string

// Print writes them for people.
func (f Fields) Print(w io.Writer) error {
	for _, line := range f {
		if line[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%-14s %s\n", line[0], terminal.OneLine(line[1])); err != nil {
			return err
		}
	}
	return nil
}

// Sides puts an amount in the column of its side.
func Sides(side models.Side, amount string) (debit, credit string) {
	if side == models.Credit {
		return "", amount
	}
	return amount, ""
}

// ParseLink reads order=17.
func ParseLink(text string) (models.JobLink, error) {
	kind, id, ok := strings.Cut(text, "=")
	if !ok || kind == "" || id == "" {
		return models.JobLink{}, Usagef("--link %q: want a kind and an id, such as order=17", text)
	}
	return models.JobLink{Kind: kind, ID: id}, nil
}
