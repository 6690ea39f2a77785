package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

// TestTypesOnRecord has workers of each kind put their types on record, that of tasks by the rights
// of its role.
func TestTypesOnRecord(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	ctx := t.Context()
	jobs := store.NewQueue(db.Pool, store.Jobs)
	webhook := store.TypeOnRecord{
		Type: "webhook", Owner: "growth", MaxAttempts: 5, Timeout: 1500 * time.Millisecond,
		Parallel: 30,
	}
	alias := webhook
	alias.Type, alias.AliasOf = "hook", "webhook"
	require.NoError(t, jobs.NoteTypes(ctx, "host/1", []store.TypeOnRecord{webhook, alias, {Type: "import", Bulk: true}}))
	require.NoError(t, store.New(db.Pool).NoteTypes(ctx, "host/1", []store.TypeOnRecord{{Owner: "finance"}}))
	require.NoError(t, store.NewTaskQueue(db.As(t, "worker_service_user"), "email").NoteTypes(ctx, "host/2",
		[]store.TypeOnRecord{{Type: "email", Owner: "growth", Timeout: time.Minute, Parallel: 8}}))
	// A worker that names no owner leaves the one on record; one that names another replaces it.
	webhook.Owner, webhook.MaxAttempts = "", 7
	require.NoError(t, jobs.NoteTypes(ctx, "host/3",
		[]store.TypeOnRecord{webhook, {Type: "import", Owner: "data", Bulk: true}}))

	types, err := store.TypesOnRecord(ctx, db.Pool)
	require.NoError(t, err)
	for i := range types {
		assert.False(t, types[i].FirstSeen.After(types[i].LastSeen))
		assert.WithinDuration(t, time.Now(), types[i].LastSeen, time.Minute)
		types[i].FirstSeen, types[i].LastSeen = time.Time{}, time.Time{}
	}
	assert.Equal(t, []store.TypeOnRecord{
		{Kind: "accounting", Owner: "finance", Worker: "host/1"},
		{
			Kind: "jobs", Type: "hook", AliasOf: "webhook", Owner: "growth", MaxAttempts: 5, Timeout: 1500 * time.Millisecond,
			Parallel: 30, Worker: "host/1",
		},
		{Kind: "jobs", Type: "import", Owner: "data", Bulk: true, Worker: "host/3"},
		{
			Kind: "jobs", Type: "webhook", Owner: "growth", MaxAttempts: 7, Timeout: 1500 * time.Millisecond, Parallel: 30,
			Worker: "host/3",
		},
		{Kind: "tasks", Type: "email", Owner: "growth", Timeout: time.Minute, Parallel: 8, Worker: "host/2"},
	}, types)
	owners, err := store.Owners(ctx, db.Pool, "jobs", []string{"hook", "import", "other"})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"hook": "growth", "import": "data"}, owners)
}

// TestTasksOfOtherWorkers: a worker makes way for due tasks of types that another worker has
// processors for, and for none that no living worker can work.
func TestTasksOfOtherWorkers(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	ctx := t.Context()
	exec := func(stmt string) {
		_, err := db.Pool.Exec(ctx, stmt)
		require.NoError(t, err)
	}
	q := store.NewTaskQueue(db.As(t, "worker_service_user"), "email")
	noted := store.TypeOnRecord{Type: "sms"}
	for _, step := range []struct {
		name string
		do   func()
		left bool
	}{
		{"no worker has a processor", func() { exec(`SELECT queues.enqueue('sms', '{}')`) }, false},
		{
			"another worker has one",
			func() { require.NoError(t, q.NoteTypes(ctx, "host/2", []store.TypeOnRecord{{Type: "email"}, noted})) }, true,
		},
		{"the type is paused", func() { exec(`SELECT queues.limit_tasks('sms', true)`) }, false},
		{"the type is resumed", func() { exec(`SELECT queues.limit_tasks('sms', false)`) }, true},
		{"that worker is gone", func() { exec(`UPDATE daybook.job_types SET last_seen = last_seen - interval '6 minutes'`) }, false},
		{"it is back", func() { require.NoError(t, q.NoteTypes(ctx, "host/2", []store.TypeOnRecord{noted})) }, true},
		{"the task is worked", func() { exec(`SELECT queues.complete_task(task_id) FROM queues.dequeue_next_available_task()`) }, false},
	} {
		step.do()
		left, err := q.HasLeft(ctx)
		require.NoError(t, err, step.name)
		assert.Equal(t, step.left, left, step.name)
	}
}

// TestTypesThatAreGoneLeaveTheRecord after 90 days.
func TestTypesThatAreGoneLeaveTheRecord(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := store.NewQueue(db.Pool, store.Jobs)
	require.NoError(t, s.NoteTypes(t.Context(), "host/1", []store.TypeOnRecord{{Type: "old"}}))
	_, err := db.Pool.Exec(t.Context(), `UPDATE daybook.job_types SET last_seen = last_seen - interval '91 days'`)
	require.NoError(t, err)
	require.NoError(t, s.NoteTypes(t.Context(), "host/1", []store.TypeOnRecord{{Type: "new"}}))
	types, err := store.TypesOnRecord(t.Context(), db.Pool)
	require.NoError(t, err)
	require.Len(t, types, 1)
	assert.Equal(t, "new", types[0].Type)
}
