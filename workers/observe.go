package workers

import (
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/internal/telemetry/events/eventlog"
)

// logJobsVariable says what a worker logs of jobs: "1" each end of an attempt, "0" nothing, and
// when it is empty what is not as it should be.
const logJobsVariable = "DAYBOOK_LOG_JOBS"

// observers joins all that observe a worker: its log, and what its subscribers and listeners are
// told by.
func observers(log *slog.Logger, h *hub, more ...events.Sink) (events.Sink, error) {
	mode := eventlog.Mode(os.Getenv(logJobsVariable))
	if !slices.Contains(eventlog.Modes(), mode) {
		return nil, fmt.Errorf("workers: %s is %q: set 1 to log each end of an attempt, 0 to log nothing of jobs, or "+
			"leave it out to log retries, cancellations and dead letters", logJobsVariable, mode)
	}
	return events.Join(append([]events.Sink{eventlog.New(log, mode), h}, more...)...), nil
}
