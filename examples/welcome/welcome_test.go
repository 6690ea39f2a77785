package welcome_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/examples/welcome"
	"github.com/daybook-dev/daybook/internal/dev/pages"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// outbox stands for the service that sends messages.
type outbox struct {
	down bool
	sent map[string]string
}

func (o *outbox) send(_ context.Context, address, text, key string) error {
	if o.down {
		return errors.New("the service is down")
	}
	o.sent[key] = address + ": " + text
	return nil
}

func setup(t *testing.T) (*pgtest.DB, *outbox, *jobs.Registry) {
	t.Helper()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `
CREATE TABLE users (id text PRIMARY KEY, address text NOT NULL, welcomed_at timestamptz, visits bigint NOT NULL DEFAULT 0)`)
	require.NoError(t, err)
	o := &outbox{sent: map[string]string{}}
	registry := jobs.NewRegistry()
	(&welcome.Greeter{Pool: db.Pool, Send: o.send}).Register(registry)
	jobs.RegisterBulk(registry, jobs.Policy{Owner: "growth"}, welcome.CountVisits)
	return db, o, registry
}

func TestWelcome(t *testing.T) {
	t.Parallel()
	db, outbox, registry := setup(t)
	require.NoError(t, welcome.SignUp(t.Context(), db.Pool, "u1", "ada@example.com"))
	job := queuetest.RequireJobEnqueued[welcome.Welcome](t, db.Pool)
	assert.Equal(t, "u1", job.Payload.UserID)

	outbox.down = true
	drained := queuetest.DrainJobs(t, db.Pool, registry, queuetest.JobsOptions{})
	assert.Equal(t, 1, drained.Retried)

	outbox.down = false
	drained = queuetest.DrainJobs(t, db.Pool, registry, queuetest.JobsOptions{Advance: time.Minute})
	drained.RequireCompleted(t)
	assert.Equal(t, map[string]string{"welcome/u1": "ada@example.com: Welcome!"}, outbox.sent)
}

func TestWelcomeOfNobody(t *testing.T) {
	t.Parallel()
	db, _, registry := setup(t)
	_, err := queue.EnqueueJob(t.Context(), db.Pool, "acme", welcome.Welcome{UserID: "unknown"}, queue.JobOptions{})
	require.NoError(t, err)
	drained := queuetest.DrainJobs(t, db.Pool, registry, queuetest.JobsOptions{})
	require.Len(t, drained.Jobs, 1)
	assert.Equal(t, models.JobFailed, drained.Jobs[0].State)
	assert.Equal(t, models.CodeNotFound, drained.Jobs[0].ErrorCode)
}

func TestVisits(t *testing.T) {
	t.Parallel()
	db, _, registry := setup(t)
	require.NoError(t, welcome.SignUp(t.Context(), db.Pool, "u1", "ada@example.com"))
	var visits []queue.NewJob
	for range 1000 {
		visits = append(visits, queue.NewJob{OrgID: "acme", Payload: welcome.Visit{UserID: "u1"}})
	}
	_, err := queue.EnqueueJobs(t.Context(), db.Pool, visits)
	require.NoError(t, err)
	queuetest.DrainJobs(t, db.Pool, registry, queuetest.JobsOptions{}).RequireCompleted(t)
	assert.Equal(t, 1000, fixture.Count(t, db.Pool, `SELECT visits FROM users`))
}

// TestPageOfCTEs runs the page's statements: one CTE is read from, the other is not.
func TestPageOfCTEs(t *testing.T) {
	t.Parallel()
	db, _, registry := setup(t)
	blocks, err := pages.Of("docs/jobs.md", "sql")
	require.NoError(t, err)
	require.Len(t, blocks, 2)
	read, unread := blocks[0].Text, blocks[1].Text

	_, err = db.Pool.Exec(t.Context(), unread)
	require.NoError(t, err)
	assert.Equal(t, 1, fixture.Count(t, db.Pool, `SELECT count(*) FROM users`))
	queuetest.RequireJobNotEnqueued[queue.RawPayload](t, db.Pool)

	_, err = db.Pool.Exec(t.Context(), strings.ReplaceAll(read, "u17", "u18"))
	require.NoError(t, err)
	assert.Equal(t, "u18", queuetest.RequireJobEnqueued[welcome.Welcome](t, db.Pool).Payload.UserID)
	queuetest.DrainJobs(t, db.Pool, registry, queuetest.JobsOptions{}).RequireCompleted(t)
}
