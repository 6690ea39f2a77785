package store

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/telemetry/span"
)

// Requested is what a request led to: the job and a word for what happened to it.
type Requested struct {
	JobID  string
	Result string
	// Reason says why the request changed nothing; empty otherwise.
	Reason string
}

// tracedStatements holds the statement of traced for each statement.
var tracedStatements sync.Map

// traced has a statement that makes a request set daybook.traceparent to the trace that the request
// belongs to, until the transaction ends: the column default of the table reads it. In a context
// without a trace it returns the statement as it is.
//
// OFFSET 0 keeps the request in a query of its own, which begins when the setting is there: its
// condition is one about the setting.
func traced(ctx context.Context, stmt string, a Args) (string, Args) {
	parent := span.Parent(ctx)
	if parent == "" {
		return stmt, a
	}
	a["traceparent"] = parent
	if known, ok := tracedStatements.Load(stmt); ok {
		return known.(string), a
	}
	known, _ := tracedStatements.LoadOrStore(stmt, `
SELECT request.*
  FROM (SELECT set_config('daybook.traceparent', @traceparent, true) AS own) setting
 CROSS JOIN LATERAL (SELECT * FROM (`+stmt+`) asked WHERE setting.own IS NOT NULL OFFSET 0) request`)
	return known.(string), a
}

// requestRow makes a request that belongs to the trace of the context, and returns its answer.
func requestRow(ctx context.Context, q Querier, stmt string, a Args) pgx.Row {
	stmt, a = traced(ctx, stmt, a)
	return queryRow(ctx, q, stmt, a)
}
