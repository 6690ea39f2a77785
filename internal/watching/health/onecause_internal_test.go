package health

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSeverityOfEachKind: one finding stands for several kinds, and for each it is as bad as it is
// there: a queue that nothing waits in is no emergency because another one is.
func TestSeverityOfEachKind(t *testing.T) {
	t.Parallel()
	of := func(kind string, severity Severity) Finding {
		f := Finding{Code: NoWorker, Kind: kind, Severity: severity}
		f.nonePolls(func(kinds []string) []string { return kinds }, ".")
		return f
	}
	p := &probe{Options: Options{Now: time.Now}, findings: []Finding{
		of("tasks", Warning), of("jobs", Warning), of("accounting", Critical),
		{Code: OldestDue, Kind: "jobs", Severity: Critical, Count: 3, follows: true},
	}}
	p.findings[2].stalled = true
	p.oneCause()
	require.Len(t, p.findings, 1)
	f := p.findings[0]
	assert.Equal(t, []string{"accounting", "jobs", "tasks"}, f.AboutKinds())
	assert.Equal(t, Critical, f.Severity)
	assert.Equal(t, Critical, f.SeverityOf("accounting"))
	assert.Equal(t, Critical, f.SeverityOf("jobs"), "its oldest job has waited for long")
	assert.Equal(t, Warning, f.SeverityOf("tasks"))
	assert.Equal(t, Info, Finding{Kind: "jobs", Severity: Info}.SeverityOf("jobs"))
}
