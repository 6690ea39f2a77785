package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"time"
)

// Task is one task, as its processor sees it.
type Task[P any] struct {
	ID   int64
	Type string
	// Payload is what the before_handler returned as payload; of a task without a before_handler, the
	// task's own payload. Fields that P does not have are ignored.
	Payload P
	// Original is the task's payload, as it was enqueued.
	Original json.RawMessage
	// HandedOut is how often the task was handed out, from 1. More than once: a worker before did not
	// come to its end.
	HandedOut int
	// IdempotencyKey is the same each time that the task is handed out. Pass it to a server that does
	// something outside of the database, so that the server can recognize a repeated request.
	IdempotencyKey string
	EnqueuedAt     time.Time
}

// Func does what a task of one type asks for, outside of transactions. What it returns is the
// worker_payload of the success_handler, as JSON. An error, or a panic, is for the error_handler,
// as text; there is no second attempt, which a supervisor enqueues as a new task. A method
// ErrorCode() models.ErrorCode of the error adds its code before the text; without, that is
// HANDLER_ERROR.
//
// ctx ends at the policy's Timeout, when another worker has reclaimed the task, and twenty seconds
// after the worker was told to stop: then the task is given back, and handed out again.
type Func[P, R any] func(ctx context.Context, task *Task[P]) (R, error)

// Checked is a payload that says itself what its type does not: Check is called before the
// processor, and its error is one of the payload.
type Checked interface{ Check() error }

// Policy says how the tasks of a type are worked. The zero value of each field means its default.
type Policy struct {
	// Owner is the team or contact responsible for the type.
	Owner string
	// Timeout is how long the processor may take; default 30 s, at most MaxTimeout. The type
	// db_function has no processor.
	Timeout time.Duration
	// FunctionTimeout is how long each function of the database may take that a task names; default
	// 30 s, at most MaxTimeout.
	FunctionTimeout time.Duration
	// Parallel is how many tasks of the type one worker process works side by side; default 30, for
	// db_function 8, because each holds a connection while its function runs, and 64 where they share
	// transactions.
	Parallel int
	// SharedTransaction is for db_function: up to 32 tasks that name the same function share a
	// transaction for 20 ms. Each call is undone by itself when it fails, and runs again alone. It is
	// for functions of a few milliseconds; docs/tasks.md says what they see of one another. Default
	// false.
	SharedTransaction bool
}

// MaxTimeout is the longest that a processor or a function may take. A longer one would rarely end
// by itself, because each deployment of a new version stops it.
const MaxTimeout = 2 * time.Hour

func (p Policy) withDefaults(parallel int) Policy {
	p.Timeout = cmp.Or(p.Timeout, 30*time.Second)
	p.FunctionTimeout = cmp.Or(p.FunctionTimeout, 30*time.Second)
	p.Parallel = cmp.Or(p.Parallel, parallel)
	return p
}

// slack is for what lies between the steps of a task.
const slack = time.Minute

// longest is how long a task may take, if each step takes as long as it may. A success_handler that
// raises an error is followed by the error_handler.
func (p Policy) longest() time.Duration { return p.Timeout + 3*p.FunctionTimeout + slack }
