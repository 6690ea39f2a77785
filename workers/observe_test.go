package workers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workers"
)

type observedJob struct{}

func (observedJob) JobType() string { return "observed" }

// TestDeadLettersAreLogged: with who owns them, and without the secrets of their errors.
func TestDeadLettersAreLogged(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{Owner: "growth"}, func(context.Context, *jobs.Job[observedJob]) error {
		return jobs.Final(jobs.WithCode("UPSTREAM_GONE", errors.New("https://shop:hunter2222@example.com answered 410")))
	})
	job, err := queue.EnqueueJob(t.Context(), db.Pool, "acme", observedJob{}, queue.JobOptions{})
	require.NoError(t, err)
	var out bytes.Buffer
	due, err := workers.NewDueJobs(workers.DueJobsOptions{
		Pool: db.Pool, Registry: registry,
		Log: slog.New(slog.NewJSONHandler(&out, nil)),
	})
	require.NoError(t, err)
	_, err = due.Run(t.Context(), 10)
	require.NoError(t, err)
	due.Close()
	var failed map[string]any
	for text := range strings.Lines(out.String()) {
		line := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(text), &line))
		if line["outcome"] == "failed" {
			failed = line
		}
	}
	require.NotNil(t, failed, out.String())
	assert.Equal(t, "WARN", failed["level"])
	assert.Equal(t, job.ID, failed["job"])
	assert.Equal(t, "growth", failed["owner"])
	assert.Equal(t, "UPSTREAM_GONE", failed["code"])
	assert.Equal(t, "https://shop:[redacted]@example.com answered 410", failed["error"])
	assert.Positive(t, failed["waited_ms"])
}

// TestLogJobsIsChecked refuses a word that means nothing.
func TestLogJobsIsChecked(t *testing.T) {
	t.Setenv("DAYBOOK_LOG_JOBS", "yes")
	db := pgtest.New(t)
	_, err := workers.NewDueJobs(workers.DueJobsOptions{Pool: db.Pool, Registry: jobs.NewRegistry()})
	assert.ErrorContains(t, err, "DAYBOOK_LOG_JOBS")
}
