package books_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
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
	require.NoError(t, second(books.AddPeriods(ctx, b.Pool, org, []models.Period{month(1)}, books.AddPeriodsOptions{Key: private})))
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, month(1), books.CloseOptions{Key: private})))
	require.Empty(t, b.differences(public))

	require.NoError(t, second(books.AddPeriods(ctx, b.Pool, org, []models.Period{month(4)}, books.AddPeriodsOptions{Key: private})))
	assert.Empty(t, b.differences(public), "it closes February and March")
	require.NoError(t, second(books.AddPeriods(ctx, b.Pool, org, []models.Period{month(2)}, books.AddPeriodsOptions{Key: private})))
	assert.Empty(t, b.differences(public), "it opens February")
	list := b.closings()
	require.Len(t, list, 3)
	assert.Equal(t, []bool{true, true, false}, []bool{list[0].SignedBy(public), list[1].SignedBy(public), list[2].SignedBy(public)})
	assert.Equal(t, models.ActionOpened, list[2].Action)
	require.NoError(t, second(books.AddPeriods(ctx, b.Pool, org, []models.Period{month(4)}, books.AddPeriodsOptions{Key: private})), "it is there already")
	require.Len(t, b.closings(), 3)

	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, month(4), books.CloseOptions{Key: private})))
	require.NoError(t, addPeriods(ctx, b.Pool, org, month(7)))
	assert.Equal(t, []string{"closing 5, from 2026-05-01 to 2026-06-30: neither it nor a later one is signed by the key"},
		b.differences(public), "without a key")
}

// A key that cannot sign refuses the closing before anything is written, and one that is nil inside of
// its type signs nothing.
func TestKeysOfClosings(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	wrong, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	require.NoError(t, addPeriods(ctx, b.Pool, org, books.Month(2026, 1)))
	require.ErrorIs(t, second(books.ClosePeriod(ctx, b.Pool, org, books.Month(2026, 1), books.CloseOptions{Key: wrong})), books.ErrClosingKey)
	require.ErrorIs(t, second(books.AddPeriods(ctx, b.Pool, org, []models.Period{books.Month(2026, 2)}, books.AddPeriodsOptions{Key: wrong})),
		books.ErrClosingKey)
	require.Empty(t, b.closings())
	periods, err := books.Periods(ctx, b.Pool, org)
	require.NoError(t, err)
	require.Len(t, periods, 1)

	c, err := books.ClosePeriod(ctx, b.Pool, org, books.Month(2026, 1), books.CloseOptions{Key: ed25519.PrivateKey(nil)})
	require.NoError(t, err)
	assert.Nil(t, c.Closing.Signature)
	require.NoError(t, second(books.AddPeriods(ctx, b.Pool, org, []models.Period{books.Month(2026, 4)},
		books.AddPeriodsOptions{Key: ed25519.PrivateKey(nil)})))
	for _, c := range b.closings() {
		assert.Nil(t, c.Signature)
	}
}
