package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/bench/report"
)

// statementsShown is how many statements are told.
const statementsShown = 14

// prepareStatements lets the server count what statements cost, if the command line wants it.
func (b *bench) prepareStatements(ctx context.Context) error {
	if !b.statements {
		return nil
	}
	if _, err := b.admin.Exec(ctx, `CREATE EXTENSION pg_stat_statements`); err != nil {
		return fmt.Errorf("-statements needs PostgreSQL's extension pg_stat_statements (Debian: it comes with "+
			"postgresql-N): %w", err)
	}
	return nil
}

// resetStatements forgets what the database's statements have cost.
func (d *database) resetStatements(ctx context.Context) error {
	if !d.b.statements {
		return nil
	}
	_, err := d.b.admin.Exec(ctx, `SELECT pg_stat_statements_reset(0, oid, 0) FROM pg_database WHERE datname = $1`,
		d.name)
	return err
}

// sayStatements tells what statements cost most since they were last forgotten, a job. A statement
// that a function runs is counted within the one that calls the function, too.
func (d *database) sayStatements(ctx context.Context, when string, jobs int) error {
	if !d.b.statements {
		return nil
	}
	rows, err := d.b.admin.Query(ctx, `
SELECT calls, total_exec_time, mean_exec_time, max_exec_time, rows, shared_blks_hit + shared_blks_read, toplevel, query
  FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = $1)
 ORDER BY total_exec_time DESC LIMIT $2`, d.name, statementsShown)
	if err != nil {
		return err
	}
	d.b.say("  %s, statements by their time; of %s jobs:", when, report.Count(jobs))
	d.b.say("    %9s %9s %9s %9s %9s %9s %11s", "µs/job", "calls", "mean ms", "max ms", "rows", "blocks", "blocks/call")
	var calls, count, blocks int64
	var total, mean, slowest float64
	var top bool
	var query string
	_, err = pgx.ForEachRow(rows, []any{&calls, &total, &mean, &slowest, &count, &blocks, &top, &query}, func() error {
		text := strings.Join(strings.Fields(query), " ")
		if !top {
			text = "… " + text
		}
		d.b.say("    %9.1f %9d %9.3f %9.1f %9d %9d %11.0f  %.150s", 1000*total/float64(max(1, jobs)), calls, mean, slowest,
			count, blocks, float64(blocks)/float64(calls), text)
		return nil
	})
	return err
}
