package models_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
)

// jobsTable returns the rows of the table of docs/jobs.md with that head.
func jobsTable(t *testing.T, head string) [][]string {
	t.Helper()
	page, err := os.ReadFile("../docs/jobs.md")
	require.NoError(t, err)
	_, below, found := strings.Cut(string(page), "\n"+head+"\n")
	require.True(t, found, "docs/jobs.md has no table %q", head)
	var rows [][]string
	for line := range strings.Lines(below) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		rows = append(rows, cells)
	}
	require.Greater(t, len(rows), 2, head)
	return rows[1:]
}

// TestJobsPageHasTheStates compares states and arrows of background jobs with those that there are.
func TestJobsPageHasTheStates(t *testing.T) {
	t.Parallel()
	var states []models.JobState
	for _, row := range jobsTable(t, "| state | means |") {
		states = append(states, models.JobState(row[0]))
	}
	assert.Equal(t, models.JobStates(), states)

	known := map[string]bool{}
	for _, a := range models.Transitions() {
		known[string(a.From)+" → "+string(a.To)] = true
	}
	there := map[string]bool{}
	for _, row := range jobsTable(t, "| from | to | when |") {
		arrow := row[0] + " → " + row[1]
		assert.True(t, known[arrow], arrow)
		assert.False(t, there[arrow], "%s stands there twice", arrow)
		there[arrow] = true
	}
	for arrow := range known {
		from, _, _ := strings.Cut(arrow, " → ")
		// A background job is not asked for again when it is completed.
		if !there[arrow] {
			assert.Equal(t, "completed", from, "docs/jobs.md lacks %s", arrow)
		}
	}
}

// TestJobsPageHasTheCodes compares what the codes do.
func TestJobsPageHasTheCodes(t *testing.T) {
	t.Parallel()
	there := map[models.ErrorCode]string{}
	for _, row := range jobsTable(t, "| code | means | then |") {
		code, then := models.ErrorCode(row[0]), row[2]
		there[code] = then
		assert.Equal(t, models.JobErrorIsFinal(code), strings.HasPrefix(then, "dead letter"), "%s: %s", code, then)
	}
	for _, code := range []models.ErrorCode{
		models.CodeRateLimited, models.CodeUpstream5xx, models.CodeTimeout, models.CodeNetworkError,
		models.CodeDatabaseError, models.CodeHandlerError,
		models.CodePayloadInvalid, models.CodePayloadTooLarge, models.CodeAuthenticationFailed, models.CodeNotFound,
		models.CodeHandlerMissing,
		models.CodeReclaimed, models.CodeJobCancelled, models.CodeSnoozed, models.CodeResultNotStored,
	} {
		assert.Contains(t, there, code)
	}
}
