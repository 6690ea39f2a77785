package books_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
)

func TestAgeing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	none := sold(org, "none", "Bo", 3, 7)
	none.Content.DueDate = models.Date{}
	fixture.Ready(t, b.Pool, sold(org, "a", "Ada", 1, 1), sold(org, "b", "Ada", 2, 10), none, pays(org, "p", "Ada", 5, 100))
	b.work()
	for on, want := range map[string][]string{
		"2026-03-15": {"Ada 1200 3 -89: 11 -100 0 0 0", "Bo 1200 1 7: 0 7 0 0 0"},
		"2026-03-16": {"Ada 1200 3 -89: 10 -99 0 0 0", "Bo 1200 1 7: 0 7 0 0 0"},
		"2026-04-15": {"Ada 1200 3 -89: 0 10 -99 0 0", "Bo 1200 1 7: 0 0 7 0 0"},
		"2026-06-10": {"Ada 1200 3 -89: 0 0 0 11 -100", "Bo 1200 1 7: 0 0 0 0 7"},
		"2026-03-02": {"Ada 1200 2 11: 11 0 0 0 0"},
	} {
		day, err := models.ParseDate(on)
		require.NoError(t, err)
		list, err := books.Ageing(t.Context(), b.Pool, org, day)
		require.NoError(t, err)
		var got []string
		for _, a := range list {
			got = append(got, fmt.Sprintf("%s %s %d %s: %s %s %s %s %s", a.Counterparty, a.Account, a.Items, a.Open, a.NotDue, a.Due30,
				a.Due60, a.Due90, a.Longer))
		}
		assert.Equal(t, want, got, on)
	}
	list, err := books.Ageing(t.Context(), b.Pool, org, models.Date{})
	require.NoError(t, err)
	assert.Len(t, list, 2, "today")
}

func TestCounterpartyStatement(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, sold(org, "a", "Ada", 1, 1000), sold(org, "b", "Ada", 12, 500), sold(org, "other", "Bo", 3, 7),
		pays(org, "p", "", 13, 600), pays(org, "q", "", 14, 1))
	b.work()
	b.reconcile("a", "p")
	lines := func(o books.StatementOptions) (out []string) {
		list, err := books.CounterpartyStatement(t.Context(), b.Pool, org, o)
		require.NoError(t, err)
		for _, l := range list {
			out = append(out, fmt.Sprintf("%s %s %s: %s %s open %s", l.PostingDate, l.DocumentID, l.Account, l.Amount, l.Balance, l.Open))
		}
		return out
	}
	assert.Equal(t, []string{
		"2026-03-01 a 1200: 1000 1000 open 400", "2026-03-12 b 1200: 500 1500 open 500", "2026-03-13 p 1200: -600 900 open 0",
	}, lines(books.StatementOptions{Counterparty: "Ada"}))
	assert.Equal(t, []string{"  1200: 1000 1000 open 0", "2026-03-12 b 1200: 500 1500 open 500"},
		lines(books.StatementOptions{Counterparty: "Ada", From: models.NewDate(2026, 3, 2), To: models.NewDate(2026, 3, 12)}))
	assert.Empty(t, lines(books.StatementOptions{Counterparty: "nobody's"}))

	_, err := books.CounterpartyStatement(t.Context(), b.Pool, org, books.StatementOptions{})
	require.ErrorIs(t, err, books.ErrInvalid)
	_, err = books.CounterpartyStatement(t.Context(), b.Pool, org,
		books.StatementOptions{Counterparty: "Ada", From: models.NewDate(2026, 3, 2), To: models.NewDate(2026, 3, 1)})
	require.ErrorIs(t, err, books.ErrInvalid)
}
