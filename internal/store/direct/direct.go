// Package direct tells connections that have a session of PostgreSQL for as long as they last from
// those through a pooler that gives the session to another client after each transaction. What a
// statement leaves in such a session, a lock, a setting or a prepared statement, is another
// client's at once.
package direct

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/failure"
)

// EnvURL is the variable that names the database past a pooler.
const EnvURL = "DAYBOOK_DATABASE_DIRECT_URL"

// ErrNeeded: a session is needed, and the address leads through a pooler that keeps none.
var ErrNeeded = failure.New(failure.DirectAddressNeeded, "the address leads through a pooler that gives the session "+
	"to another client after each transaction: set "+EnvURL+" to an address of PostgreSQL itself, or have the pooler "+
	"work in session mode")

// PreparedAdvice is what to do about prepared statements that another client has in the session, or
// that are not in it (SQLSTATE 42P05, 26000).
const PreparedAdvice = "the driver prepares statements, and a pooler gives the session to another client after each " +
	"transaction: add default_query_exec_mode=cache_describe to the address, or see https://github.com/daybook-dev/daybook/blob/main/docs/scaling.md for other drivers"

const (
	// rounds is how many times two clients compare their sessions before the pooler is known to give
	// each client a session of its own. One round shows it, unless other clients take what is free
	// at that moment.
	rounds = 5
	// compareLimit bounds all rounds together.
	compareLimit = 5 * time.Second
)

// Require returns ErrNeeded for a connection that has no session of its own. Where there is no
// pooler it costs one round trip.
func Require(ctx context.Context, conn *pgx.Conn) error {
	pooled, err := Pooled(ctx, conn)
	if err == nil && pooled {
		return ErrNeeded
	}
	return err
}

// Pooled reports whether conn, which is not in a transaction, has another session from transaction
// to transaction, or one that another client has as well. Where there is no pooler it costs one
// round trip. It leaves nothing in the session.
func Pooled(ctx context.Context, conn *pgx.Conn) (bool, error) {
	first, err := Backend(ctx, conn)
	if err != nil || IsOwn(conn, first) {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, compareLimit)
	defer cancel()
	pooled, err := shares(ctx, conn, first)
	if err != nil {
		return false, fmt.Errorf("look whether the pooler keeps sessions: %w", err)
	}
	return pooled, nil
}

// shares connects as another client, and looks whether it is given the session of conn, or conn
// another one.
func shares(ctx context.Context, conn *pgx.Conn, first uint32) (bool, error) {
	other, err := pgx.ConnectConfig(ctx, conn.Config())
	if err != nil {
		return false, err
	}
	defer func() { _ = other.Close(context.WithoutCancel(ctx)) }()
	for range rounds {
		for _, c := range []*pgx.Conn{other, conn} {
			now, err := Backend(ctx, c)
			if err != nil {
				return false, err
			}
			if (c == conn) != (now == first) {
				return true, nil
			}
		}
	}
	return false, nil
}

// IsOwn reports whether a session's process is the one that the server named when conn connected.
// Poolers name none, or make a number up, because a request to cancel has to come to them.
func IsOwn(conn *pgx.Conn, backend uint32) bool { return conn.PgConn().PID() == backend }

// Backend is the process of the session that the connection has at the moment. It is asked for by a
// text, because a statement that is prepared may be looked for in another session.
func Backend(ctx context.Context, conn *pgx.Conn) (uint32, error) {
	results, err := conn.PgConn().Exec(ctx, `SELECT pg_backend_pid()`).ReadAll()
	if err != nil {
		return 0, err
	}
	pid, err := strconv.ParseUint(string(results[0].Rows[0][0]), 10, 32)
	return uint32(pid), err
}
