package store

import (
	"context"
)

// IsEmpty reports whether the database was not used yet: it has no schema daybook, or holds no organization, no document and no job of any kind.
func IsEmpty(ctx context.Context, q Querier) (bool, error) {
	const exists = `SELECT to_regclass('daybook.accounting_work_queue') IS NOT NULL`
	const stmt = `
SELECT NOT EXISTS (SELECT 1 FROM daybook.organizations) AND NOT EXISTS (SELECT 1 FROM daybook.documents)`
	var there, empty bool
	if err := q.QueryRow(ctx, exists).Scan(&there); err != nil || !there {
		return err == nil, Wrap("look for the schema", err)
	}
	err := q.QueryRow(ctx, stmt).Scan(&empty)
	for _, queue := range Queues() {
		if err == nil && empty {
			err = q.QueryRow(ctx, `SELECT NOT EXISTS (SELECT 1 FROM `+queue.Table+`)`).Scan(&empty)
		}
	}
	return empty, Wrap("look for data", err)
}

// ServerPrograms returns the directory of the server's own programs, such as pg_dump. Only a superuser may ask.
func ServerPrograms(ctx context.Context, q Querier) (string, error) {
	return value[string](ctx, q, "ask for the server's programs", `SELECT setting FROM pg_catalog.pg_config WHERE name = 'BINDIR'`)
}
