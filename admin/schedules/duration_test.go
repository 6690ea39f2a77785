package schedules

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestDurationsEndWithoutZeros(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 10 * time.Second: "10s", 10 * time.Minute: "10m", 100 * time.Minute: "1h40m", 2 * time.Hour: "2h",
		20 * time.Hour:          "20h",
		time.Hour + time.Second: "1h0m1s", 90 * time.Second: "1m30s", 1500 * time.Millisecond: "1.5s",
	} {
		assert.Equal(t, want, durationText(d))
	}
}
