package store

import "github.com/jackc/pgx/v5/pgxpool"

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
