package store_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
)

// TestExplainNamesTheCauseFirst, and each address once.
func TestExplainNamesTheCauseFirst(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	free, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	pool, err := pgxpool.New(t.Context(), "postgres://guest@"+address+"/nothing?sslmode=disable")
	require.NoError(t, err)
	t.Cleanup(pool.Close)

	text := store.Explain(fmt.Errorf("draw a fence: %w", pool.Ping(t.Context())))

	assert.Equal(t, "connection refused ("+address+"): draw a fence", text)
	assert.Equal(t, 1, strings.Count(text, address))
}
