package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/failure"
)

// ErrSession: the sessions of a pool have a setting under which what Daybook writes would be wrong,
// and which no transaction can set otherwise.
var ErrSession = failure.New(failure.Misuse, "Daybook cannot work in the sessions of this pool")

// VerifySession returns ErrSession for a pool whose sessions change texts, or fire no triggers:
// jobs that wait for others would wait for ever.
func VerifySession(ctx context.Context, pool *pgxpool.Pool) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	// SQL_ASCII changes nothing. Some proxies do not say.
	if is := conn.Conn().PgConn().ParameterStatus("client_encoding"); is != "" && is != "UTF8" && is != "SQL_ASCII" {
		return fmt.Errorf("%w: client_encoding is %s, and the driver writes UTF8: set it in the pool's configuration "+
			"(RuntimeParams), or ALTER DATABASE or ALTER ROLE … RESET client_encoding", ErrSession, is)
	}
	var role string
	if err := conn.QueryRow(ctx, `SELECT current_setting('session_replication_role')`).Scan(&role); err != nil {
		return err
	}
	if role == "replica" {
		return fmt.Errorf("%w: session_replication_role is replica, so no trigger fires: ALTER DATABASE or ALTER ROLE … "+
			"RESET session_replication_role", ErrSession)
	}
	return nil
}
