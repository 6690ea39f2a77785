package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

// Periods, what is open of one, and the chain of closings are read by tokens of the organization.
func TestPeriodsOverHTTP(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, org := range []string{"acme", "other"} {
		fixture.Organization(t, b.Pool, org)
	}
	_, err := books.AddPeriods(t.Context(), b.Pool, "acme", []models.Period{books.Month(2026, 2), books.Month(2026, 3)}, books.AddPeriodsOptions{})
	require.NoError(t, err)
	fixture.Ready(t, b.Pool, fixture.Invoice("acme", "waits", 1000))
	acme, other := b.token("acme", tokens.ScopeRead), b.token("other", tokens.ScopeRead)

	var periods struct {
		Periods []answers.Period
		Policy  string
	}
	b.send(acme, http.MethodGet, "/api/periods", nil).into(t, &periods)
	require.Len(t, periods.Periods, 2)
	assert.Equal(t, answers.Period{StartsOn: "2026-02-01", EndsOn: "2026-02-28", State: "open"}, periods.Periods[0])
	assert.Equal(t, "fail", periods.Policy)

	const march = "/api/periods/2026-03-01"
	var list answers.ClosingList
	b.send(acme, http.MethodGet, march+"/closing", nil).into(t, &list)
	assert.False(t, list.Ready)
	require.Len(t, list.List, 2)
	assert.Equal(t, []string{"waits"}, list.List[0].Examples)
	assert.Equal(t, string(models.ClosingWaiting), list.List[0].Code)
	for _, path := range []string{march + "/closing", march + "/adjustments"} {
		assert.Equal(t, "PERIOD_NOT_FOUND", b.send(other, http.MethodGet, path, nil).code(), path)
	}

	for _, month := range []models.Period{books.Month(2026, 3), books.Month(2026, 2)} {
		_, err = books.ClosePeriod(t.Context(), b.Pool, "acme", month, books.CloseOptions{Force: true})
		require.NoError(t, err)
	}
	list = answers.ClosingList{}
	b.send(acme, http.MethodGet, march+"/closing", nil).into(t, &list)
	assert.True(t, list.Ready, "it is closed")
	var closings struct {
		Closings   []answers.Closing
		NextCursor string
	}
	b.send(acme, http.MethodGet, "/api/closings?limit=1", nil).into(t, &closings)
	require.Len(t, closings.Closings, 1)
	first := closings.Closings[0]
	require.NotEmpty(t, closings.NextCursor)
	b.send(acme, http.MethodGet, "/api/closings?limit=1&cursor="+closings.NextCursor, nil).into(t, &closings)
	assert.Equal(t, first.Hash, closings.Closings[0].PreviousHash)
	var adjustments struct{ Adjustments []answers.Adjustment }
	b.send(acme, http.MethodGet, march+"/adjustments", nil).into(t, &adjustments)
	assert.Empty(t, adjustments.Adjustments)
}
