package sampler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
)

// TestPauseOfOneThatWaits: a process that sampled slowly once, and leaves it to another one, looks
// as often as any other whether that one has ended.
func TestPauseOfOneThatWaits(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	other := New(Options{Pool: db.Pool, Name: "other"})
	require.NoError(t, other.Sample(t.Context()))
	s := New(Options{Pool: db.Pool, Name: "s"})
	s.worked = time.Minute
	require.NoError(t, s.Sample(t.Context()))
	assert.Zero(t, s.worked)
}
