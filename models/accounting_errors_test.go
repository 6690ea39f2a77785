package models_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
)

func TestJobErrorSpeaks(t *testing.T) {
	t.Parallel()
	require.EqualError(t, models.Errorf(models.CodeUnbalanced, "off by %d", 10), "UNBALANCED: off by 10")
}
