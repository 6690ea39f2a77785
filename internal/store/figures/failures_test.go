package figures_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/store/figures"
)

func TestFailuresOf(t *testing.T) {
	t.Parallel()
	bar := func(kind, jobType, outcome, code string, n int64) figures.Bar {
		return figures.Bar{Attempts: figures.Attempts{Outcome: figures.Outcome{
			Kind: kind, Type: jobType, Outcome: outcome,
			Code: code,
		}, Count: n}}
	}
	bars := []figures.Bar{
		bar("jobs", "email", "completed", "", 100), bar("jobs", "email", "failed", "TIMEOUT", 2),
		bar("jobs", "email", "retried", "TIMEOUT", 3),
		bar("jobs", "email", "failed", "TIMEOUT", 4), bar("tasks", "email", "reclaimed", "", 1),
	}
	g := figures.Gauges{Kinds: []figures.Kind{{Kind: "jobs", Figures: figures.Figures{
		Types: []figures.Type{{Type: "email", Owner: "growth"}},
		DeadLetters: []figures.DeadLetters{
			{Type: "email", Code: "TIMEOUT", Count: 6},
			{Type: "sms", Code: "TIMEOUT", Count: 1},
		},
	}}}}
	assert.ElementsMatch(t, []figures.Failures{
		{Kind: "jobs", Type: "email", Code: "TIMEOUT", Owner: "growth", Dead: 6, Failed: 6, Retried: 3},
		{Kind: "tasks", Type: "email", Code: "JOB_LOCK_TIMEOUT_RECLAIMED", Reclaimed: 1},
		{Kind: "jobs", Type: "sms", Code: "TIMEOUT", Dead: 1},
	}, figures.FailuresOf(g, bars))
	assert.Len(t, figures.FailuresOf(figures.Gauges{}, bars), 2, "without a sample there are no dead letters")
}
