package tasks_test

import (
	"context"
	"fmt"

	"github.com/daybook-dev/daybook/tasks"
)

// Letter is the payload that the before_handler of a task of the type letter makes.
type Letter struct {
	Recipient string `json:"recipient"`
	Pages     int    `json:"pages"`
}

// Posted is what the success_handler gets as worker_payload.
type Posted struct {
	TrackingNumber string `json:"tracking_number"`
}

// A type of an application's own. Give the registry to workers.NewTasks.
func ExampleRegister() {
	registry := tasks.NewRegistry()
	tasks.Register(registry, "letter", tasks.Policy{Owner: "mailroom", Parallel: 4},
		func(_ context.Context, task *tasks.Task[Letter]) (Posted, error) {
			if task.Payload.Pages > 10 {
				return Posted{}, fmt.Errorf("%d pages do not fit into an envelope", task.Payload.Pages)
			}
			return Posted{TrackingNumber: "RR" + task.IdempotencyKey}, nil
		})
	for _, r := range registry.Registrations() {
		fmt.Println(r.Type, r.Policy.Owner, r.Policy.Parallel, r.Policy.Timeout)
	}
	// Output:
	// db_function  8 30s
	// letter mailroom 4 30s
}
