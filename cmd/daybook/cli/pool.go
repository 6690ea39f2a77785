package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store/direct"
	"github.com/daybook-dev/daybook/internal/store/hosts"
)

// Pool returns a pool that has not connected yet.
func (a *App) Pool(ctx context.Context, conns int32) (*pgxpool.Pool, error) {
	if err := a.CheckDatabaseURL(); err != nil {
		return nil, err
	}
	return PoolOf(ctx, a.DatabaseURL, conns)
}

// DirectPool returns a pool that has not connected yet, past a pooler, for a worker that listens; nil
// if no direct address is named.
func (a *App) DirectPool(ctx context.Context) (*pgxpool.Pool, error) {
	if a.DirectURL == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	return PoolOf(ctx, a.DirectURL, 1)
}

// SessionURL is the address for what needs a session of its own, such as a migration: that past a
// pooler, if one is named.
func (a *App) SessionURL() string { return cmp.Or(a.DirectURL, a.DatabaseURL) }

// PoolOf returns a pool of an address that has not connected yet. Behind a pooler in transaction
// mode it leaves nothing in a session: no setting and no prepared statement.
func PoolOf(ctx context.Context, address string, conns int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, ErrBadDatabaseURL
	}
	if !strings.Contains(address, "pool_max_conns") {
		config.MaxConns = conns
	}
	if config.ConnConfig.ConnectTimeout == 0 && !hosts.Several(config.ConnConfig) {
		config.ConnConfig.ConnectTimeout = serverLimit
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "daybook"
	}
	config.ConnConfig.RuntimeParams["client_encoding"] = "UTF8" // the driver knows no other
	behind := &pooler{}
	config.BeforeConnect, config.AfterConnect, config.PrepareConn = behind.choose, behind.look, behind.fits
	config.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool {
		return p.IdleDuration > trustedFor && hasEnded(p.Conn)
	}
	hosts.SideBySide(config)
	return pgxpool.NewWithConfig(ctx, config)
}

// serverLimit is how long the server may take to answer a new connection; several share less time.
const serverLimit = 10 * time.Second

// trustedFor is how long a connection may have been idle to be used without a look whether the
// server has ended it. pgx asks the server after a second: that is a transaction of its own for
// nearly each statement of an idle worker.
const trustedFor = 10 * time.Second

// hasEnded reports whether the server has ended an idle session, which then has something to read:
// so it costs no transaction, and a millisecond. What breaks in silence is noticed by the next
// statement, as it would be by asking.
func hasEnded(conn *pgx.Conn) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := conn.PgConn().ReceiveMessage(ctx)
	return err != nil && !pgconn.Timeout(err)
}

// pooler is what a pool knows of a pooler that gives sessions to other clients. The first
// connection shows that there is one; it, and those that were made with it, are replaced.
type pooler struct{ noticed atomic.Bool }

// choose has a new connection behind a pooler prepare no statements. What prepares them by the
// address's own wish is left alone.
func (p *pooler) choose(_ context.Context, config *pgx.ConnConfig) error {
	if p.noticed.Load() && config.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	return nil
}

// fits reports whether a connection prepares no statements behind a pooler.
func (p *pooler) fits(_ context.Context, conn *pgx.Conn) (bool, error) {
	return !p.noticed.Load() || conn.Config().DefaultQueryExecMode != pgx.QueryExecModeCacheStatement, nil
}

// look gives a new session its settings, unless it is other clients' as well.
func (p *pooler) look(ctx context.Context, conn *pgx.Conn) error {
	if p.noticed.Load() {
		return nil
	}
	own, err := nameDefaults(ctx, conn, conn.PgConn().PID())
	if err != nil || own {
		return err
	}
	pooled, err := direct.Pooled(ctx, conn)
	if err != nil || pooled {
		p.noticed.CompareAndSwap(false, pooled)
		return err
	}
	backend, err := direct.Backend(ctx, conn) // of a pooler that keeps sessions
	if err != nil {
		return err
	}
	_, err = nameDefaults(ctx, conn, backend)
	return err
}

// nameDefaults has the session begin transactions as Daybook's own, also those of a single
// statement, and gives no statement less time than it takes. What the address itself says is left
// alone, and so is a session whose process is not backend: own says whether it is.
func nameDefaults(ctx context.Context, conn *pgx.Conn, backend uint32) (own bool, err error) {
	said := conn.Config().RuntimeParams
	settings := []string{"('', '')"}
	for _, d := range []struct{ name, value string }{
		{"default_transaction_isolation", "read committed"},
		{"statement_timeout", "0"},
		{"lock_timeout", "0"},
		{"idle_session_timeout", "0"},
		{"transaction_timeout", "0"}, // PostgreSQL 17
	} {
		if _, ok := said[d.name]; !ok && !strings.Contains(said["options"], d.name) {
			settings = append(settings, "('"+d.name+"', '"+d.value+"')")
		}
	}
	const ask = `
SELECT CASE WHEN current_setting(nullif(name, ''), true) IS NOT NULL THEN set_config(name, value, false) END
  FROM (VALUES %s) d (name, value) WHERE pg_backend_pid() = %d`
	stmt := fmt.Sprintf(ask, strings.Join(settings, ", "), backend)
	tag, err := conn.Exec(ctx, stmt)
	return tag.RowsAffected() > 0, err
}
