package store

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// Beginner begins transactions: a pool or a connection.
type Beginner interface {
	BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error)
}

// A transaction names what Daybook's rules depend on, because the database and the role may have other defaults. Under a
// stricter isolation level a statement would read what was true when its transaction began, and not what the locks that it
// has taken since protect: a period that was closed meanwhile would still be open. The time limits are the worker's own.
//
// The text has no parameters, so it is sent in one round trip.
const (
	beginOwn    = `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0`
	beginShort  = beginOwn + `; SET LOCAL idle_in_transaction_session_timeout = '10s'`
	beginReport = `BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0`
)

// readCommitted begins a batch that is sent without a transaction around it, and so is one by itself. PostgreSQL documents
// it to be SET TRANSACTION, which warns when it is used there.
const readCommitted = `SET transaction_isolation = 'read committed'`

// Begin runs f in a transaction and commits it, or rolls it back when f fails. Every transaction of Daybook that writes begins
// here, or by Store.InTx.
func Begin(ctx context.Context, db Beginner, f func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db, pgx.TxOptions{BeginQuery: beginOwn}, f)
}

// InTx is Begin on the store's pool, in a session that ends when it idles in the transaction for ten seconds: a worker that
// sleeps keeps nothing locked. It fails with ErrSchemaMismatch while the schema is not the one that GuardSchema wants.
func (s *Store) InTx(ctx context.Context, f func(tx pgx.Tx) error) error {
	return s.InTxWaiting(ctx, 0, f)
}

// InTxWaiting is InTx for a transaction in which no statement waits longer than wait for a lock: then IsLockTimeout holds for
// its error. 0 is any time.
func (s *Store) InTxWaiting(ctx context.Context, wait time.Duration, f func(tx pgx.Tx) error) error {
	begin, err := s.ready(ctx)
	if err != nil {
		return err
	}
	if wait > 0 {
		begin += `; SET LOCAL lock_timeout = ` + strconv.FormatInt(max(wait.Milliseconds(), 1), 10)
	}
	return s.suspect(ctx, pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{BeginQuery: begin}, f))
}

// readSnapshot runs f in a transaction that only reads, and sees one state of the database.
func readSnapshot(ctx context.Context, db Beginner, f func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db, pgx.TxOptions{BeginQuery: beginReport}, f)
}
