package days_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/text/days"
	"github.com/daybook-dev/daybook/models"
)

func TestSpan(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"2026":    {"2026-01-01", "2026-12-31"},
		"2028-02": {"2028-02-01", "2028-02-29"},
	} {
		from, to, err := days.Span(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, [2]string{from.String(), to.String()}, text)
		assert.Equal(t, text, days.Name(from, to))
	}
	for _, text := range []string{"", "26", "2026-13", "2026-3-1", "02026"} {
		_, _, err := days.Span(text)
		assert.ErrorContains(t, err, "want a month such as 2026-03", text)
	}
	for _, text := range []string{"0000", "0001", "1899", "3000", "9999", "1899-12", "3000-01"} {
		_, _, err := days.Span(text)
		assert.ErrorContains(t, err, "want one from 1900-01-01 to 2999-12-31", text)
	}
	assert.Equal(t, "2026-01-01 to 2026-03-31", days.Name(models.NewDate(2026, 1, 1), models.NewDate(2026, 3, 31)))
	months, err := days.Year("2026")
	require.NoError(t, err)
	require.Len(t, months, 12)
	assert.Equal(t, "2026-02-28", months[1].EndsOn.String())
}
