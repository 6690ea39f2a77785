package queue_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/queue"
)

// A program that works no jobs hears of the dead letters of one type. What it has missed, it reads.
func ExampleListenEvents() {
	var ctx context.Context
	var pool *pgxpool.Pool
	listen := func() error {
		dead := queue.EventFilter{Names: []queue.EventName{queue.EventFailed}, Types: []string{"invoice"}}
		return queue.ListenEvents(ctx, pool, dead, func(e queue.Event) {
			if e.Name == queue.EventMissed {
				return // read the state of the jobs that this program waits for
			}
			fmt.Println(e.JobID, "of", e.OrgID, "is a dead letter:", e.Code)
		})
	}
	_ = listen // in a goroutine of its own, until ctx ends
}
