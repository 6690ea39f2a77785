package models_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/disposition"
	"github.com/daybook-dev/daybook/models"
)

// table returns the cells of the first table below a heading of docs/states.md, without its head.
func table(t *testing.T, heading string) [][]string {
	t.Helper()
	page, err := os.ReadFile("../docs/states.md")
	require.NoError(t, err)
	_, below, found := strings.Cut("\n"+string(page), "\n"+heading+"\n")
	require.True(t, found, "docs/states.md has no heading %q", heading)
	below, _, _ = strings.Cut(below, "\n## ")
	var rows [][]string
	for line := range strings.Lines(below) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	require.Greater(t, len(rows), 2, "no table below %q", heading)
	return rows[2:]
}

func code(s string) string { return "`" + s + "`" }

func TestDocHasEveryTransition(t *testing.T) {
	t.Parallel()
	var want [][]string
	for _, tr := range models.Transitions() {
		want = append(want, []string{code(string(tr.From)), code(string(tr.To)), tr.By})
	}
	assert.Equal(t, want, table(t, "## Arrows"))
}

// The picture has the arrows of the table, and the one by which a job begins.
func TestDocDrawsEveryTransition(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/states.md")
	require.NoError(t, err)
	_, picture, _ := strings.Cut(string(page), "stateDiagram-v2\n")
	picture, _, _ = strings.Cut(picture, "```")
	var have []string
	for line := range strings.Lines(picture) {
		arrow, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		have = append(have, arrow)
	}
	want := []string{"[*] --> pending"}
	for _, tr := range models.Transitions() {
		want = append(want, string(tr.From)+" --> "+string(tr.To))
	}
	assert.ElementsMatch(t, want, have)
}

func TestDocHasEveryState(t *testing.T) {
	t.Parallel()
	var have, want []string
	for _, row := range table(t, "# The life of an accounting job") {
		have = append(have, row[0])
	}
	for _, s := range models.JobStates() {
		want = append(want, code(string(s)))
	}
	assert.Equal(t, want, have)
}

func TestDocHasEveryError(t *testing.T) {
	t.Parallel()
	var want [][]string
	for _, c := range disposition.Table() {
		want = append(want, []string{code(string(c.Code)), c.Then})
	}
	assert.Equal(t, want, table(t, "## What each error does"))
}

func TestDocHasTheBackoff(t *testing.T) {
	t.Parallel()
	rows := table(t, "## Backoff")
	require.Len(t, rows, models.MaxAttempts)
	for i, row := range rows {
		assert.Equal(t, strconv.Itoa(i+1), row[0])
		v := disposition.Judge(models.Errorf(models.CodeTimeout, "x"), i+1, 0, 0)
		if v.Outcome == models.OutcomeFailed {
			assert.Equal(t, string(models.OutcomeFailed), row[1])
			continue
		}
		d, err := time.ParseDuration(row[1])
		require.NoError(t, err)
		assert.Equal(t, v.Delay, d, "attempt %d", i+1)
	}
}

// The request table has a row for each state; what its cells say is tested in package queue.
func TestDocHasARequestForEveryState(t *testing.T) {
	t.Parallel()
	want := []string{"absent"}
	for _, s := range models.JobStates() {
		want = append(want, string(s))
	}
	var have []string
	for _, row := range table(t, "## What each request does") {
		assert.Len(t, row, 6, row[0])
		have = append(have, row[0])
	}
	assert.Equal(t, want, have)
}

func TestTransitions(t *testing.T) {
	t.Parallel()
	seen := map[[2]models.JobState]bool{}
	left := map[models.JobState]bool{}
	for _, tr := range models.Transitions() {
		arrow := [2]models.JobState{tr.From, tr.To}
		assert.False(t, seen[arrow], "%s → %s is listed twice", tr.From, tr.To)
		assert.NotEmpty(t, tr.By)
		seen[arrow], left[tr.From] = true, true
		for _, s := range arrow {
			_, err := models.ParseJobState(string(s))
			assert.NoError(t, err)
		}
	}
	for _, s := range models.JobStates() {
		assert.True(t, left[s], "no arrow leaves %s: a job could never go on from it", s)
	}
}

func TestParseJobState(t *testing.T) {
	t.Parallel()
	s, err := models.ParseJobState("failed")
	require.NoError(t, err)
	assert.Equal(t, models.JobFailed, s)
	for _, in := range []string{"", "Failed", "done"} {
		_, err = models.ParseJobState(in)
		require.ErrorContains(t, err, "want pending, leased, completed, failed or cancelled", in)
	}
}

func TestOpposite(t *testing.T) {
	t.Parallel()
	assert.Equal(t, models.Credit, models.Debit.Opposite())
	assert.Equal(t, models.Debit, models.Credit.Opposite())
}
