package workers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workers"
)

// TestLaneThatHasFoundWorkLetsAnotherOneWait: a turn that waited says by a signal that it has found
// work, so that another lane waits while it works.
func TestLaneThatHasFoundWorkLetsAnotherOneWait(t *testing.T) {
	t.Parallel()
	b := setup(t)
	h := newHold("inv-1")
	b.start(workers.AccountingOptions{JobProcessor: h})
	id := b.run(`{"concurrency": 3, "pollIntervalSeconds": 3600}`)
	b.eventually("it is idle", 30*time.Second, func() bool { return b.status(id).IdleSince != nil })
	b.eventually("one lane waits", 30*time.Second, func() bool { return b.pendingActivities(id) == 1 })
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-1", 1000))
	<-h.reached
	b.eventually("another lane waits", 30*time.Second, func() bool { return b.pendingActivities(id) == 2 })
	assert.Nil(t, b.status(id).IdleSince)
	assert.Equal(t, 1, b.status(id).Lanes)
	close(h.proceed["inv-1"])
	b.eventually("its turn has ended, and the other lane waits on", 30*time.Second, func() bool {
		s := b.status(id)
		return s.Counts.Completed == 1 && s.IdleSince != nil && b.pendingActivities(id) == 1
	})
	signals := 0
	events := b.client.GetWorkflowHistory(t.Context(), id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(t, err)
		if e.GetWorkflowExecutionSignaledEventAttributes().GetSignalName() == models.SignalFound {
			signals++
		}
	}
	assert.Equal(t, 1, signals)
}
