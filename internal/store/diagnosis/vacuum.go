package diagnosis

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// Table is how the server's statistics have a table of Daybook's: both counts are estimates.
type Table struct {
	Name       string
	Live, Dead int64
	// Vacuumed is when it was last vacuumed; nil: not since the statistics were reset.
	Vacuumed *time.Time
	// Disabled: the table's own settings turn autovacuum off.
	Disabled bool
	// Due is after how many dead rows autovacuum begins.
	Due float64
	// Age is how many transactions old its oldest unfrozen row may be.
	Age int64
}

// Vacuum is how the tables are cleaned of dead rows.
type Vacuum struct {
	// Enabled: autovacuum runs at all, and can know what to do.
	Enabled bool
	// Tables are those of schemas daybook and queues, the one with the most dead rows first.
	Tables []Table
}

// Dead counts the dead rows of all tables.
func (v Vacuum) Dead() (n int64) {
	for _, t := range v.Tables {
		n += t.Dead
	}
	return n
}

// ReadVacuum reads how autovacuum keeps up.
func ReadVacuum(ctx context.Context, q store.Querier) (v Vacuum, err error) {
	const settings = `SELECT current_setting('autovacuum')::boolean AND current_setting('track_counts')::boolean`
	const tables = `
SELECT s.schemaname || '.' || s.relname, s.n_live_tup, s.n_dead_tup, greatest(s.last_vacuum, s.last_autovacuum),
       NOT coalesce((SELECT o.option_value::boolean FROM pg_options_to_table(c.reloptions) o WHERE o.option_name = 'autovacuum_enabled'), true),
       coalesce((SELECT o.option_value::float8 FROM pg_options_to_table(c.reloptions) o WHERE o.option_name = 'autovacuum_vacuum_threshold'),
                current_setting('autovacuum_vacuum_threshold')::float8)
       + coalesce((SELECT o.option_value::float8 FROM pg_options_to_table(c.reloptions) o WHERE o.option_name = 'autovacuum_vacuum_scale_factor'),
                  current_setting('autovacuum_vacuum_scale_factor')::float8) * greatest(c.reltuples, 0),
       age(c.relfrozenxid)::bigint
  FROM pg_stat_user_tables s
  JOIN pg_class c ON c.oid = s.relid
 WHERE s.schemaname IN ('daybook', 'queues')
 ORDER BY s.n_dead_tup DESC, s.relname`
	if err := q.QueryRow(ctx, settings).Scan(&v.Enabled); err != nil {
		return v, store.Wrap("read autovacuum's settings", err)
	}
	v.Tables, err = store.Collect(ctx, q, pgx.RowToStructByPos[Table], tables)
	return v, store.Wrap("read how tables are vacuumed", err)
}
