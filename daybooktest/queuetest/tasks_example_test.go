package queuetest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/tasks"
)

// Remind is the payload of a task.
type Remind struct {
	Function string `json:"db_function"`
	Order    string `json:"order"`
}

// TaskType implements queue.TaskPayload.
func (Remind) TaskType() string { return "db_function" }

// order is the code under test: it writes an order, and has its customer reminded.
func order(ctx context.Context, tx queue.Querier, name string) error {
	_, err := queue.EnqueueTask(ctx, tx, Remind{Function: "shop.remind", Order: name}, queue.TaskOptions{})
	return err
}

// The test of the code that enqueues asks what was enqueued. t is the test's *testing.T.
func ExampleRequireTaskEnqueued() {
	t := pgtest.NewExample()
	defer t.Close()
	if err := order(t.Context(), t.Pool, "order-7"); err != nil {
		panic(err)
	}

	task := queuetest.RequireTaskEnqueued(t, t.Pool,
		func(k queuetest.Task[Remind]) bool { return k.Payload.Order == "order-7" })
	fmt.Println(task.Type, task.State, task.Payload.Function)
	// Output: db_function ready shop.remind
}

func ExampleRequireTaskNotEnqueued() {
	t := pgtest.NewExample()
	defer t.Close()
	err := pgx.BeginFunc(t.Context(), t.Pool, func(tx pgx.Tx) error {
		if err := order(t.Context(), tx, "order-7"); err != nil {
			return err
		}
		return errors.New("nothing is left in stock")
	})
	fmt.Println(err)

	queuetest.RequireTaskNotEnqueued[Remind](t, t.Pool)
	// Output: nothing is left in stock
}

// Tasks that supervisors and other functions of the database enqueue are found as well.
func ExampleEnqueuedTasks() {
	t := pgtest.NewExample()
	defer t.Close()
	if _, err := t.Pool.Exec(t.Context(),
		`SELECT queues.enqueue('email', '{"before_handler": "shop.get_email"}')`); err != nil {
		panic(err)
	}

	for _, task := range queuetest.EnqueuedTasks[queue.RawTask](t, t.Pool) {
		fmt.Println(task.Type, string(task.Payload.Data))
	}
	// Output: email {"before_handler": "shop.get_email"}
}

// The test of a processor enqueues, and has everything that is due worked in the test's process,
// without Temporal.
func ExampleDrainTasks() {
	t := pgtest.NewExample()
	defer t.Close()
	registry := tasks.NewRegistry()
	tasks.Register(registry, "letter", tasks.Policy{},
		func(_ context.Context, task *tasks.Task[struct{ To string }]) (any, error) {
			fmt.Println("a letter to", task.Payload.To)
			return nil, nil
		})
	if _, err := t.Pool.Exec(t.Context(), `SELECT queues.enqueue('letter', '{"to": "Ada"}')`); err != nil {
		panic(err)
	}

	drained := queuetest.DrainTasks(t, t.Pool, registry, queuetest.TasksOptions{})
	drained.RequireSucceeded(t)
	fmt.Println(drained.Completed)
	// Output:
	// a letter to Ada
	// 1
}
