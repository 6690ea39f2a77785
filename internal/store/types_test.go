package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

// TestTypesOnRecord has workers of each kind put their types on record, that of tasks by the rights of its role.
func TestTypesOnRecord(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	ctx := t.Context()
	jobs := store.NewQueue(db.Pool, store.Jobs)
	webhook := store.TypeOnRecord{Type: "webhook", Owner: "growth", MaxAttempts: 5, Timeout: 1500 * time.Millisecond, Parallel: 30}
	alias := webhook
	alias.Type, alias.AliasOf = "hook", "webhook"
	require.NoError(t, jobs.NoteTypes(ctx, "host/1", []store.TypeOnRecord{webhook, alias, {Type: "import", Bulk: true}}))
	require.NoError(t, store.New(db.Pool).NoteTypes(ctx, "host/1", []store.TypeOnRecord{{Owner: "finance"}}))
	require.NoError(t, store.NewTaskQueue(db.As(t, "worker_service_user"), "email").NoteTypes(ctx, "host/2", []store.TypeOnRecord{{Type: "email", Owner: "growth", Timeout: time.Minute, Parallel: 8}}))
	// A worker that names no owner leaves the one on record; one that names another replaces it.
	webhook.Owner, webhook.MaxAttempts = "", 7
	require.NoError(t, jobs.NoteTypes(ctx, "host/3", []store.TypeOnRecord{webhook, {Type: "import", Owner: "data", Bulk: true}}))

	types, err := store.TypesOnRecord(ctx, db.Pool)
	require.NoError(t, err)
	for i := range types {
		assert.False(t, types[i].FirstSeen.After(types[i].LastSeen))
		assert.WithinDuration(t, time.Now(), types[i].LastSeen, time.Minute)
		types[i].FirstSeen, types[i].LastSeen = time.Time{}, time.Time{}
	}
	assert.Equal(t, []store.TypeOnRecord{
		{Kind: "accounting", Owner: "finance", Worker: "host/1"},
		{Kind: "jobs", Type: "hook", AliasOf: "webhook", Owner: "growth", MaxAttempts: 5, Timeout: 1500 * time.Millisecond, Parallel: 30, Worker: "host/1"},
		{Kind: "jobs", Type: "import", Owner: "data", Bulk: true, Worker: "host/3"},
		{Kind: "jobs", Type: "webhook", Owner: "growth", MaxAttempts: 7, Timeout: 1500 * time.Millisecond, Parallel: 30, Worker: "host/3"},
		{Kind: "tasks", Type: "email", Owner: "growth", Timeout: time.Minute, Parallel: 8, Worker: "host/2"},
	}, types)
	owners, err := store.Owners(ctx, db.Pool, "jobs", []string{"hook", "import", "other"})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"hook": "growth", "import": "data"}, owners)
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
