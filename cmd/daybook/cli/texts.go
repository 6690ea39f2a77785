package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

// ListLine is what a column of a list shows of a text that may have many lines, such as the stack
// of a panic.
func ListLine(text string) string {
	line, _, more := strings.Cut(text, "\n")
	if more {
		line = strings.TrimRight(line, "\r ") + " …"
	}
	return line
}

// OptionalTime is FormatTime of a moment that may not be known.
func OptionalTime(t *time.Time) string {
	if t == nil {
		return ""
	}
	return FormatTime(*t)
}

// OutcomeOf says how an attempt ended, and how often in a row.
func OutcomeOf(at *models.Attempt) string {
	if at.FirstStartedAt == nil {
		return string(at.Outcome)
	}
	return fmt.Sprintf("%s %d times since %s", at.Outcome, at.Times, FormatTime(*at.FirstStartedAt))
}

// WaitsForTurn is said where the job that is waited for is not read.
const WaitsForTurn = "waits for its turn or for other jobs"

// ChangedText says whether a command changed something.
func ChangedText(changed bool) string {
	if changed {
		return "changed"
	}
	return "unchanged"
}

// FormatTime writes a moment in the reader's zone.
func FormatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// PluralOf counts what the queue of a kind holds.
func PluralOf(kind string, n int64) string {
	if kind == string(models.KindTasks) {
		return phrase.Plural(n, "task", "tasks")
	}
	return phrase.Plural(n, "job", "jobs")
}

// CountText marks a number that is an estimate.
func CountText(n int64, estimated bool) string {
	if estimated {
		return "≈" + strconv.FormatInt(n, 10)
	}
	return strconv.FormatInt(n, 10)
}

// TasksText names the tasks that a limit is for.
func TasksText(taskType string) string {
	if taskType == models.AllTasks {
		return "all"
	}
	return taskType
}
