package workers

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// TestLongEventsAreLeftOut: an event that PostgreSQL would refuse does not keep the others from
// being sent.
func TestLongEventsAreLeftOut(t *testing.T) {
	t.Parallel()
	short := queue.Event{Name: queue.EventFailed, Kind: "jobs", JobID: "1"}
	long := short
	long.Code = models.ErrorCode(strings.Repeat("X", 9000))
	lists, tooLong := payloads([]queue.Event{long, short, long})
	assert.Equal(t, 2, tooLong)
	require.Len(t, lists, 1)
	assert.JSONEq(t, `[{"name": "failed", "kind": "jobs", "job": "1", "at": "0001-01-01T00:00:00Z"}]`, lists[0])
	lists, tooLong = payloads([]queue.Event{long})
	assert.Equal(t, 1, tooLong)
	assert.Empty(t, lists)
}
