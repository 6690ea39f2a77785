package cron_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/text/cron"
)

var words = cron.Words{Zone: "--time-zone", Every: "--every", BothDays: "--both-days"}

// TestCronsThatMeanSomethingElse are refused, each with what to write instead.
func TestCronsThatMeanSomethingElse(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"0 0 3 * * *":               `"0 0 3 * * * *" or "0 0 0 3 * * *"`,
		"0 3 1 1 * 2027":            "seconds first or a year last",
		"0 9 * * 1#2":               `"#"`,
		"0 9 * * MON # each Monday": `"#"`,
		"0 9 ? * MON":               `"?"`,
		"0 9 L * *":                 `"L"`,
		"0 9 15W * *":               `"15W"`,
		"0 9 LW * *":                `"LW"`,
		"0 9 * * 5L":                `"5L"`,
		"0 9 * * FRIL":              `"FRIL"`,
		"0 9 1 * MON":               "two expressions",
		"0 0 9 1,15 * MON-FRI *":    "--both-days",
		"*/90 * * * *":              "--every",
		"0 */36 * * *":              "--every",
		"0 0 */31 * *":              "--every",
		"0 0 * * */7":               "--every",
		"@every 1h":                 "--every",
		"@reboot":                   "@daily",
		"@Daily":                    "@daily",
		"TZ=UTC 0 6 * * *":          "--time-zone",
		"CRON_TZ=UTC 0 6 * * *":     "--time-zone",
		"":                          "0 fields",
		"0 6 * *":                   "4 fields",
		"0 0 0 6 * * * *":           "8 fields",
		"0\t0 3 * * *":              "six fields",
		"0 9 1 * 1 # the first":     `"#"`,
	} {
		err := cron.Check(text, false, words)
		assert.ErrorContains(t, err, says, text)
	}
	for _, text := range []string{
		"0 6 * * MON-FRI", "*/15 8-18 * JUL,apr *", "0 0 6 * * SUN 2027-2030", "@midnight",
		"  5 4 * * 7 ", "0 0 */2 * *",
	} {
		assert.NoError(t, cron.Check(text, false, words), text)
	}
	assert.NoError(t, cron.Check("0 9 1-7 * MON", true, words), "the first Monday")
}
