package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// Notifications are counted for the organization of the token, and "today" is where the asker says.
func TestNotificationStats(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.Pool.Exec(t.Context(), `
INSERT INTO daybook.jobs (org_id, type, payload, state, run_count, last_error, last_error_code, finished_at)
SELECT o, y, '{}', s::daybook.job_state, 1, CASE s WHEN 'failed' THEN 'e' END, CASE s WHEN 'failed' THEN 'E' END,
       CASE WHEN s <> 'pending' AND o = 'beta' THEN now() WHEN s <> 'pending' THEN date_trunc('day', now() AT TIME ZONE 'Asia/Tokyo') AT TIME ZONE 'Asia/Tokyo' - interval '1 second' END
  FROM (VALUES ('acme', 'email', 'pending'), ('acme', 'sms', 'failed'), ('acme', 'notification', 'completed'), ('acme', 'webhook', 'completed'),
               ('beta', 'email', 'completed')) AS x (o, y, s)`)
	require.NoError(t, err)
	acme := b.token("acme", tokens.ScopeRead)
	read := func(secret, query string) string {
		return string(b.send(secret, http.MethodGet, "/api/notifications/stats"+query, nil).body)
	}
	assert.JSONEq(t, `{"pending": 1, "processing": 0, "completed": 1, "failed": 1, "todaysSent": 0}`,
		read(acme, "?timeZone=Asia/Tokyo"))
	assert.JSONEq(t, `{"pending": 1, "processing": 0, "completed": 2, "failed": 1, "todaysSent": 1}`,
		read(b.everything, "?timeZone=Asia/Tokyo"))
	assert.JSONEq(t, `{"pending": 0, "processing": 0, "completed": 1, "failed": 0, "todaysSent": 1}`,
		read(b.everything, "?orgId=beta&timeZone=Pacific/Niue"))
	assert.Equal(t, http.StatusNotFound, b.send(acme, http.MethodGet, "/api/notifications/stats?orgId=beta", nil).status)
	assert.Equal(t, http.StatusForbidden,
		b.send(b.token("acme", tokens.ScopeEnqueue), http.MethodGet, "/api/notifications/stats", nil).status)
	a := b.send(acme, http.MethodGet, "/api/notifications/stats?timeZone=Mars/Olympus", nil)
	assert.Equal(t, http.StatusUnprocessableEntity, a.status)
	assert.Contains(t, string(a.body), "INVALID")
}
