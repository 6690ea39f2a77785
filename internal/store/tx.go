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
// These texts have no parameters, so each is sent in one round trip.
const (
	beginOwn    = `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0`
	beginReport = `BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0`
)

// limitShort gives a transaction of the worker's queues its time limits; the argument is that of locks, in milliseconds. It is sent with
// BEGIN as a batch of prepared statements: of a text of several statements each would be planned anew each time.
const limitShort = `SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', $1, true), set_config('idle_in_transaction_session_timeout', '10s', true)`

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
	require, err := s.ready(ctx)
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	batch.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	limit := int64(0)
	if wait > 0 {
		limit = max(wait.Milliseconds(), 1)
	}
	batch.Queue(limitShort, strconv.FormatInt(limit, 10))
	if require != "" {
		batch.Queue(require)
	}
	return s.suspect(ctx, s.transact(ctx, batch, f))
}

// transact runs f in a transaction that a batch begins. It commits it, unless f has (CompleteAndCommit), or rolls it back when f fails.
func (s *Store) transact(ctx context.Context, begin *pgx.Batch, f func(tx pgx.Tx) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	beginning := conn.SendBatch(ctx, begin)
	tx := &transaction{Tx: beginning.Tx(), conn: conn.Conn()}
	// Without effect when the transaction has ended; otherwise it has failed, or f has ended its goroutine.
	defer func() { _ = tx.Rollback(ctx) }()
	if err := beginning.Close(); err != nil {
		return err
	}
	if err := f(tx); err != nil || tx.committed {
		return err
	}
	return tx.Commit(ctx)
}

// transaction is one of InTx. The batch that completes jobs in it may commit it as well, which saves a round trip.
type transaction struct {
	pgx.Tx
	conn      *pgx.Conn
	committed bool
	// nested are its savepoints' handles.
	nested []*transaction
}

// ended is a transaction that has ended: its methods fail with pgx.ErrTxClosed.
var ended = func() pgx.Tx {
	batch := &pgx.Batch{}
	batch.BeginTx(pgx.TxOptions{})
	return pgx.FailedBatchResults(batch, pgx.ErrTxClosed).Tx()
}()

// Begin implements pgx.Tx.
func (t *transaction) Begin(ctx context.Context) (pgx.Tx, error) {
	savepoint, err := t.Tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	nested := &transaction{Tx: savepoint, conn: t.conn}
	t.nested = append(t.nested, nested)
	return nested, nil
}

// Conn implements pgx.Tx. It is also the connection of a transaction that has ended, so that a caller can ask whether it is closed.
func (t *transaction) Conn() *pgx.Conn { return t.conn }

// end has the transaction and its savepoints refuse all that is still sent through them: the connection may be another's.
func (t *transaction) end() {
	t.Tx = ended
	for _, nested := range t.nested {
		nested.end()
	}
}

// sendAndCommit sends a batch and COMMIT in one round trip. What the batch is to prevent must be an error of one of its statements:
// then COMMIT is not reached.
func (t *transaction) sendAndCommit(ctx context.Context, batch *pgx.Batch) error {
	batch.Queue(`COMMIT`)
	err := t.SendBatch(ctx, batch).Close()
	if t.conn.IsClosed() || t.conn.PgConn().TxStatus() == 'I' {
		t.committed = err == nil
		t.end()
	}
	return err
}

// readSnapshot runs f in a transaction that only reads, and sees one state of the database.
func ReadSnapshot(ctx context.Context, db Beginner, f func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db, pgx.TxOptions{BeginQuery: beginReport}, f)
}
