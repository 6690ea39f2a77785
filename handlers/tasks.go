package handlers

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/tasks"
)

// functionsConfig are the settings of the tasks of the type db_function.
type functionsConfig struct {
	// FunctionTimeout bounds each function of the database that a task names; default 30 s.
	FunctionTimeout time.Duration `env:"TASKS_FUNCTION_TIMEOUT"`
	// Parallel is how many functions the worker calls side by side for tasks of the type db_function;
	// default 8, and 64 where they share transactions.
	Parallel int `env:"TASKS_PARALLEL_FUNCTIONS"`
	// Shared has tasks that name the same function share transactions; default false.
	Shared bool `env:"TASKS_SHARED_TRANSACTION"`
}

// RegisterTasks adds to r the processors of the types that the environment configures: email, sms
// and file_delete. They send by the handlers of the job types of the same names. The environment's
// limits of organizations do not apply: tasks have none, and what they ask for is said by functions
// of the database. A type without configuration is left out and listed in Builtin.Missing: its
// tasks wait for a worker that has it. Config.Pool is not needed.
func RegisterTasks(r *tasks.Registry, c Config) (*Builtin, error) {
	s := c.environment()
	functions, err := parse[functionsConfig](s)
	if err != nil {
		return nil, err
	}
	if functions.FunctionTimeout < 0 || functions.FunctionTimeout > tasks.MaxTimeout || functions.Parallel < 0 {
		return nil, errors.New("tasks: TASKS_FUNCTION_TIMEOUT and TASKS_PARALLEL_FUNCTIONS must not be negative, and the " +
			"first may be " + tasks.MaxTimeout.String())
	}
	s.functionTimeout = functions.FunctionTimeout
	r.SetDBFunctionPolicy(tasks.Policy{
		Owner: s.Owner, FunctionTimeout: functions.FunctionTimeout,
		Parallel: functions.Parallel, SharedTransaction: functions.Shared,
	})
	channels := slices.DeleteFunc(slices.Clone(builtins), func(t builtin) bool { return t.process == nil })
	return s.configured(channels, "task type", func(t builtin) error { return t.process(r, s) })
}

// taskPolicy is the policy for tasks of a type that has one for jobs.
func (s *environment) taskPolicy(p jobs.Policy) tasks.Policy {
	return tasks.Policy{Owner: s.Owner, Timeout: p.Timeout, FunctionTimeout: s.functionTimeout}
}

// EmailTask is what the before_handler of a task of the type email makes: an Email, whose only
// recipient may be ToAddress instead of To.
type EmailTask struct {
	Email
	ToAddress string `json:"to_address,omitempty"`
}

// whole is the payload with all recipients in To.
func (p EmailTask) whole() Email {
	if p.ToAddress != "" {
		p.To = append([]string{p.ToAddress}, p.To...)
	}
	return p.Email
}

// Check says what is wrong with the payload.
func (p EmailTask) Check() error { return p.whole().Check() }

// Process sends the message of a task. One that is sent again, because a worker ended before the
// task was completed, has the same Message-ID. What it fails with is as in Handle.
func (h *EmailHandler) Process(ctx context.Context, task *tasks.Task[EmailTask]) (EmailResult, error) {
	p := task.Payload.whole()
	return h.deliverAs(ctx, "", &p, h.idOf(task.IdempotencyKey))
}

// SMSTask is what the before_handler of a task of the type sms makes: an SMS, whose recipient may
// be ToNumber instead of To.
type SMSTask struct {
	SMS
	ToNumber string `json:"to_number,omitempty"`
}

func (p SMSTask) whole() SMS {
	if p.To == "" {
		p.To = p.ToNumber
	}
	return p.SMS
}

// Check says what is wrong with the payload.
func (p SMSTask) Check() error { return p.whole().Check() }

// Process sends the message of a task. One that is sent again, because a worker ended before the
// task was completed, comes twice: the provider has no way to recognize it. What it fails with is
// as in Handle.
func (h *SMSHandler) Process(ctx context.Context, task *tasks.Task[SMSTask]) (SMSResult, error) {
	p := task.Payload.whole()
	return h.deliver(ctx, &p)
}

// Process deletes the object of a task. One that is gone already is a success. What it fails with
// is as in Handle.
func (h *FileDeleteHandler) Process(ctx context.Context, task *tasks.Task[FileDelete]) (FileDeleteResult, error) {
	return h.remove(ctx, &task.Payload)
}
