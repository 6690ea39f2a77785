package store

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store/direct"
)

// ErrSession: the sessions of a pool have a setting under which what Daybook writes would be wrong,
// and which no transaction can set otherwise.
var ErrSession = failure.New(failure.Misuse, "Daybook cannot work in the sessions of this pool")

// VerifySession returns ErrSession for a pool whose sessions change texts, or fire no triggers:
// jobs that wait for others would wait for ever; and for one that prepares statements in sessions
// which a pooler gives to other clients.
func VerifySession(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := verifySession(ctx, pool)
	return err
}

// VerifyWorker is VerifySession for a worker, which listens and holds locks in sessions of the pool
// listening; nil: of its pool. It returns direct.ErrNeeded if a pooler gives these to other clients,
// and ErrSession if they are another database's. Where there is no pooler it costs nothing more.
func VerifyWorker(ctx context.Context, pool, listening *pgxpool.Pool) error {
	pooled, err := verifySession(ctx, pool)
	switch {
	case err != nil:
		return err
	case listening == nil && pooled:
		return direct.ErrNeeded
	case listening == nil:
		return nil
	}
	conn, err := listening.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err := direct.Require(ctx, conn.Conn()); err != nil {
		return fmt.Errorf("the direct address (%s): %w", direct.EnvURL, err)
	}
	return sameDatabase(ctx, pool, conn.Conn())
}

// verifySession says whether a pooler gives the pool's sessions to other clients.
func verifySession(ctx context.Context, pool *pgxpool.Pool) (pooled bool, err error) {
	held, err := pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer held.Release()
	conn := held.Conn()
	// SQL_ASCII changes nothing. Some proxies do not say.
	if is := conn.PgConn().ParameterStatus("client_encoding"); is != "" && is != "UTF8" && is != "SQL_ASCII" {
		return false, fmt.Errorf("%w: client_encoding is %s, and the driver writes UTF8: set it in the pool's configuration "+
			"(RuntimeParams), or ALTER DATABASE or ALTER ROLE … RESET client_encoding", ErrSession, is)
	}
	results, err := conn.PgConn().Exec(ctx,
		`SELECT current_setting('session_replication_role'), pg_backend_pid()`).ReadAll()
	if err != nil {
		return false, err
	}
	row := results[0].Rows[0]
	if string(row[0]) == "replica" {
		return false, fmt.Errorf("%w: session_replication_role is replica, so no trigger fires: ALTER DATABASE or "+
			"ALTER ROLE … RESET session_replication_role", ErrSession)
	}
	if backend, err := strconv.ParseUint(string(row[1]), 10, 32); err != nil || direct.IsOwn(conn, uint32(backend)) {
		return false, err
	}
	if pooled, err = direct.Pooled(ctx, conn); err == nil && pooled && prepares(conn) {
		err = fmt.Errorf("%w: %s", ErrSession, direct.PreparedAdvice)
	}
	return pooled, err
}

// prepares reports whether the connection leaves prepared statements in its session.
func prepares(conn *pgx.Conn) bool {
	mode := conn.Config().DefaultQueryExecMode
	return mode == pgx.QueryExecModeCacheStatement || mode == pgx.QueryExecModeDescribeExec
}

// sameDatabase returns ErrSession for a pool and a connection to different databases: the locks that
// a worker holds by the one would not be seen by the other.
func sameDatabase(ctx context.Context, pool *pgxpool.Pool, conn *pgx.Conn) error {
	const stmt = `SELECT current_database(), extract(epoch FROM pg_postmaster_start_time())::text`
	type database struct{ name, since string }
	var ours, direct database
	for q, d := range map[Querier]*database{pool: &ours, conn: &direct} {
		if err := q.QueryRow(ctx, stmt, pgx.QueryExecModeExec).Scan(&d.name, &d.since); err != nil {
			return err
		}
	}
	if ours != direct {
		return fmt.Errorf("%w: the direct address names another database, or another server: %s at %s, not %s", ErrSession,
			direct.name, Address(conn.Config()), ours.name)
	}
	return nil
}
