package queue_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/queue"
)

// TestSourceAndHooksAreSetOnce says what changed, in the caller's transaction, and nothing the
// second time.
func TestSourceAndHooksAreSetOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	for _, want := range []bool{true, false} {
		for name, set := range map[string]func() (bool, error){
			"source":         func() (bool, error) { return queue.SetSource(ctx, b.Pool, "acme", "orders") },
			"hooks":          func() (bool, error) { return queue.SetHooks(ctx, b.Pool, "acme", []string{"b", "a", "b"}) },
			"default source": func() (bool, error) { return queue.SetDefaultSource(ctx, b.Pool, "ledgers") },
			"default hooks":  func() (bool, error) { return queue.SetDefaultHooks(ctx, b.Pool, []string{"mail"}) },
		} {
			changed, err := set()
			require.NoError(t, err, name)
			assert.Equal(t, want, changed, name)
		}
	}
	changed, err := queue.SetSource(ctx, b.Pool, "acme", "")
	require.NoError(t, err)
	assert.True(t, changed, "it follows the default")
	changed, err = queue.SetHooks(ctx, b.Pool, "acme", nil)
	require.NoError(t, err)
	assert.True(t, changed)

	_, err = queue.SetSource(ctx, b.Pool, "", "orders")
	require.ErrorIs(t, err, queue.ErrEmptyID)
	for _, bad := range []string{"The Shop", "a'b"} {
		_, err = queue.SetSource(ctx, b.Pool, "acme", bad)
		require.ErrorIs(t, err, queue.ErrInvalid, bad)
		_, err = queue.SetHooks(ctx, b.Pool, "acme", []string{"a", bad})
		require.ErrorIs(t, err, queue.ErrInvalid, bad)
	}
	_, err = queue.SetDefaultSource(ctx, b.Pool, "")
	require.ErrorIs(t, err, queue.ErrInvalid)
	_, err = queue.SetHooks(ctx, b.Pool, "acme", []string{""})
	require.ErrorIs(t, err, queue.ErrInvalid)
	_, err = queue.SetSource(ctx, b.Pool, "", "orders")
	require.ErrorIs(t, err, queue.ErrEmptyID)
	assert.NotContains(t, err.Error(), "document", "there is none here")
}

// A nil handle is an error that says what to pass, not a panic.
func TestNeedsOfNilHandles(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, q := range map[string]queue.Querier{"nil": nil, "nil pool": (*pgxpool.Pool)(nil)} {
		_, err := queue.SetSource(ctx, q, "acme", "orders")
		require.ErrorIs(t, err, queue.ErrNoQuerier, name)
		_, err = queue.SetHooks(ctx, q, "acme", []string{"mail"})
		require.ErrorIs(t, err, queue.ErrNoQuerier, name)
		_, err = queue.SetDefaultSource(ctx, q, "orders")
		require.ErrorIs(t, err, queue.ErrNoQuerier, name)
		_, err = queue.SetDefaultHooks(ctx, q, []string{"mail"})
		require.ErrorIs(t, err, queue.ErrNoQuerier, name)
	}
}
