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
		list, err := books.Ageing(t.Context(), b.Pool, org, books.AgeingOptions{On: day})
		require.NoError(t, err)
		var got []string
		for _, a := range list {
			got = append(got, fmt.Sprintf("%s %s %d %s: %s %s %s %s %s", a.Counterparty, a.Account, a.Items, a.Open, a.NotDue, a.Due30,
				a.Due60, a.Due90, a.Longer))
		}
		assert.Equal(t, want, got, on)
	}
	list, err := books.Ageing(t.Context(), b.Pool, org, books.AgeingOptions{})
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
	lines := func(o books.CounterpartyOptions) (out []string) {
		list, err := books.CounterpartyStatement(t.Context(), b.Pool, org, o)
		require.NoError(t, err)
		for _, l := range list {
			out = append(out, fmt.Sprintf("%s %s %s: %s %s open %s", l.PostingDate, l.DocumentID, l.Account, l.Amount, l.Balance, l.Open))
		}
		return out
	}
	assert.Equal(t, []string{
		"2026-03-01 a 1200: 1000 1000 open 400", "2026-03-12 b 1200: 500 1500 open 500", "2026-03-13 p 1200: -600 900 open 0",
	}, lines(books.CounterpartyOptions{Counterparty: "Ada"}))
	assert.Equal(t, []string{"  1200: 1000 1000 open 0", "2026-03-12 b 1200: 500 1500 open 500"},
		lines(books.CounterpartyOptions{Counterparty: "Ada", From: models.NewDate(2026, 3, 2), To: models.NewDate(2026, 3, 12)}))
	assert.Empty(t, lines(books.CounterpartyOptions{Counterparty: "Eve"}))

	_, err := books.CounterpartyStatement(t.Context(), b.Pool, org, books.CounterpartyOptions{})
	require.ErrorIs(t, err, books.ErrInvalid)
	_, err = books.CounterpartyStatement(t.Context(), b.Pool, org,
		books.CounterpartyOptions{Counterparty: "Ada", From: models.NewDate(2026, 3, 2), To: models.NewDate(2026, 3, 1)})
	require.ErrorIs(t, err, books.ErrInvalid)
}

// A payment without a counterparty in a group of several is divided by what it pays: each statement
// ends with what is open of that counterparty.
func TestStatementsOfAGroupOfSeveral(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, sold(org, "a", "Ada", 1, 100), sold(org, "b", "Bo", 2, 50), pays(org, "p", "", 10, 150), pays(org, "q", "", 11, 30),
		sold(org, "more", "Bo", 3, 7))
	b.work()
	b.reconcile("a", "b", "p")
	statements := func(from models.Date) map[string][]string {
		t.Helper()
		aged, err := books.Ageing(t.Context(), b.Pool, org, books.AgeingOptions{On: models.NewDate(2026, 3, 31)})
		require.NoError(t, err)
		open := map[string]string{"Ada": "0", "Bo": "0"}
		for _, a := range aged {
			open[a.Counterparty] = a.Open.String()
		}
		out := map[string][]string{}
		for _, party := range []string{"Ada", "Bo"} {
			list, err := books.CounterpartyStatement(t.Context(), b.Pool, org, books.CounterpartyOptions{Counterparty: party, From: from})
			require.NoError(t, err)
			for _, l := range list {
				out[party] = append(out[party], fmt.Sprintf("%s: %s %s open %s", l.DocumentID, l.Amount, l.Balance, l.Open))
			}
			assert.Equal(t, open[party], list[len(list)-1].Balance.String(), "what is open of %s", party)
		}
		return out
	}
	assert.Equal(t, map[string][]string{
		"Ada": {"a: 100 100 open 0", "p: -100 0 open 0"}, "Bo": {"b: 50 50 open 0", "more: 7 57 open 7", "p: -50 7 open 0"},
	}, statements(models.Date{}))
	b.reconcile("a", "q")
	assert.Equal(t, map[string][]string{
		"Ada": {"a: 100 100 open 0", "p: -100 0 open 0", "q: -30 -30 open -30"}, "Bo": {"b: 50 50 open 0", "more: 7 57 open 7", "p: -50 7 open 0"},
	}, statements(models.Date{}), "what is left")

	fixture.Ready(t, b.Pool, pays(org, "p", "", 10, 90))
	b.work()
	assert.Equal(t, map[string][]string{
		"Ada": {"a: 100 100 open 0", "p: -150 -50 open 0", "p: 150 100 open 0", "p: -90 10 open 0", "q: -10 0 open 0"},
		"Bo":  {"b: 50 50 open 30", "more: 7 57 open 7", "q: -20 37 open 0"},
	}, statements(models.Date{}), "each impact of a document is divided")
	assert.Equal(t, map[string][]string{"Ada": {": 10 10 open 0", "q: -10 0 open 0"}, "Bo": {": 57 57 open 0", "q: -20 37 open 0"}},
		statements(models.NewDate(2026, 3, 11)))

	fixture.Ready(t, b.Pool, pays(org, "p", "", 10, 120))
	b.work()
	assert.Equal(t, []string{
		"b: 50 50 open 0", "more: 7 57 open 7", "p: -25 32 open 0", "p: 25 57 open 0", "p: -15 42 open 0", "p: 15 57 open 0", "p: -20 37 open 0",
		"q: -30 7 open 0",
	}, statements(models.Date{})["Bo"])
}
