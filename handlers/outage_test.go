package handlers

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gocloud.dev/blob/memblob"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// TestOwnQueryThatMeetsAnOutage makes the database unavailable to the queries of built-in handlers:
// that is not an attempt. What it should be is made when the database is back.
func TestOwnQueryThatMeetsAnOutage(t *testing.T) {
	t.Parallel()
	for name, payload := range map[string]func(url string) queue.Payload{
		"webhook": func(url string) queue.Payload { return Webhook{URL: url} },
		"cleanup": func(string) queue.Payload { return Cleanup{} },
		"report":  func(string) queue.Payload { return Report{Kind: ReportTrialBalance} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			r := receive(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
			b.exec(`INSERT INTO daybook.organizations (id) VALUES ($1)`, org)
			line := b.Line(t)
			policy := jobs.Policy{MaxAttempts: 1}
			hook, err := NewWebhook(line.Pool, WebhookConfig{AllowNetworks: loopback, Secrets: environmentSecrets(nil)})
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, hook.Close()) })
			jobs.Register(b.registry, policy, hook.Handle)
			cleanup, err := NewCleanup(line.Pool, CleanupConfig{})
			require.NoError(t, err)
			jobs.Register(b.registry, policy, cleanup.Handle)
			bucket := memblob.OpenBucket(nil)
			t.Cleanup(func() { assert.NoError(t, bucket.Close()) })
			jobs.Register(b.registry, policy, newReportIn(line.Pool, bucket, 100).Handle)

			line.Cut()
			j := b.run(payload(r.URL))
			require.Equal(t, models.JobPending, j.State)
			assert.Equal(t, models.CodeDatabaseError, j.Code)
			assert.Less(t, j.Wait, 30*time.Second)
			assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.attempts WHERE outcome = 'rescheduled' AND attempt = 1`))
			line.Mend()
			b.due()
			b.work()
			j = b.job(j.ID)
			assert.Equal(t, models.JobCompleted, j.State, "%s: %s", j.Code, j.Error)
			assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.jobs WHERE run_count = 1`), "it was the first attempt")
		})
	}
}
