package health

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
)

// TestTroublesOfAFailover: what the workers of all kinds wait for is one finding, which names the
// failover, and none beside the database's own.
func TestTroublesOfAFailover(t *testing.T) {
	t.Parallel()
	now := time.Now()
	since := now.Add(-time.Minute)
	all := func(says string) *probe {
		p := &probe{
			Options: Options{Now: time.Now}, at: now, timeline: 4, promoted: &since,
			open: map[string]bool{"accounting": true, "jobs": true, "tasks": true},
		}
		for _, kind := range kinds() {
			p.add(p.troubled(kind, models.TurnTrouble{Says: says + kind, Since: since}))
		}
		return p
	}
	p := all("connection refused to draw a fence of ")
	p.oneCause()
	require.Len(t, p.findings, 1)
	f := p.findings[0]
	assert.Equal(t, Critical, f.Severity)
	assert.Equal(t, "After a failover 1 min ago (timeline 4), the worker's turns of accounting, jobs and tasks wait "+
		"for the database: connection refused to draw a fence of accounting.", f.Says)
	assert.NotContains(t, f.Todo, "password")

	p = all("password authentication failed (SQLSTATE 28P01) ")
	p.promoted = nil
	p.oneCause()
	require.Len(t, p.findings, 1)
	assert.Contains(t, p.findings[0].Todo, "password")

	p = all("connection refused to ")
	p.add(Finding{Code: DatabaseUnavailable, Severity: Critical, Says: "The database does not answer."})
	p.oneCause()
	require.Len(t, p.findings, 1)
	assert.Equal(t, DatabaseUnavailable, p.findings[0].Code)
	assert.Len(t, p.consequences, 1)
}
