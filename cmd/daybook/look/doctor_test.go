package look

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/dev/pages"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

// A finding that has the name of an error code says it once.
func TestDoctorSaysACodeOnce(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	f := health.Finding{
		Code: "HANDLER_MISSING", Severity: "warning", Kind: "jobs", Type: "receipt",
		ErrorCode: "HANDLER_MISSING",
	}
	a := &cli.App{}
	require.NoError(t, printReport(a, &out, health.Report{Findings: []health.Finding{f}}))
	assert.Regexp(t, `(?m)^WARNING  HANDLER_MISSING  jobs receipt$`, out.String())
}

// TestReportOfThePage prints the report that docs/doctor.md begins with.
func TestReportOfThePage(t *testing.T) {
	t.Parallel()
	sessions, err := pages.Of("docs/doctor.md", pages.Console)
	require.NoError(t, err)
	require.Len(t, sessions, 1)
	since := time.Date(2026, 3, 1, 9, 12, 4, 0, time.Local)
	at := since.Add(3*time.Minute + 10*time.Second)
	f := health.Finding{
		Code: health.NoWorker, Severity: health.Critical, Kind: "jobs", Since: &since, Todo: "Start `daybook worker`.",
		Says: "No worker polls job-queue: the last one, app-7d4f, polled " + phrase.Age(at.Sub(since)) + " ago.",
	}
	var out strings.Builder
	require.NoError(t, printReport(&cli.App{}, &out, health.Report{
		At: at, Summary: "Nothing is worked: n" + f.Says[1:] + " " + f.Todo, Findings: []health.Finding{f},
	}))
	assert.Equal(t, sessions[0].Outputs()[0]+"\nLooked at: .\n", out.String(), "the page leaves out what was looked at")
}
