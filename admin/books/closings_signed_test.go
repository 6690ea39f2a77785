package books_test

import (
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/models"
)

// A period that is added behind a closed one closes the days between them: that closing is signed as
// well, and what it opens needs no signature.
func TestClosingsByAddedPeriodsAreSigned(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	month := func(m time.Month) models.Period { return books.Month(2026, m) }
	require.NoError(t, second(books.AddSignedPeriods(ctx, b.Pool, org, private, month(1))))
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, month(1), books.CloseOptions{Key: private})))
	require.Empty(t, b.differences(public))

	require.NoError(t, second(books.AddSignedPeriods(ctx, b.Pool, org, private, month(4))))
	assert.Empty(t, b.differences(public), "it closes February and March")
	require.NoError(t, second(books.AddSignedPeriods(ctx, b.Pool, org, private, month(2))))
	assert.Empty(t, b.differences(public), "it opens February")
	list := b.closings()
	require.Len(t, list, 3)
	assert.Equal(t, []bool{true, true, false}, []bool{list[0].SignedBy(public), list[1].SignedBy(public), list[2].SignedBy(public)})
	assert.Equal(t, models.ActionOpened, list[2].Action)
	require.NoError(t, second(books.AddSignedPeriods(ctx, b.Pool, org, private, month(4))), "it is there already")
	require.Len(t, b.closings(), 3)

	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, month(4), books.CloseOptions{Key: private})))
	require.NoError(t, second(books.AddPeriods(ctx, b.Pool, org, month(7))))
	assert.Equal(t, []string{"closing 5, from 2026-05-01 to 2026-06-30: neither it nor a later one is signed by the key"},
		b.differences(public), "without a key")
}
