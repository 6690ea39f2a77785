package models_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/models"
)

// anyDate draws a day of the years 0 to 9999.
func anyDate() *rapid.Generator[models.Date] {
	return rapid.Custom(func(t *rapid.T) models.Date {
		return models.NewDate(rapid.IntRange(0, 9999).Draw(t, "year"), time.January, rapid.IntRange(1, 365).Draw(t, "day"))
	})
}

func TestDateRoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := anyDate().Draw(t, "date")

		b, err := json.Marshal(d)
		require.NoError(t, err)
		var fromJSON models.Date
		require.NoError(t, json.Unmarshal(b, &fromJSON))
		require.Equal(t, d, fromJSON, "JSON")

		v, err := d.Value()
		require.NoError(t, err)
		var scanned models.Date
		require.NoError(t, scanned.Scan(v))
		require.Equal(t, d, scanned, "Value and Scan")

		require.False(t, d.IsZero(), "each day is a date")
		parsed, err := models.ParseDate(d.String())
		require.Equal(t, d.Check(), err, "ParseDate reads what Check does not refuse")
		if err == nil {
			require.Equal(t, d, parsed, "String and ParseDate")
			require.Equal(t, d, d.Nearest())
		}
	})
}

// The range has whole years. The first day that Go's time can name is a day like others: outside of
// the range, and not absent.
func TestRangeOfDates(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"1900-01-01", "2999-12-31"} {
		d, err := models.ParseDate(in)
		require.NoError(t, err)
		assert.Equal(t, in, d.Nearest().String())
	}
	for in, nearest := range map[string]string{
		"0000-01-01": "1900-01-01", "0001-01-01": "1900-01-01", "1899-12-31": "1900-01-01", "3000-01-01": "2999-12-31",
		"9999-12-31": "2999-12-31",
	} {
		_, err := models.ParseDate(in)
		require.EqualError(t, err, "date "+in+": want one from 1900-01-01 to 2999-12-31")
		var read models.Date
		require.NoError(t, json.Unmarshal([]byte(`"`+in+`"`), &read), "what is stored can be read")
		require.NoError(t, read.Scan(in))
		assert.False(t, read.IsZero(), in)
		assert.Equal(t, in, read.String())
		require.Error(t, read.Check(), in)
		assert.Equal(t, nearest, read.Nearest().String())
	}
	require.NoError(t, models.Date{}.Check())
	assert.True(t, models.Date{}.Nearest().IsZero())
}

func TestNoDate(t *testing.T) {
	t.Parallel()
	var none models.Date
	b, err := json.Marshal(none)
	require.NoError(t, err)
	assert.Equal(t, "null", string(b))
	assert.Empty(t, none.String())
	v, err := none.Value()
	require.NoError(t, err)
	assert.Nil(t, v)
	for _, in := range []string{"null", `""`} {
		d := models.NewDate(2026, 3, 14)
		require.NoError(t, json.Unmarshal([]byte(in), &d))
		assert.True(t, d.IsZero(), in)
	}
	d := models.NewDate(2026, 3, 14)
	require.NoError(t, d.Scan(nil))
	assert.True(t, d.IsZero())
}

func TestDateRefuses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"14.03.2026": "want YYYY-MM-DD", "2026-3-14": "want YYYY-MM-DD", "2026-03-14T00:00:00Z": "want YYYY-MM-DD",
		"x2026-03-14": "want YYYY-MM-DD", "2026-02-30": "date 2026-02-30: there is no such day",
		"2026-13-01": "date 2026-13-01: there is no such day",
	} {
		_, err := models.ParseDate(in)
		require.ErrorContains(t, err, want, in)
		var d models.Date
		require.Error(t, d.Scan(in), in)
	}
	var d models.Date
	require.Error(t, json.Unmarshal([]byte(`20260314`), &d))
	require.ErrorContains(t, d.Scan(20260314), "cannot scan int")
}

// A timestamp's day is the one in its own zone: nothing is moved to UTC.
func TestDateOfATime(t *testing.T) {
	t.Parallel()
	var d models.Date
	require.NoError(t, d.Scan(time.Date(2026, 3, 14, 23, 30, 0, 0, time.FixedZone("west", -8*3600))))
	assert.Equal(t, "2026-03-14", d.String())
	assert.Equal(t, time.UTC, d.Time().Location())
}

// A date keeps its day whatever the session's time zone is.
func TestDateThroughTheDatabase(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	conn, err := db.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	for _, zone := range []string{"UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"} {
		_, err := conn.Exec(t.Context(), `SELECT set_config('TimeZone', $1, false)`, zone)
		require.NoError(t, err)
		for _, want := range []models.Date{
			models.NewDate(2026, 3, 29), models.NewDate(1900, 1, 1),
			models.NewDate(2024, 2, 29),
		} {
			var got models.Date
			var text string
			require.NoError(t, conn.QueryRow(t.Context(), `SELECT $1::date, $1::date::text`, want).Scan(&got, &text))
			assert.Equal(t, want, got, zone)
			assert.Equal(t, want.String(), text, zone)
		}
	}
}
