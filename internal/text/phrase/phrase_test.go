package phrase_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/daybook-dev/daybook/internal/text/phrase"
)

func TestDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 s", 1: "1 µs", 380 * time.Millisecond: "380 ms", 9_440 * time.Millisecond: "9.4 s", 2 * time.Second: "2 s",
		999_999 * time.Microsecond: "999 ms", 10 * time.Second: "10 s", time.Minute: "1 min",
		190 * time.Second:            "3 min 10 s",
		5*time.Hour + 12*time.Minute: "5 h 12 min", 99 * time.Hour: "4 d 3 h", 96 * time.Hour: "4 d", -time.Second: "1 s",
	} {
		assert.Equal(t, want, phrase.Duration(d))
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "less than 1 s", -time.Hour: "less than 1 s", 999 * time.Millisecond: "less than 1 s",
		2900 * time.Millisecond: "2 s",
		190 * time.Second:       "3 min 10 s",
	} {
		assert.Equal(t, want, phrase.Age(d))
	}
}

// However long it lasts, it is a number that people write, and one or two units.
func TestDurationsAreReadable(t *testing.T) {
	t.Parallel()
	readable := regexp.MustCompile(`^\d+(\.\d)? (µs|ms|s|min|h|d)( \d+ (s|min|h))?$`)
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(1e6*time.Hour)).Draw(t, "d"))
		assert.Regexp(t, readable, phrase.Duration(d))
		assert.Regexp(t, `^less than 1 s$|`+readable.String(), phrase.Age(d))
	})
}

func TestCountsAndLists(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "-1,234,567", phrase.Count(-1234567))
	assert.Equal(t, "1 job", phrase.Plural(1, "job", "jobs"))
	assert.Equal(t, "1,200 jobs", phrase.Plural(1200, "job", "jobs"))
	assert.Equal(t, "pending or leased", phrase.Or([]string{"pending", "leased"}))
	assert.Equal(t, "a, b and c", phrase.And([]string{"a", "b", "c"}))
	assert.Empty(t, phrase.And([]string(nil)))
}
