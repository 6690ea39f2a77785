package handlers

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// functions makes functions of an application, and registers the type db_function with them.
func (b *bundle) functions() {
	b.t.Helper()
	b.exec(`
CREATE SCHEMA app;
CREATE TABLE app.log (org_id text, job_id text, argument jsonb);
CREATE FUNCTION app.note(argument jsonb) RETURNS jsonb LANGUAGE sql AS $$
    INSERT INTO app.log VALUES (current_setting('daybook.org_id'), current_setting('daybook.job_id'), argument)
    RETURNING jsonb_build_object('noted', argument)
$$;
CREATE FUNCTION app.quiet(argument jsonb) RETURNS void LANGUAGE sql AS $$ INSERT INTO app.log VALUES ('', '', argument) $$;
CREATE FUNCTION app.number(argument jsonb) RETURNS integer LANGUAGE sql AS $$ SELECT (argument ->> 'n')::integer $$;
CREATE FUNCTION app.many(argument jsonb) RETURNS SETOF integer LANGUAGE sql AS $$ SELECT generate_series(1, 3) $$;
CREATE FUNCTION app.rows(argument jsonb) RETURNS TABLE (a integer, b text) LANGUAGE sql AS $$ SELECT 1, 'x' $$;
CREATE FUNCTION app.large(argument jsonb) RETURNS text LANGUAGE sql AS $$ SELECT repeat('x', 100000) $$;
CREATE FUNCTION app.fails(argument jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO app.log VALUES ('', '', argument);
    RAISE EXCEPTION USING MESSAGE = 'as asked', ERRCODE = argument ->> 'state';
END $$;
CREATE FUNCTION app.secret(argument jsonb) RETURNS void LANGUAGE sql AS $$ DELETE FROM app.log $$;`)
	h, err := NewDBFunction(DBFunctionConfig{Functions: []string{
		"app.note", "app.quiet", "app.number", "app.many", "app.rows", "app.large", "app.fails", "app.missing",
		"nowhere.missing",
	}})
	require.NoError(b.t, err)
	jobs.Register(b.registry, DBFunctionPolicy(), h.Handle)
}

func TestDBFunctionReturns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.functions()
	for function, c := range map[string]struct{ argument, want string }{
		"app.note":   {`{"a": [1]}`, `{"noted": {"a": [1]}}`},
		"app.quiet":  {``, `null`},
		"app.number": {`{"n": 7}`, `7`},
		"app.many":   {`{}`, `[1, 2, 3]`},
		"app.rows":   {`{}`, `[{"a": 1, "b": "x"}]`},
	} {
		j := b.run(DBFunction{Function: function, Argument: json.RawMessage(c.argument)})
		require.Equal(t, models.JobCompleted, j.State, "%s: %s", function, j.Error)
		if c.want != "null" {
			assert.JSONEq(t, c.want, string(j.Result), function)
		}
	}
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM app.log l JOIN daybook.jobs j ON j.id = l.job_id AND j.org_id = l.org_id`))
	assert.Equal(t, 2, b.left("app.log"))
}

func TestDBFunctionFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.functions()
	for name, c := range map[string]struct {
		function, argument string
		state              models.JobState
		code               models.ErrorCode
	}{
		"not on the list": {"app.secret", `{}`, models.JobFailed, models.CodePayloadInvalid},
		"injection":       {`app.note"('{}'); DELETE FROM app.log; --`, `{}`, models.JobFailed, models.CodePayloadInvalid},
		"without schema":  {"note", `{}`, models.JobFailed, models.CodePayloadInvalid},
		"no function":     {"app.missing", `{}`, models.JobFailed, models.CodeNotFound},
		"no schema":       {"nowhere.missing", `{}`, models.JobFailed, models.CodeNotFound},
		"argument":        {"app.number", `{"n": "seven"}`, models.JobFailed, models.CodePayloadInvalid},
		"too large":       {"app.large", `{}`, models.JobFailed, models.CodeHandlerError},
		"not allowed":     {"app.fails", `{"state": "42501"}`, models.JobFailed, models.CodeAuthenticationFailed},
		"raises":          {"app.fails", `{"state": "P0001"}`, models.JobPending, models.CodeHandlerError},
		"statement limit": {"app.fails", `{"state": "57014"}`, models.JobPending, models.CodeTimeout},
	} {
		j := b.run(DBFunction{Function: c.function, Argument: json.RawMessage(c.argument)})
		assert.Equal(t, c.state, j.State, "%s: %s", name, j.Error)
		assert.Equal(t, c.code, j.Code, "%s: %s", name, j.Error)
	}
	assert.Equal(t, 0, b.left("app.log"), "what a failed function wrote is undone")
}

// What a function writes is there once, with the completion, although the job is enqueued twice.
func TestDBFunctionOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.functions()
	o := queue.JobOptions{IdempotencyKey: "once"}
	p := DBFunction{Function: "app.quiet", Argument: json.RawMessage(`1`)}
	first := b.enqueueFor(org, p, o)
	assert.Equal(t, first, b.enqueueFor(org, p, o))
	b.work()
	b.work()
	assert.Equal(t, 1, b.left("app.log"))
}

// A function that ends with a conflict each time is called again at once, and then its attempt is
// counted: the job ends as a dead letter whose text has the cause.
func TestDBFunctionThatAlwaysConflicts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ state, pause string }{
		"serialization failure": {"40001", "0"},
		"deadlock":              {"40P01", "0"},
		"a slow one":            {"40001", "2.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(`CREATE SCHEMA app`)
			b.exec(`
CREATE FUNCTION app.clash(argument jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_sleep((argument ->> 'pause')::float8);
    RAISE EXCEPTION 'two at once' USING ERRCODE = argument ->> 'state';
END $$`)
			b.variables(map[string]string{"DAYBOOK_DB_FUNCTIONS": "app.clash"})
			id := b.enqueueFor(org, DBFunction{
				Function: "app.clash", Argument: json.RawMessage(`{"state": "` + c.state + `", "pause": ` + c.pause + `}`),
			}, queue.JobOptions{MaxAttempts: 2})
			for range 2 {
				b.due()
				b.work()
			}
			j := b.job(id)
			require.Equal(t, models.JobFailed, j.State, j.Error)
			assert.Equal(t, models.CodeHandlerError, j.Code)
			assert.Contains(t, j.Error, "two at once (SQLSTATE "+c.state+")")
			assert.Equal(t, 2, b.count(`SELECT run_count FROM daybook.jobs WHERE id = $1`, id))
		})
	}
}

// One lost race counts as no attempt.
func TestDBFunctionThatConflictsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE SCHEMA app; CREATE SEQUENCE app.calls`)
	b.exec(`
CREATE FUNCTION app.clash(argument jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('app.calls') = 1 THEN
        RAISE EXCEPTION 'two at once' USING ERRCODE = '40001';
    END IF;
END $$`)
	b.variables(map[string]string{"DAYBOOK_DB_FUNCTIONS": "app.clash"})
	j := b.run(DBFunction{Function: "app.clash"})
	require.Equal(t, models.JobCompleted, j.State, j.Error)
	assert.Equal(t, 1, b.count(`SELECT run_count FROM daybook.jobs WHERE id = $1`, j.ID))
}

// TestDBFunctionOfAChangedTable: a function keeps the type of a row for as long as its session
// lives. A change of the table is not the function's failure.
func TestDBFunctionOfAChangedTable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`
CREATE SCHEMA app;
CREATE TABLE app.things (name text);
INSERT INTO app.things VALUES ('one');
CREATE FUNCTION app.first(argument jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; x text;
BEGIN SELECT * INTO r FROM app.things; SELECT r.name::text INTO x; RETURN x; END $$`)
	h, err := NewDBFunction(DBFunctionConfig{Functions: []string{"app.first"}})
	require.NoError(t, err)
	policy := DBFunctionPolicy()
	policy.MaxAttempts = 1
	jobs.Register(b.registry, policy, h.Handle)
	require.Equal(t, models.JobCompleted, b.run(DBFunction{Function: "app.first"}).State)
	b.exec(`ALTER TABLE app.things ALTER COLUMN name TYPE varchar(9)`)
	j := b.run(DBFunction{Function: "app.first"})
	assert.Equal(t, models.JobCompleted, j.State, j.Error)
}
