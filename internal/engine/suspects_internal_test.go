package engine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

// TestSuspectBeginsBesideNothing has a job that was reclaimed twice wait for all that would be charged with it, and has the turn get no more
// jobs meanwhile.
func TestSuspectBeginsBesideNothing(t *testing.T) {
	t.Parallel()
	e, _ := picking(t, pgtest.New(t), 1, done)
	some := []ended{{job: store.Job{ID: "b", Type: "named"}}}
	for name, busy := range map[string]func(r *runner){
		"a job is worked":             func(r *runner) { r.active = 1 },
		"a refill is under way":       func(r *runner) { r.refill.underWay = true },
		"a job has ended":             func(r *runner) { r.ended = some },
		"a completion is under way":   func(r *runner) { r.completing = true },
		"a completion is tried again": func(r *runner) { r.held = some },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := []store.Job{{ID: "a", Type: "named", Reclaims: 2}, {ID: "c", Type: "named"}}
			r := e.newRunner(TurnRequest{Turn: store.Turn{ID: "run/0/1"}, Batch: 50, Length: time.Minute}, nil)
			busy(r)
			assert.Zero(t, r.suspects(queue))

			r.active, r.refill.underWay, r.ended, r.completing, r.held = 0, false, nil, false, nil
			r.startRefill(context.Background())
			assert.False(t, r.refill.underWay, "nothing is picked before it begins")
			assert.Equal(t, 1, r.suspects(queue), "it begins alone")
		})
	}
}
