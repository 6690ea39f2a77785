package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
)

// DBFunction is the payload of the type db_function: a call of an SQL function that the
// configuration allows.
type DBFunction struct {
	// Function is schema and name, as the configuration has them: app.refresh_totals.
	Function string `json:"function"`
	// Argument is the function's only argument, of the type jsonb; without it, null.
	Argument json.RawMessage `json:"argument,omitempty"`
}

// JobType is "db_function".
func (DBFunction) JobType() string { return "db_function" }

// DBFunctionPolicy is the type's policy: the defaults of jobs.Policy.
func DBFunctionPolicy() jobs.Policy {
	return jobs.Policy{MaxAttempts: 3, Timeout: 30 * time.Second}
}

// DBFunctionConfig says which functions may be called.
type DBFunctionConfig struct {
	// Functions are schemas and names: app.refresh_totals. Each takes one argument of jsonb and may
	// return anything; the worker's role must be allowed to execute it.
	Functions []string `env:"DB_FUNCTIONS"`
	// MaxResult is how many bytes of JSON a result may have; default 64 KB.
	MaxResult int `env:"DB_FUNCTION_MAX_RESULT"`
}

// DBFunctionHandler works jobs of the type db_function. It is safe for concurrent use.
type DBFunctionHandler struct {
	allowed   map[string][2]string
	maxResult int
}

// functionName is the name of a function with its schema, as it is written without quotes.
var functionName = regexp.MustCompile(`^([a-z_][a-z0-9_$]{0,62})\.([a-z_][a-z0-9_$]{0,62})$`)

// NewDBFunction returns a handler.
func NewDBFunction(c DBFunctionConfig) (*DBFunctionHandler, error) {
	h := &DBFunctionHandler{allowed: map[string][2]string{}, maxResult: c.MaxResult}
	if h.maxResult <= 0 {
		h.maxResult = 64 << 10
	}
	for _, f := range c.Functions {
		f = strings.TrimSpace(f)
		parts := functionName.FindStringSubmatch(f)
		if parts == nil {
			return nil, fmt.Errorf("db_function: DB_FUNCTIONS: %q is not like schema.name, in lower-case letters, digits "+
				"and _", f)
		}
		h.allowed[f] = [2]string(parts[1:])
	}
	if len(h.allowed) == 0 {
		return nil, errors.New("db_function: DB_FUNCTIONS names no function")
	}
	return h, nil
}

// Handle calls one function in the transaction that completes the job: what it writes is written
// exactly once. What it returns is the job's result; a set is a list. It fails with HANDLER_ERROR
// (the function raised an error) or TIMEOUT, which are tried again, and finally with
// PAYLOAD_INVALID (the function is not on the list, or it refuses its argument with an SQLSTATE of
// class 22), NOT_FOUND (it does not exist), or AUTHENTICATION_FAILED (the worker may not execute
// it).
func (h *DBFunctionHandler) Handle(ctx context.Context, job *jobs.Job[DBFunction]) error {
	return outcome(h.prepare(callOf(job)))
}

func (h *DBFunctionHandler) prepare(c *call[DBFunction]) error {
	function, ok := h.allowed[c.payload.Function]
	if !ok {
		return invalid("the function %q is not one of those that %sDB_FUNCTIONS allows", clip(c.payload.Function),
			environmentPrefix)
	}
	argument := c.payload.Argument
	if len(argument) == 0 {
		argument = json.RawMessage("null")
	}
	conflicts := conflictCount{}
	c.inTx(func(ctx context.Context, tx pgx.Tx) error {
		conflicts.begin()
		result, err := store.CallFunction(ctx, tx, function[0], function[1], c.orgID, c.id, argument)
		if conflicts.enough(err) {
			return outcome(fail(models.CodeHandlerError,
				"%s ended with a conflict, also when it was called again (%d calls): %s (SQLSTATE %s). "+
					"Have it take its locks in one order, and raise this SQLSTATE only where the next call may succeed",
				c.payload.Function, conflicts.calls, clip(conflicts.text), conflicts.state))
		}
		if err != nil {
			return outcome(functionFailure(c.payload.Function, err))
		}
		if len(result) > h.maxResult {
			return outcome(failFinally("%s returned %d bytes of JSON, more than %d", c.payload.Function, len(result),
				h.maxResult))
		}
		c.result(result)
		return nil
	})
	return nil
}

// After a conflict the call is made again at once, and no attempt is counted. A function that
// conflicts each time, or takes so long that there is no time for another call, has failed: its
// attempt is counted.
const (
	maxConflicts     = 5
	conflictPatience = 2 * time.Second
)

// conflictCount counts the calls of one attempt that ended with a serialization failure or a
// deadlock.
type conflictCount struct {
	calls       int
	since       time.Time
	text, state string
}

// begin notes when the first call begins.
func (c *conflictCount) begin() {
	if c.since.IsZero() {
		c.since = time.Now()
	}
}

// enough counts the call that ended with err, and reports whether the attempt has failed with it.
func (c *conflictCount) enough(err error) bool {
	raised, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || !store.IsConflict(err) {
		return false
	}
	c.calls++
	c.text, c.state = raised.Message, raised.Code
	return c.calls >= maxConflicts || time.Since(c.since) > conflictPatience
}

// functionFailure says what becomes of a job whose function failed. An error that is not the
// function's stays as it is.
func functionFailure(function string, err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fail(models.CodeNotFound, "there is no function %s(jsonb)", function)
	}
	if store.IsTransient(err) {
		return err // the end of the attempt's time among them, which is the function's fault or that of a lock
	}
	raised, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return fmt.Errorf("%s: %w", function, err)
	}
	text := fmt.Sprintf("%s: %s (SQLSTATE %s)", function, clip(raised.Message), raised.Code)
	switch {
	case strings.HasPrefix(raised.Code, "22"):
		return fail(models.CodePayloadInvalid, "%s", text)
	case raised.Code == "42883", raised.Code == "3F000":
		return fail(models.CodeNotFound, "%s", text)
	case raised.Code == "42501":
		return fail(models.CodeAuthenticationFailed, "%s", text)
	case raised.Code == "57014":
		return fail(models.CodeTimeout, "%s", text)
	default:
		return fail(models.CodeHandlerError, "%s", text)
	}
}

func init() {
	builtins = append(builtins, builtin{name: "db_function", register: func(r *jobs.Registry, s *environment) error {
		config, err := parse[DBFunctionConfig](s)
		if err != nil {
			return err
		}
		if len(config.Functions) == 0 {
			return notConfiguredError("set DAYBOOK_DB_FUNCTIONS to the functions that may be called, such as " +
				"app.refresh_totals")
		}
		h, err := NewDBFunction(config)
		if err != nil {
			return err
		}
		jobs.Register(r, s.policy(DBFunctionPolicy()), h.Handle)
		return nil
	}})
}
