package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/queue"
)

// SendWelcome is the payload of a task that calls a function of the database.
type SendWelcome struct {
	Function string `json:"db_function"`
	UserID   int64  `json:"user_id"`
}

// TaskType implements queue.TaskPayload.
func (SendWelcome) TaskType() string { return "db_function" }

// The user and the task that welcomes them are committed together.
func ExampleEnqueueTask() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool

	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		// … write the user …
		task, err := queue.EnqueueTask(ctx, tx, SendWelcome{Function: "comms.welcome_supervisor", UserID: 7},
			queue.TaskOptions{
				ScheduledAt: time.Now().Add(time.Minute),
			})
		fmt.Println(task.ID)
		return err
	})
	fmt.Println(err)
	// Output:
	// 1
	// <nil>
}

// Many tasks are enqueued by one statement.
func ExampleEnqueueTasks() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool

	tasks := make([]queue.NewTask, 1000)
	for i := range tasks {
		tasks[i] = queue.NewTask{Payload: SendWelcome{Function: "comms.welcome_supervisor", UserID: int64(i)}}
	}
	done, err := queue.EnqueueTasks(ctx, pool, tasks)
	fmt.Println(len(done), done[0].ID, err)
	// Output: 1000 1 <nil>
}

// CheckTask says what EnqueueTask would refuse, before there is a transaction.
func ExampleCheckTask() {
	fmt.Println(queue.CheckTask(SendWelcome{Function: "comms.welcome_supervisor"}, queue.TaskOptions{}))
	err := queue.CheckTask(queue.RawTask{Type: "Email", Data: json.RawMessage(`{}`)}, queue.TaskOptions{})
	fmt.Println(errors.Is(err, queue.ErrInvalidTaskType), err)
	// Output:
	// <nil>
	// true a task's type must be a small letter and then small letters, digits or '_', 63 at most, not "Email"
}

// A program that has no struct for a payload, such as a gateway, passes JSON.
func ExampleRawTask() {
	e := pgtest.NewExample()
	defer e.Close()

	payload := queue.RawTask{
		Type: "email",
		Data: json.RawMessage(`{"task_type": "email", "before_handler": "comms.get_email_payload"}`),
	}
	task, err := queue.EnqueueTask(context.Background(), e.Pool, payload, queue.TaskOptions{})
	fmt.Println(task.ID, err)
	// Output: 1 <nil>
}
