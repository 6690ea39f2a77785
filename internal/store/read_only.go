package store

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// stateReadOnly is the SQLSTATE of a statement that would write in a session that only reads.
const stateReadOnly = "25006"

// leaveReadOnly has a pool open new sessions when err says that one of its own only reads, and returns err. A session stays so when its server became
// a standby, and when it was opened while default_transaction_read_only was set. A pool hands out the session that was returned last: so one such
// session would fail all statements of a worker for as long as a pool keeps sessions, an hour by default. db that is no pool is left alone.
func leaveReadOnly(db any, err error) error {
	if pool, ok := db.(*pgxpool.Pool); ok && SQLState(err) == stateReadOnly {
		pool.Reset()
	}
	return err
}

// OnlyReads reports whether err says that a statement of tx would write, and the session of tx only reads: it is one of a standby, or was opened while
// default_transaction_read_only was set. A transaction that only reads because a handler or a function has said so, in a session that may write, is not meant.
func OnlyReads(tx pgx.Tx, err error) bool {
	session := tx.Conn().PgConn()
	return SQLState(err) == stateReadOnly && (session.ParameterStatus("in_hot_standby") == "on" || session.ParameterStatus("default_transaction_read_only") == "on")
}
