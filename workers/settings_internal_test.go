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

// TestSettingsOfTheProgramWin: of what a program sets, the environment is not read.
func TestSettingsOfTheProgramWin(t *testing.T) {
	const variable = "JOB_QUEUE_BATCH_SIZE"
	for _, text := range []string{"many", "0", "1001"} {
		t.Setenv(variable, text)
		_, err := orEnvironment(Settings{PollIntervalSeconds: 3}, activities.JobsSettingsFromEnv)
		require.ErrorContains(t, err, variable+` is "`+text+`": want a number from 1 to 1000`)
		s, err := orEnvironment(Settings{BatchSize: 7, PollIntervalSeconds: 3}, activities.JobsSettingsFromEnv)
		require.NoError(t, err)
		assert.Equal(t, 7, s.BatchSize)
	}
}
