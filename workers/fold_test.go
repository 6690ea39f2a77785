package workers_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/workers"
)

// TestRepeatsAreFolded: an outage is one line, whatever the number of pollers and tries, and hides
// nothing else.
func TestRepeatsAreFolded(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(workers.FoldRepeats(slog.NewTextHandler(&out, nil)))
	for _, poller := range []*slog.Logger{
		log.With("WorkerType", "ActivityWorker"),
		log.With("WorkerType", "WorkflowWorker"),
	} {
		for range 50 {
			poller.Warn("Failed to poll for task.", "Error", "connection refused")
			poller.Info("Started Worker")
		}
	}
	log.Error("Workflow panic")
	assert.Equal(t, 1, strings.Count(out.String(), "Failed to poll for task."))
	assert.Equal(t, 100, strings.Count(out.String(), "Started Worker"))
	assert.Equal(t, 1, strings.Count(out.String(), "Workflow panic"))
}
