package tasks_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pages"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/tasks"
)

// supervise is the payload of a task that calls app.supervise.
const supervise = `{"task_type": "db_function", "db_function": "app.supervise", "thing_id": 12345678901234567890}`

// TestFunctionGetsTheWholePayload: all of a payload is passed through, and the function may ask for
// more tasks.
func TestFunctionGetsTheWholePayload(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.function("supervise", `
    INSERT INTO app.facts (what, body) VALUES ('supervise', _payload);
    IF _payload ->> 'round' IS NULL THEN
        PERFORM queues.enqueue('db_function', _payload || '{"round": 2}');
    END IF;
    RETURN '{"status": "succeeded"}';`)
	b.enqueue("db_function", supervise)

	b.work()
	b.work()

	assert.Equal(t, []string{"supervise", "supervise"}, b.facts())
	assert.Equal(t, "12345678901234567890", string(b.fact("supervise")["thing_id"]))
	assert.Equal(t, "2", string(b.fact("supervise")["round"]))
	assert.Empty(t, b.errors())
	assert.Zero(t, b.open())
}

// TestAnswers has a function give each answer: the task is completed, what the function has written
// stays, and what is recorded is what the answer says.
func TestAnswers(t *testing.T) {
	t.Parallel()
	type answered struct{ answer, recorded, logged string }
	cases := map[string]answered{
		"status":  {`{"status": "succeeded", "payload": {}}`, "", ""},
		"success": {`{"success": true}`, "", ""},
		"success with empty texts": {
			`{"success": true, "error": "", "validation_failure_message": null, "payload": null}`,
			"", "",
		},
		"another status": {`{"status": "max_attempts_reached"}`, "", "max_attempts_reached"},
		"an error": {
			`{"success": false, "error": "no such thing"}`,
			"HANDLER_ERROR: app.supervise: no such thing", "no such thing",
		},
		"no success and no error": {
			`{"success": false}`,
			"HANDLER_ERROR: app.supervise: it returned success false, without an error", "success false",
		},
		"a validation failure": {
			`{"success": false, "validation_failure_message": "the name is empty"}`,
			"PAYLOAD_INVALID: app.supervise: validation failed: the name is empty", "the name is empty",
		},
		"a validation failure alone": {
			`{"validation_failure_message": "the name is empty"}`,
			"PAYLOAD_INVALID: app.supervise: validation failed: the name is empty", "the name is empty",
		},
		"succeeded and an error": {
			`{"status": "succeeded", "error": "but"}`, "HANDLER_ERROR: app.supervise: but",
			"but",
		},
		"nothing that is known": {
			`{"result": 1}`,
			`HANDLER_ERROR: app.supervise: it returned neither status nor success: want {"status": "succeeded"} or {"success": true}`, "neither",
		},
		"null": {
			`null`,
			`HANDLER_ERROR: app.supervise: it returned no JSON object: want {"status": "succeeded"} or {"success": true}`,
			"no JSON object",
		},
		"a list": {
			`[1]`,
			`HANDLER_ERROR: app.supervise: it returned no JSON object: want {"status": "succeeded"} or {"success": true}`,
			"no JSON object",
		},
		"a status that is no text": {
			`{"status": 1}`,
			`HANDLER_ERROR: app.supervise: it returned a status, error or validation_failure_message that is no text`,
			"no text",
		},
		"a success that is no boolean": {
			`{"success": "yes"}`,
			`HANDLER_ERROR: app.supervise: it returned a success that is neither true nor false`, "neither true",
		},
	}
	blocks, err := pages.Of("docs/tasks.md", "json")
	require.NoError(t, err)
	require.Len(t, blocks, 1)
	for line := range strings.Lines(blocks[0].Text) {
		cases["of the page: "+line] = answered{line, "", ""}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.notes("supervise", c.answer)
			b.enqueue("db_function", supervise)

			b.work()

			assert.Equal(t, []string{"supervise"}, b.facts())
			assert.Zero(t, b.open())
			if c.recorded == "" {
				assert.Empty(t, b.errors())
			} else {
				assert.Equal(t, []string{c.recorded}, b.errors())
			}
			assert.Contains(t, b.log.String(), c.logged)
		})
	}
}

// TestFunctionThatCannotRun: each is recorded and completed, and nothing of the function is left.
func TestFunctionThatCannotRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, payload, want string }{
		"raises": {
			`INSERT INTO app.facts (what) VALUES ('undone'); RAISE 'no luck';`, supervise,
			"HANDLER_ERROR: app.supervise: no luck (SQLSTATE P0001)",
		},
		"looks like an outage": {
			`RAISE 'it is as if' USING ERRCODE = '57P01';`, supervise,
			"HANDLER_ERROR: app.supervise: it is as if (SQLSTATE 57P01)",
		},
		"says that it took too long": {
			`RAISE 'a limit of its own' USING ERRCODE = '57014';`, supervise,
			"HANDLER_ERROR: app.supervise: a limit of its own (SQLSTATE 57014)",
		},
		"takes too long": {
			`INSERT INTO app.facts (what) VALUES ('undone'); PERFORM pg_sleep(60);`, supervise,
			"TIMEOUT: app.supervise did not return within 200ms",
		},
		"does not exist": {
			`RETURN NULL;`, `{"db_function": "app.other"}`,
			"HANDLER_ERROR: app.other: there is no function app.other(jsonb) that returns jsonb (SQLSTATE 42883)",
		},
		"is not granted": {
			`RETURN NULL;`, `{"db_function": "app.secret"}`,
			"HANDLER_ERROR: app.secret: function app.secret is not granted to worker_service_user (SQLSTATE 42501)",
		},
		"is no name": {
			`RETURN NULL;`, `{"db_function": "app.supervise('{}'); DROP TABLE app.facts; --"}`,
			"HANDLER_ERROR: app.supervise('{}'); DROP TABLE app.facts; --: a function is named as schema.name, not " +
				"'app.supervise(''{}''); DROP TABLE app.facts; --' (SQLSTATE 42602)",
		},
		"is not named": {
			`RETURN NULL;`, `{"task_type": "db_function"}`,
			"PAYLOAD_INVALID: the task's payload names no db_function: name it as schema.name",
		},
		"is no text": {
			`RETURN NULL;`, `{"db_function": 7}`,
			"PAYLOAD_INVALID: the db_function of the task's payload is no text: name a function as schema.name",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			if name == "takes too long" {
				b.registry.SetDBFunctionPolicy(tasks.Policy{FunctionTimeout: 200 * time.Millisecond})
			}
			b.function("supervise", c.body)
			b.exec(`CREATE FUNCTION app.secret(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1'`)
			b.enqueue("db_function", c.payload)

			b.work()

			assert.Equal(t, []string{c.want}, b.errors())
			assert.Empty(t, b.facts())
			assert.Zero(t, b.open())
		})
	}
}

// TestFunctionMeetsAnOutage: what the server refuses to any task is no failure of this one.
func TestFunctionMeetsAnOutage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.notes("supervise", `{"status": "succeeded"}`)
	b.enqueue("db_function", supervise)
	// The server itself says 25006, as a standby does, and as one without room on its disk says
	// 53100.
	b.exec(`CREATE FUNCTION app.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM set_config('transaction_read_only', 'on', true); DELETE FROM app.facts; RETURN NEW; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON app.facts FOR EACH ROW EXECUTE FUNCTION app.refuse()`)

	all := b.work()

	require.Len(t, all, 1)
	assert.Equal(t, models.OutcomeRescheduled, all[0].Outcome)
	assert.Equal(t, models.CodeDatabaseError, all[0].Code)
	assert.Equal(t, 1, b.open())
	assert.Empty(t, b.errors())

	b.exec(`DROP TRIGGER refuse ON app.facts`)
	b.work()
	assert.Equal(t, []string{"supervise"}, b.facts())
	assert.Zero(t, b.open())
}

// recalls are statements of a function that keeps the type of a row for as long as its session
// lives.
const recalls = `
    DECLARE r record; x text; BEGIN SELECT * INTO r FROM app.things; SELECT r.name::text INTO x;
    INSERT INTO app.facts (what, body) VALUES (x, _payload); END;
    RETURN '{"status": "succeeded"}';`

// TestSchemaChangeFailsNoTask: a table was changed of which a session has a function's plan. The
// task is put off, as in an outage, and not recorded as failed.
func TestSchemaChangeFailsNoTask(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE app.things (name text); INSERT INTO app.things VALUES ('one')`)
	b.exec(`GRANT SELECT ON app.things TO PUBLIC`)
	b.function("supervise", recalls)
	b.enqueue("db_function", supervise)
	b.work()
	b.exec(`ALTER TABLE app.things ALTER COLUMN name TYPE varchar(9)`)
	b.enqueue("db_function", supervise)
	for b.open() > 0 {
		b.work()
	}
	assert.Empty(t, b.errors())
	assert.Equal(t, []string{"one", "one"}, b.facts())
}
