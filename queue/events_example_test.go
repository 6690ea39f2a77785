package queue_test

import (
	"context"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/queue"
)

// A program that works no jobs hears of the dead letters of one type, until its context ends. What
// it has missed, it reads.
func ExampleListenEvents() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, stop := context.WithTimeout(e.Context(), 100*time.Millisecond)
	defer stop()

	dead := queue.EventFilter{Names: []queue.EventName{queue.EventFailed}, Types: []string{"invoice"}}
	err := queue.ListenEvents(ctx, e.Pool, dead, func(e queue.Event) {
		if e.Name == queue.EventMissed {
			return // read the state of the jobs that this program waits for
		}
		fmt.Println(e.JobID, "of", e.OrgID, "is a dead letter:", e.Code)
	})
	fmt.Println(err)
	// Output: <nil>
}
