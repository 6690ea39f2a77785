package store_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
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

// TestExplainSaysWhatToDo where the server says what it lacks.
func TestExplainSaysWhatToDo(t *testing.T) {
	t.Parallel()
	full := &pgconn.PgError{
		Severity: "ERROR", Code: "53100",
		Message: `could not extend file "base/5/16403": No space left on device`,
	}
	err := fmt.Errorf("complete jobs: %w", full)
	assert.Equal(t, `could not extend file "base/5/16403": No space left on device (SQLSTATE 53100): complete jobs. `+
		store.DiskAdvice, store.Explain(err))
	assert.Equal(t, `complete jobs: ERROR: could not extend file "base/5/16403": No space left on device (SQLSTATE 53100). `+store.DiskAdvice, store.Advised(err))
	assert.Equal(t, "no", store.Advised(errors.New("no")))
}
