package store

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/telemetry/span"
)

// CallFunction calls an SQL function with one argument of jsonb, in a transaction, and returns what
// it returns as JSON: null for void, and a list for a set. While it runs,
// current_setting('daybook.org_id') and ('daybook.job_id') tell for whom and why, and what it
// enqueues belongs to the trace of the context.
//
// A function's name cannot be a parameter of a statement. It is quoted, and its caller takes it
// from a list of its own.
func CallFunction(ctx context.Context, tx pgx.Tx, schema, name, org, job string,
	argument json.RawMessage,
) (json.RawMessage, error) {
	const settings = `SELECT set_config('daybook.org_id', $1, true), set_config('daybook.job_id', $2, true), set_config('daybook.traceparent', $3, true)`
	const kind = `
SELECT proretset, prorettype = 'void'::regtype FROM pg_catalog.pg_proc WHERE oid = to_regprocedure($1)`
	function := pgx.Identifier{schema, name}.Sanitize()
	if _, err := tx.Exec(ctx, settings, org, job, span.Parent(ctx)); err != nil {
		return nil, Wrap("call "+function, err)
	}
	var set, void bool
	if err := tx.QueryRow(ctx, kind, function+"(jsonb)").Scan(&set, &void); err != nil {
		return nil, err
	}
	statement := "SELECT to_jsonb(" + function + "($1::jsonb))"
	switch {
	case void:
		statement = "SELECT NULL::jsonb FROM " + function + "($1::jsonb)"
	case set:
		statement = "SELECT coalesce(jsonb_agg(to_jsonb(r)), '[]') FROM " + function + "($1::jsonb) AS r"
	}
	var result json.RawMessage
	err := tx.QueryRow(ctx, statement, argument).Scan(&result)
	return result, Wrap("call "+function, err)
}
