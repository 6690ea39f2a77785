package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Beginner begins transactions: a pool or a connection.
type Beginner interface {
	BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error)
}

// A transaction names what Daybook's rules depend on, because the database and the role may have
// other defaults. Under a stricter isolation level a statement would read what was true when its
// transaction began, and not what the locks that it has taken since protect: a period that was
// closed meanwhile would still be open. The time limits are the worker's own.
//
// A reader's statements are for one organization or for all, and are planned for what they are
// asked: the plan for any would read all of a table for an organization with a few rows of it.
//
// These texts have no parameters, so each is sent in one round trip.
const (
	beginOwn    = `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SELECT ` + noTransactionTimeout
	beginReport = `BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SET LOCAL plan_cache_mode = force_custom_plan; SELECT ` + noTransactionTimeout
)

// noTransactionTimeout takes the limit of the whole transaction away, which servers have from
// PostgreSQL 17 on. The session would be ended by it.
const noTransactionTimeout = `CASE WHEN current_setting('transaction_timeout', true) <> '0' THEN set_config('transaction_timeout', '0', true) END`

// limitShort gives a transaction of the worker's queues its time limits; the argument is that of
// locks, in milliseconds. It is sent with BEGIN as a batch of prepared statements: of a text of
// several statements each would be planned anew each time. What else is to be done then follows in
// the same statement, because to start one takes longer than to run it.
const limitShort = `SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', $1, true), set_config('idle_in_transaction_session_timeout', '10s', true), ` + noTransactionTimeout

// readCommitted begins a batch that is sent without a transaction around it, and so is one by
// itself. PostgreSQL documents it to be SET TRANSACTION, which warns when it is used there.
const readCommitted = `SET transaction_isolation = 'read committed'`

// commitGrace is how long the answer to a COMMIT is awaited after the caller's context has ended.
const commitGrace = 2 * time.Second

// Begin runs f in a transaction and commits it, or rolls it back when f fails. Every transaction of
// Daybook that writes begins here, or by Store.InTx. When ctx ends before the COMMIT, nothing is
// committed; when it ends during the COMMIT, the answer is awaited for commitGrace, so that an
// interrupted command can say what it did. The error is ErrCommitCut when it is not known whether
// the transaction was committed.
func Begin(ctx context.Context, db Beginner, f func(tx pgx.Tx) error) error {
	tx, err := db.BeginTx(ctx, pgx.TxOptions{BeginQuery: beginOwn})
	if err != nil {
		return leaveSpoilt(db, err)
	}
	// Without effect when the transaction has ended; otherwise it has failed, or f has ended its
	// goroutine.
	defer func() { _ = tx.Rollback(ctx) }()
	if err := f(tx); err != nil {
		return leaveSpoilt(db, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	committing, cancel := outlasting(ctx, commitGrace)
	defer cancel()
	err = tx.Commit(committing)
	if err != nil && SQLState(err) == "" && !errors.Is(err, pgx.ErrTxCommitRollback) {
		return fmt.Errorf("%w: %w", ErrCommitCut, cmp.Or(ctx.Err(), err))
	}
	return leaveSpoilt(db, err)
}

// outlasting returns a context that ends the given time after ctx.
func outlasting(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

// InTx implements engine.Transactions. It fails with ErrSchemaMismatch while the schema is not the
// one that GuardSchema wants. The transaction begins with its first statement, in the same round
// trip (transaction).
func (b *base) InTx(ctx context.Context, f func(tx pgx.Tx) error) error {
	return b.InTxWaiting(ctx, 0, f)
}

// InTxWaiting implements engine.Transactions.
func (b *base) InTxWaiting(ctx context.Context, wait time.Duration, f func(tx pgx.Tx) error) error {
	require, err := b.ready(ctx)
	if err != nil {
		return err
	}
	limit := int64(0)
	if wait > 0 {
		limit = max(wait.Milliseconds(), 1)
	}
	err = b.transact(ctx, &transaction{limit: strconv.FormatInt(limit, 10), require: require}, f)
	return b.suspect(ctx, leaveSpoilt(b.pool, err))
}

// transact runs f in a transaction. It commits it, unless f has (Access.Commit), or rolls it back
// when f fails.
func (b *base) transact(ctx context.Context, tx *transaction, f func(tx pgx.Tx) error) error {
	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	tx.conn = conn.Conn()
	// Without effect when the transaction has ended; otherwise it has failed, or f has ended its
	// goroutine.
	defer func() {
		if tx.Tx != nil {
			_ = tx.Tx.Rollback(ctx)
		}
	}()
	if err := f(tx); err != nil || tx.committed || tx.Tx == nil {
		return err
	}
	return tx.Tx.Commit(ctx)
}

// Joined lets what begins a transaction of its own take part in tx instead: it gets a savepoint,
// and sees what tx sees.
func Joined(tx pgx.Tx) Beginner { return joined{tx} }

type joined struct{ pgx.Tx }

// BeginTx implements Beginner.
func (j joined) BeginTx(ctx context.Context, _ pgx.TxOptions) (pgx.Tx, error) { return j.Begin(ctx) }

// ReadSnapshot runs f in a transaction that only reads, and sees one state of the database.
func ReadSnapshot(ctx context.Context, db Beginner, f func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db, pgx.TxOptions{BeginQuery: beginReport}, f)
}

// leaveSpoilt has a pool open new sessions when err says that those that it has may fail whatever
// is asked of them, and returns err. A session only reads for as long as it lives when its server
// became a standby, and when it was opened while default_transaction_read_only was set; and it
// keeps plans that were made for a table that has been changed since, of which each fails once, or
// each time. A pool hands out the session that was returned last: so one such session would fail
// all statements of a worker for as long as a pool keeps sessions, an hour by default. db that is
// no pool is left alone.
func leaveSpoilt(db any, err error) error {
	if pool, ok := db.(*pgxpool.Pool); ok && (SQLState(err) == stateReadOnly || FaultOf(err) == Stale) {
		pool.Reset()
	}
	return err
}

// OnlyReads reports whether err says that a statement of tx would write, and the session of tx only
// reads: it is one of a standby, or was opened while default_transaction_read_only was set. A
// transaction that only reads because a handler or a function has said so, in a session that may
// write, is not meant.
func OnlyReads(tx pgx.Tx, err error) bool {
	session := tx.Conn().PgConn()
	return SQLState(err) == stateReadOnly &&
		(session.ParameterStatus("in_hot_standby") == "on" ||
			session.ParameterStatus("default_transaction_read_only") == "on")
}
