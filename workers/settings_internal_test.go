package workers

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/activities"
)

// TestTheEnvironmentFillsSettingsIn: a program that sets one of them need not know the others.
func TestTheEnvironmentFillsSettingsIn(t *testing.T) {
	t.Setenv("ACCOUNTING_QUEUE_BATCH_SIZE", "7")
	s, err := orEnvironment(Settings{PollIntervalSeconds: 3}, activities.AccountingSettingsFromEnv)
	require.NoError(t, err)
	assert.Equal(t, activities.Settings{BatchSize: 7, PollIntervalSeconds: 3, RetryBaseSeconds: 300}, s)
}
