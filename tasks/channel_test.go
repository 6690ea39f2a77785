package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/tasks"
)

// letter is what the tests' provider is given, and posted what it says.
type letter struct {
	Recipient string `json:"recipient"`
}

func (l letter) Check() error {
	if l.Recipient == "" {
		return errors.New("recipient is empty")
	}
	return nil
}

type posted struct {
	Number int `json:"number"`
}

const (
	letterTask = `{"task_type": "letter", "attempt_id": 7, "before_handler": "app.before", "success_handler": "app.success", "error_handler": "app.failure"}`
	prepared   = `{"success": true, "payload": {"recipient": "Ada", "more": 1}}`
)

// codedError is an error of a provider that has a code.
type codedError struct{}

func (codedError) Error() string               { return "no such street" }
func (codedError) ErrorCode() models.ErrorCode { return models.CodeNotFound }

// channel has a type letter, with handlers that note what they are given.
func channel(t *testing.T, before string, provider tasks.Func[letter, any]) *bundle {
	t.Helper()
	b := setup(t)
	tasks.Register(b.registry, "letter", tasks.Policy{Timeout: time.Second, FunctionTimeout: 2 * time.Second}, provider)
	b.notes("before", before)
	b.notes("success", `{"success": true}`)
	b.notes("failure", `{"status": "succeeded"}`)
	return b
}

func posts(context.Context, *tasks.Task[letter]) (any, error) { return posted{Number: 9}, nil }

// replace has a function of the business do something else.
func (b *bundle) replace(name, body string) {
	b.t.Helper()
	b.exec(`DROP FUNCTION app.` + name)
	b.function(name, body)
}

// TestChannelSucceeds: before_handler, provider, success_handler, each with what the one before it
// has said.
func TestChannelSucceeds(t *testing.T) {
	t.Parallel()
	var got *tasks.Task[letter]
	b := channel(t, prepared, func(_ context.Context, task *tasks.Task[letter]) (any, error) {
		got = task
		return posted{Number: 9}, nil
	})
	b.enqueue("letter", letterTask)

	b.work()

	assert.Equal(t, []string{"before", "success"}, b.facts())
	assert.JSONEq(t, "7", string(b.fact("before")["attempt_id"]))
	require.NotNil(t, got)
	assert.Equal(t, "Ada", got.Payload.Recipient)
	assert.JSONEq(t, letterTask, string(got.Original))
	assert.Equal(t, fmt.Sprintf("task-1-%x", got.EnqueuedAt.UnixMicro()), got.IdempotencyKey)
	assert.Equal(t, 1, got.HandedOut)
	assert.WithinDuration(t, time.Now(), got.EnqueuedAt, time.Minute)
	assert.JSONEq(t, letterTask, string(b.fact("success")["original_payload"]))
	assert.JSONEq(t, `{"number": 9}`, string(b.fact("success")["worker_payload"]))
	assert.Empty(t, b.errors())
	assert.Zero(t, b.open())
}

// TestChannelWithoutHandlers: the provider reads the task's own payload, and what goes wrong is
// recorded all the same.
func TestChannelWithoutHandlers(t *testing.T) {
	t.Parallel()
	b := channel(t, prepared, func(_ context.Context, task *tasks.Task[letter]) (any, error) {
		if task.Payload.Recipient == "Bob" {
			return nil, errors.New("no luck")
		}
		return nil, nil
	})
	b.enqueue("letter", `{"recipient": "Ada"}`)
	b.enqueue("letter", `{"recipient": "Bob"}`)
	b.work()
	assert.Equal(t, []string{"HANDLER_ERROR: no luck"}, b.errors())
	assert.Zero(t, b.open())
}

// TestWhatTheProviderSaysCannotBeStored: the provider has succeeded, so that the success_handler is
// called, without what cannot be stored. The task says why.
func TestWhatTheProviderSaysCannotBeStored(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]any{
		"no JSON": make(chan int), "NUL": map[string]string{"a": "\x00"}, "half a surrogate": json.RawMessage(`"\ud800"`),
		"too deep": json.RawMessage(strings.Repeat("[", 3000) + strings.Repeat("]", 3000)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := channel(t, prepared, func(context.Context, *tasks.Task[letter]) (any, error) { return said, nil })
			b.enqueue("letter", letterTask)
			b.enqueue("letter", `{"recipient": "Bob"}`)

			b.work()

			assert.Equal(t, []string{"before", "success"}, b.facts())
			assert.JSONEq(t, `null`, string(b.fact("success")["worker_payload"]))
			assert.Zero(t, b.open())
			if assert.Len(t, b.errors(), 2, "also of the one without a success_handler") {
				assert.Contains(t, b.errors()[0],
					"RESULT_NOT_STORED: the provider has succeeded, and what the processor returned is not stored: ")
			}
		})
	}
}

// TestChannelFails has each step fail: what is recorded with the task, what the error_handler is
// told, and which handlers have left something.
func TestChannelFails(t *testing.T) {
	t.Parallel()
	type processor = tasks.Func[letter, any]
	failing := func(err error) processor {
		return func(context.Context, *tasks.Task[letter]) (any, error) { return nil, err }
	}
	for name, c := range map[string]struct {
		before   string
		provider processor
		payload  string
		// recorded is empty, or begins what is recorded. told likewise.
		recorded, told string
		facts          []string
	}{
		"the provider": {
			prepared, failing(errors.New("no luck")), letterTask, "HANDLER_ERROR: no luck",
			"HANDLER_ERROR: no luck",
			[]string{"before", "failure"},
		},
		"the provider with code": {
			prepared, failing(codedError{}), letterTask, "NOT_FOUND: no such street",
			"NOT_FOUND: no such street",
			[]string{"before", "failure"},
		},
		"the provider with a text that cannot be stored": {
			prepared, failing(errors.New("a\x00b\xff")), letterTask, "HANDLER_ERROR: ab�", "HANDLER_ERROR: ab�",
			[]string{"before", "failure"},
		},
		"the provider panics": {
			prepared, func(context.Context, *tasks.Task[letter]) (any, error) { panic("oh") }, letterTask,
			"HANDLER_ERROR: panic: oh\ngoroutine ", "HANDLER_ERROR: panic: oh$",
			[]string{"before", "failure"},
		},
		"the provider takes too long": {prepared, func(ctx context.Context, _ *tasks.Task[letter]) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, letterTask, "TIMEOUT: not finished within 1s", "TIMEOUT: not finished within 1s", []string{"before", "failure"}},
		"a deadline of the provider's own": {
			prepared, failing(fmt.Errorf("ask: %w", context.DeadlineExceeded)), letterTask,
			"HANDLER_ERROR: ask: context deadline exceeded", "HANDLER_ERROR: ask: context deadline exceeded",
			[]string{"before", "failure"},
		},
		"the outermost code of the provider": {
			prepared, failing(fmt.Errorf("post: %w", jobs.WithCode("NO_STREET", jobs.Final(codedError{})))), letterTask,
			"NO_STREET: post: no such street", "NO_STREET: post: no such street",
			[]string{"before", "failure"},
		},
		"before says what is wrong": {
			`{"success": false, "error": "no such message"}`, posts, letterTask,
			"HANDLER_ERROR: app.before: no such message", "HANDLER_ERROR: app.before: no such message",
			[]string{"before", "failure"},
		},
		"before finds the request wrong": {
			`{"success": false, "validation_failure_message": "it has no recipient"}`, posts,
			letterTask, "PAYLOAD_INVALID: app.before: validation failed: it has no recipient", "it has no recipient",
			[]string{"before", "failure"},
		},
		"before has another status": {
			`{"status": "attempt_not_found"}`, posts, letterTask, "",
			"app.before: status attempt_not_found",
			[]string{"before", "failure"},
		},
		"before makes no payload": {
			`{"success": true}`, posts, letterTask,
			"PAYLOAD_INVALID: the provider's payload is missing", "PAYLOAD_INVALID: the provider's payload is missing",
			[]string{"before", "failure"},
		},
		"before makes another payload": {
			`{"success": true, "payload": {"recipient": 7}}`, posts, letterTask,
			"PAYLOAD_INVALID: the provider's payload cannot be read",
			"PAYLOAD_INVALID: the provider's payload cannot be read",
			[]string{"before", "failure"},
		},
		"before makes a payload that fails its check": {
			`{"success": true, "payload": {"recipient": ""}}`, posts, letterTask, "PAYLOAD_INVALID: recipient is empty",
			"PAYLOAD_INVALID: recipient is empty",
			[]string{"before", "failure"},
		},
		"before does not exist": {
			prepared, posts, `{"before_handler": "app.nothing", "error_handler": "app.failure"}`,
			"HANDLER_ERROR: app.nothing: there is no function", "HANDLER_ERROR: app.nothing: there is no function",
			[]string{"failure"},
		},
		"success_handler is no text": {
			prepared, posts, `{"success_handler": {}, "error_handler": "app.failure"}`,
			"PAYLOAD_INVALID: the success_handler of the task's payload is no text",
			"PAYLOAD_INVALID: the success_handler of the task's payload",
			[]string{"failure"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := channel(t, c.before, c.provider)
			b.enqueue("letter", c.payload)

			b.work()

			assert.Equal(t, c.facts, b.facts())
			assert.Zero(t, b.open())
			var told string
			require.NoError(t, json.Unmarshal(b.fact("failure")["error"], &told))
			assert.Regexp(t, "^"+c.told, told)
			assert.JSONEq(t, c.payload, string(b.fact("failure")["original_payload"]))
			if c.recorded == "" {
				assert.Empty(t, b.errors())
				return
			}
			require.Len(t, b.errors(), 1)
			assert.Regexp(t, "^"+c.recorded, b.errors()[0])
		})
	}
}

// TestHandlersThatRaise: what a handler has written before it raised is undone, the task is
// completed, and each error is recorded.
func TestHandlersThatRaise(t *testing.T) {
	t.Parallel()
	const raise = `INSERT INTO app.facts (what) VALUES ('undone'); RAISE 'no luck';`
	// The error comes when the transaction would commit.
	const deferred = `INSERT INTO app.checked VALUES (1); RETURN '{"status": "succeeded"}';`
	for name, c := range map[string]struct {
		raising  []string
		body     string
		provider tasks.Func[letter, any]
		recorded []string
		facts    []string
	}{
		"before": {
			[]string{"before"},
			raise, posts,
			[]string{"HANDLER_ERROR: app.before: no luck (SQLSTATE P0001)"},
			[]string{"failure"},
		},
		"success": {
			[]string{"success"},
			raise, posts,
			[]string{"HANDLER_ERROR: the provider succeeded, and the success_handler failed: app.success: no luck " +
				"(SQLSTATE P0001)"},
			[]string{"before", "failure"},
		},
		"success at the end": {
			[]string{"success"},
			deferred, posts,
			[]string{`HANDLER_ERROR: the provider succeeded, and the success_handler failed: app.success: insert or update on table "checked" violates foreign key constraint "checked_n_fkey" (SQLSTATE 23503)`},
			[]string{"before", "failure"},
		},
		"success takes too long": {
			[]string{"success"},
			`PERFORM pg_sleep(60);`, posts,
			[]string{"TIMEOUT: the provider succeeded, and the success_handler failed: app.success did not return within 2s"},
			[]string{"before", "failure"},
		},
		"failure": {
			[]string{"failure"},
			raise, func(context.Context, *tasks.Task[letter]) (any, error) { return nil, errors.New("no paper") },
			[]string{
				"HANDLER_ERROR: no paper",
				"HANDLER_ERROR: the error_handler failed: app.failure: no luck (SQLSTATE P0001)",
			},
			[]string{"before"},
		},
		"success and failure": {[]string{"success", "failure"}, raise, posts, []string{
			"HANDLER_ERROR: the provider succeeded, and the success_handler failed: app.success: no luck (SQLSTATE P0001)",
			"HANDLER_ERROR: the error_handler failed: app.failure: no luck (SQLSTATE P0001)",
		}, []string{"before"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := channel(t, prepared, c.provider)
			b.exec(`CREATE TABLE app.roots (n bigint PRIMARY KEY); CREATE TABLE app.checked (n bigint REFERENCES app.roots DEFERRABLE INITIALLY DEFERRED)`)
			for _, name := range c.raising {
				b.replace(name, c.body)
			}
			b.enqueue("letter", letterTask)

			b.work()

			assert.Equal(t, c.recorded, b.errors())
			assert.Equal(t, c.facts, b.facts())
			assert.Zero(t, b.open())
		})
	}
}

// TestHandlersThatDisagree: an answer of a success_handler or error_handler that is no success is
// recorded, and what it has written stays.
func TestHandlersThatDisagree(t *testing.T) {
	t.Parallel()
	b := channel(t, prepared, func(_ context.Context, task *tasks.Task[letter]) (any, error) {
		if task.ID == 2 {
			return nil, errors.New("no paper")
		}
		return nil, nil
	})
	for _, name := range []string{"success", "failure"} {
		b.replace(name, `INSERT INTO app.facts (what) VALUES ('`+name+
			`'); RETURN '{"success": false, "error": "no such attempt"}';`)
	}
	b.enqueue("letter", letterTask)
	b.enqueue("letter", letterTask)
	b.work()
	assert.Equal(t, []string{"before", "success", "before", "failure"}, b.facts())
	assert.Equal(t, []string{
		"HANDLER_ERROR: app.success: no such attempt", "HANDLER_ERROR: no paper",
		"HANDLER_ERROR: app.failure: no such attempt",
	}, b.errors())
	assert.Zero(t, b.open())
}

// TestBeforeMeetsAnOutage: the provider is not called, the task is not failed, and works when the
// database is back.
func TestBeforeMeetsAnOutage(t *testing.T) {
	t.Parallel()
	calls := 0
	b := channel(t, prepared, func(context.Context, *tasks.Task[letter]) (any, error) {
		calls++
		return nil, nil
	})
	line := b.Line(t)
	b.use(line.Pool)
	b.enqueue("letter", letterTask)
	line.Cut()

	all := b.work()

	require.Len(t, all, 1)
	assert.True(t, all[0].Unavailable)
	assert.Zero(t, calls)
	assert.Empty(t, b.errors())
	assert.Equal(t, 1, b.open())
	line.Mend()
	b.work()
	assert.Equal(t, 1, calls)
	assert.Equal(t, []string{"before", "success"}, b.facts())
	assert.Zero(t, b.open())
}

// TestBeforeMeetsConflicts: a conflict is tried again at once; one that comes back each time is the
// function's own.
func TestBeforeMeetsConflicts(t *testing.T) {
	t.Parallel()
	b := channel(t, prepared, posts)
	b.exec(`CREATE SEQUENCE app.calls`)
	b.replace("before", `IF nextval('app.calls') < 3 OR _payload ? 'always' THEN RAISE 'lost' USING ERRCODE = '40001'; END IF; RETURN '`+prepared+`';`)
	b.enqueue("letter", letterTask)
	b.work()
	assert.Equal(t, []string{"success"}, b.facts())
	assert.Empty(t, b.errors())

	b.enqueue("letter", `{"before_handler": "app.before", "always": true}`)
	b.work()
	require.Len(t, b.errors(), 1)
	assert.Contains(t, b.errors()[0],
		"HANDLER_ERROR: app.before ended with a conflict, also when it was called again (5 calls)")
	assert.Zero(t, b.open())
}

// TestStoppedInTheProvider: a task whose worker stops, or whose lease is lost, is put off, and no
// handler is called.
func TestStoppedInTheProvider(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	b := channel(t, prepared, func(ctx context.Context, _ *tasks.Task[letter]) (any, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	b.enqueue("letter", letterTask)
	c := b.claim()
	require.Len(t, c, 1)
	a := b.handlers.Work(ctx, c[0].job, nil)
	assert.Equal(t, models.OutcomeRescheduled, a.Outcome)
	assert.Equal(t, []string{"before"}, b.facts())
}

// TestWorkerThatEndsEachTime: in the last attempt the process is told, and the provider is not
// called again.
func TestWorkerThatEndsEachTime(t *testing.T) {
	t.Parallel()
	b := channel(t, prepared, func(context.Context, *tasks.Task[letter]) (any, error) { panic("it is not called") })
	b.enqueue("letter", letterTask)
	c := b.claim()
	require.Len(t, c, 1)
	c[0].job.Attempt, c[0].job.Reclaims = 10, 9
	b.end(c[0], b.handlers.Work(t.Context(), c[0].job, nil))
	assert.Equal(t, []string{"failure"}, b.facts())
	assert.Equal(t, []string{"WORKER_LOST: the worker ended in each of 9 attempts"}, b.errors())
}
