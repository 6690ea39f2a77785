package console_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/server/internal/console"
)

// TestOverviewReadsTheHistoryOnce: charts and failures come from the same rows, which are many.
func TestOverviewReadsTheHistoryOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead)
	s.exec(`
INSERT INTO daybook.history (seconds, at, kind, type, outcome, code, count, waited_seconds, took_seconds, waited, took)
SELECT 3600, date_bin('1 hour', now(), '2000-01-01 00:00:00+00') - make_interval(hours => n), 'jobs', 'mail', o, CASE o WHEN 'failed' THEN 'TIMEOUT' ELSE '' END, 1, 1, 1, '{1}', '{1}'
  FROM generate_series(1, 100) n CROSS JOIN unnest('{completed,failed}'::text[]) o`)
	pool, reads := fixture.Reads(t, s.Pool)
	s.server.Config.Handler = console.New(console.Options{Pool: pool})
	before, _ := reads("daybook.history")
	status, body := s.get("/console?range=week")
	require.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, "TIMEOUT")
	after, _ := reads("daybook.history")
	assert.Equal(t, int64(200), after-before, "rows read")
}
