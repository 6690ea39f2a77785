package wake_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// org is the organization whose documents are enqueued.
const org = "org_1"

type bundle struct {
	*pgtest.DB
	t     *testing.T
	store *store.Store
	// version is that of the document that was enqueued last by enqueueNew.
	version int
}

func setup(t *testing.T) *bundle {
	t.Helper()
	db := pgtest.New(t)
	return &bundle{DB: db, t: t, store: store.New(db.Pool)}
}

func (b *bundle) exec(query string, args ...any) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), query, args...)
	require.NoError(b.t, err)
}

func (b *bundle) turn(id string) store.Turn {
	b.t.Helper()
	fence, err := b.store.NextFence(b.t.Context())
	require.NoError(b.t, err)
	return store.Turn{ID: id, Fence: fence, Worker: "test", WorkflowRunID: "run"}
}
