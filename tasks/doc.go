// Package tasks is for the processors of tasks: what a worker does for each type of task
// (docs/tasks.md).
//
// A type's processor talks to something outside of the database. It is given a typed payload, which
// the task's before_handler has made, and what it returns is given to the success_handler; its
// error is given to the error_handler. These handlers are functions of the database, which the task
// names:
//
//	type Letter struct {
//		Recipient string `json:"recipient"`
//		Pages     int    `json:"pages"`
//	}
//
//	type Posted struct {
//		TrackingNumber string `json:"tracking_number"`
//	}
//
//	registry := tasks.NewRegistry()
//	tasks.Register(registry, "letter", tasks.Policy{Owner: "mailroom"}, func(ctx context.Context, task *tasks.Task[Letter]) (Posted, error) {
//		return post(ctx, task.Payload, task.IdempotencyKey)
//	})
//
// The type db_function, which calls a function of the database, is in every registry. Package
// handlers adds email, sms and file_delete. Tasks are enqueued by SQL functions, such as
// supervisors, and by queue.EnqueueTask, and worked by package workers, which never enqueues one.
package tasks
