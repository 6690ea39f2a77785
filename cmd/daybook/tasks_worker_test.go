package main

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workflows"
)

// TestWorkerWorksTasksAsItsRole: `daybook worker` works tasks with the sessions that
// DAYBOOK_TASKS_DATABASE_URL names.
func TestWorkerWorksTasksAsItsRole(t *testing.T) {
	server := temporaltest.Shared(t)
	namespace := server.Namespace(t)
	inNamespace(t, server, namespace)
	b := setup(t)
	t.Setenv("DAYBOOK_TASKS_DATABASE_URL", b.As(t, "worker_service_user").Config().ConnString())
	_, err := b.Pool.Exec(t.Context(), `
CREATE SCHEMA app; CREATE TABLE app.facts (who text);
CREATE FUNCTION app.visit(_payload jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN INSERT INTO app.facts VALUES (session_user); RETURN '{"status": "succeeded"}'; END $$;
REVOKE ALL ON FUNCTION app.visit FROM PUBLIC;
GRANT USAGE ON SCHEMA app TO worker_service_user;
GRANT EXECUTE ON FUNCTION app.visit TO worker_service_user;
SELECT queues.enqueue('db_function', '{"db_function": "app.visit"}')`)
	require.NoError(t, err)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	ended := make(chan result, 1)
	go func() { ended <- call(ctx, "", "--database-url", b.URL, "worker") }()

	run, err := server.Client(t, namespace).ExecuteWorkflow(t.Context(),
		client.StartWorkflowOptions{ID: "t", TaskQueue: workflows.TasksTaskQueue},
		workflows.TasksWorkflow, workflows.Input{ExitWhenEmpty: true})
	require.NoError(t, err)
	var counts models.RunCounts
	require.NoError(t, run.Get(t.Context(), &counts))
	assert.EqualValues(t, 1, counts.Completed)
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM app.facts WHERE who = 'worker_service_user'`))
	stop()
	r := <-ended
	assert.Equal(t, failure.ExitOK, r.exit, r.err)
	assert.Contains(t, r.err, "DAYBOOK_TWILIO_ACCOUNT_SID", "it names the variables of types without settings")
}

// TestWorkerRefusesAWrongAddressForTasks: it is told at once, and without the password.
func TestWorkerRefusesAWrongAddressForTasks(t *testing.T) {
	server := temporaltest.Shared(t)
	inNamespace(t, server, server.Namespace(t))
	b := setup(t)
	wrong, err := url.Parse(b.As(t, "worker_service_user").Config().ConnString())
	require.NoError(t, err)
	wrong.User = url.UserPassword("worker_service_user", "s3cret-and-wrong")
	for address, exit := range map[string]int{"postgres://%zz": failure.ExitUsage, wrong.String(): failure.ExitFailure} {
		t.Setenv("DAYBOOK_TASKS_DATABASE_URL", address)
		r := b.run("worker")
		assert.Equal(t, exit, r.exit, r.err)
		assert.Contains(t, r.err, "DAYBOOK_TASKS_DATABASE_URL")
		assert.NotContains(t, r.err, "s3cret")
	}
}
