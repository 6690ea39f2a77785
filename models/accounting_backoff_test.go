package models_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/daybook-dev/daybook/models"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		base    time.Duration
		attempt int
		want    time.Duration
	}{
		{0, 1, 5 * time.Minute},
		{0, 2, 15 * time.Minute},
		{0, 3, 45 * time.Minute},
		{0, 4, 2*time.Hour + 15*time.Minute},
		{0, 5, 6 * time.Hour},
		{0, 6, 6 * time.Hour},
		{-time.Second, 2, 15 * time.Minute},
		{time.Second, 1, time.Second},
		{time.Second, 5, 81 * time.Second},
		{2 * time.Hour, 2, 6 * time.Hour},
		{7 * time.Hour, 1, 6 * time.Hour},
		{5 * time.Minute, 0, 5 * time.Minute},
		{5 * time.Minute, -3, 5 * time.Minute},
		{math.MaxInt64, 2, 6 * time.Hour},
		{1, math.MaxInt, 6 * time.Hour},
	} {
		assert.Equal(t, c.want, models.Backoff(c.base, c.attempt), "base %s, attempt %d", c.base, c.attempt)
	}
}

func TestBackoffNeverOverflowsOrShrinks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base := time.Duration(rapid.Int64().Draw(t, "base"))
		attempt := rapid.IntRange(1, 200).Draw(t, "attempt")
		d := models.Backoff(base, attempt)
		require.Positive(t, d)
		require.LessOrEqual(t, d, models.MaxBackoff)
		require.GreaterOrEqual(t, models.Backoff(base, attempt+1), d)
		if base > 0 && attempt == 1 {
			require.Equal(t, min(base, models.MaxBackoff), d)
		}
	})
}
