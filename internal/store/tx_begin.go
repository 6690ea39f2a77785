package store

import (
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// transaction is one of InTx. It begins with its first statement, in the same round trip if that is
// a batch, or a statement with arguments that Exec or QueryRow sends. The batch that completes jobs
// in it may commit it as well, which saves another one.
type transaction struct {
	// Tx is nil until the transaction has begun, or failed to.
	pgx.Tx
	conn *pgx.Conn
	// limit is how long a statement waits for a lock, in milliseconds; require is ready's.
	limit, require string
	committed      bool
	// notBegun is why BEGIN, or what is to be done with it, has failed.
	notBegun error
	// savepoint: it is nested in another one.
	savepoint bool
	// planned: the session plans by key since the last batch of the store's own, and nothing else was
	// sent meanwhile. planning: the next batch is one of those.
	planned, planning bool
	// nested are its savepoints' handles.
	nested []*transaction
}

// ended is a transaction that has ended: its methods fail with pgx.ErrTxClosed.
var ended = func() pgx.Tx {
	batch := &pgx.Batch{}
	batch.BeginTx(pgx.TxOptions{})
	return pgx.FailedBatchResults(batch, pgx.ErrTxClosed).Tx()
}()

// BeginNow begins a transaction of InTx that has not begun, by itself: when the connection is lost
// with a later statement, that may be the statement's doing.
func BeginNow(ctx context.Context, tx pgx.Tx) error {
	if t, own := tx.(*transaction); own {
		return t.begin(ctx)
	}
	return nil
}

// HasBegun reports whether a transaction of InTx has begun, and why it could not, which is not the
// doing of the first statement that was sent in it.
func HasBegun(tx pgx.Tx) (bool, error) {
	t, own := tx.(*transaction)
	if !own {
		return true, nil
	}
	return t.Tx != nil && t.notBegun == nil, t.notBegun
}

// queuePlan has the statements that follow in a batch planned by key. That costs nothing where a
// transaction of InTx begins with the batch, or where its last batch was planned so.
func queuePlan(tx batcher, batch *pgx.Batch) {
	t, own := tx.(*transaction)
	if !own || t.Tx != nil && !t.planned {
		batch.Queue(planByKey)
	}
	if own {
		t.planning = true
	}
}

// beginning is the batch that begins the transaction.
func (t *transaction) beginning() *pgx.Batch {
	batch := &pgx.Batch{}
	batch.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	stmt := limitShort
	if t.planned {
		stmt += `, ` + byKeySettings
	}
	if t.require != "" {
		stmt += `, ` + t.require
	}
	batch.Queue(stmt, t.limit)
	return batch
}

// begin begins the transaction by itself, if it has not begun. What is sent next is not planned by
// key.
func (t *transaction) begin(ctx context.Context) error {
	t.planned = false
	if t.Tx != nil {
		return nil
	}
	results := t.conn.SendBatch(ctx, t.beginning())
	t.Tx = results.Tx()
	t.notBegun = results.Close()
	return t.notBegun
}

// beginWith sends the first statement, unless there was one, with what begins the transaction. It
// returns nil when the statement is to be sent by itself: without arguments it may be a text of
// several, which a batch does not take, and where locks are waited for with a limit it may wait to
// be prepared, which is done before.
func (t *transaction) beginWith(ctx context.Context, sql string, args []any) pgx.BatchResults {
	if t.Tx != nil || len(args) == 0 || t.limit != "0" {
		return nil
	}
	switch args[0].(type) {
	case pgx.QueryExecMode, pgx.QueryResultFormats, pgx.QueryResultFormatsByOID:
		return nil
	}
	batch := &pgx.Batch{}
	batch.Queue(sql, args...)
	return t.SendBatch(ctx, batch)
}

// unsent reports whether beginWith has failed before anything was sent: a statement that cannot be
// prepared is to fail in the transaction.
func (t *transaction) unsent(err error) bool {
	if err == nil || t.conn.IsClosed() || t.conn.PgConn().TxStatus() != 'I' {
		return false
	}
	t.Tx, t.notBegun = nil, nil
	return true
}

func (t *transaction) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	t.planned, t.planning = t.planning, false
	if t.Tx != nil {
		return t.Tx.SendBatch(ctx, b)
	}
	batch := t.beginning()
	skip := batch.Len()
	batch.QueuedQueries = append(batch.QueuedQueries, b.QueuedQueries...)
	results := t.conn.SendBatch(ctx, batch)
	t.Tx = results.Tx()
	return &laterResults{BatchResults: results, of: t, skip: skip}
}

// sendAndCommit sends a batch and COMMIT in one round trip. What the batch is to prevent must be an
// error of one of its statements: then COMMIT is not reached.
func (t *transaction) sendAndCommit(ctx context.Context, batch *pgx.Batch) error {
	batch.Queue(`COMMIT`)
	err := t.SendBatch(ctx, batch).Close()
	if t.conn.IsClosed() || t.conn.PgConn().TxStatus() == 'I' {
		t.committed = err == nil
		t.end()
	}
	return err
}

// end has the transaction and its savepoints refuse all that is still sent through them: the
// connection may be another's.
func (t *transaction) end() {
	t.Tx = ended
	for _, nested := range t.nested {
		nested.end()
	}
}

func (t *transaction) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	savepoint, err := t.Tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	nested := &transaction{Tx: savepoint, conn: t.conn, savepoint: true}
	t.nested = append(t.nested, nested)
	return nested, nil
}

// errLent refuses to end a transaction that is only lent.
var errLent = errors.New("the transaction is Daybook's, which commits it together with the completion of the job: " +
	"return nil to have it committed, or an error to have it undone")

// Commit implements pgx.Tx. It is for savepoints: a transaction of InTx is ended by InTx alone,
// because it is lent to handlers, hooks and sources.
func (t *transaction) Commit(ctx context.Context) error {
	if !t.savepoint {
		return errLent
	}
	return t.Tx.Commit(ctx)
}

// Rollback implements pgx.Tx, for savepoints, as Commit does.
func (t *transaction) Rollback(ctx context.Context) error {
	if !t.savepoint {
		return errLent
	}
	return t.Tx.Rollback(ctx)
}

// errEnded: code that was lent a transaction has ended it by a statement of its own. What it has
// written may be kept.
var errEnded = errors.New("the transaction, which is Daybook's, was ended by a statement (COMMIT, ROLLBACK), so that " +
	"what was written before may be kept without the completion of the job: " +
	"return nil, or an error, instead")

// errAborted: a statement of code that was lent a transaction has failed, and the code went on.
var errAborted = errors.New("a statement of the transaction failed, and its error was not returned: return it, or " +
	"run such a statement in a savepoint (tx.Begin)")

// IsEnded reports whether code that was lent a transaction has ended it, so that what it has
// written may be kept.
func IsEnded(err error) bool { return errors.Is(err, errEnded) }

// Returned says whether a transaction of InTx that was lent can still be committed: an error, which
// IsEnded tells apart, if not. Of a lost connection it says nothing.
func Returned(tx pgx.Tx) error {
	t, own := tx.(*transaction)
	if !own || t.Tx == nil || t.conn.IsClosed() {
		return nil
	}
	switch t.conn.PgConn().TxStatus() {
	case 'I':
		return errEnded
	case 'E':
		return errAborted
	}
	return nil
}

// Conn implements pgx.Tx. The transaction begins, because the caller may send something by the
// connection. It is also the connection of a transaction that has ended, so that a caller can ask
// whether it is closed.
func (t *transaction) Conn() *pgx.Conn {
	ctx, cancel := context.WithTimeout(context.Background(), statementLimit)
	defer cancel()
	_ = t.begin(ctx)
	return t.conn
}

func (t *transaction) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if results := t.beginWith(ctx, sql, args); results != nil {
		tag, err := results.Exec()
		if err = cmp.Or(err, results.Close()); !t.unsent(err) {
			return tag, err
		}
	}
	if err := t.begin(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return t.Tx.Exec(ctx, sql, args...)
}

func (t *transaction) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	began := t.begin(ctx)
	rows, err := t.Tx.Query(ctx, sql, args...)
	if began != nil {
		err = began
	}
	return rows, err
}

func (t *transaction) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if results := t.beginWith(ctx, sql, args); results != nil {
		return firstRow{t, ctx, results, sql, args}
	}
	return t.queryRow(ctx, sql, args)
}

func (t *transaction) queryRow(ctx context.Context, sql string, args []any) pgx.Row {
	if err := t.begin(ctx); err != nil {
		return failedRow{err}
	}
	return t.Tx.QueryRow(ctx, sql, args...)
}

func (t *transaction) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string,
	rows pgx.CopyFromSource,
) (int64, error) {
	if err := t.begin(ctx); err != nil {
		return 0, err
	}
	return t.Tx.CopyFrom(ctx, table, columns, rows)
}

func (t *transaction) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	return t.Tx.Prepare(ctx, name, sql)
}

// LargeObjects implements pgx.Tx. Their methods fail in a transaction that could not begin.
func (t *transaction) LargeObjects() pgx.LargeObjects {
	_ = t.begin(context.Background())
	return t.Tx.LargeObjects()
}

// firstRow is the row of a statement that was sent with what begins the transaction.
type firstRow struct {
	of      *transaction
	ctx     context.Context
	results pgx.BatchResults
	sql     string
	args    []any
}

func (r firstRow) Scan(dest ...any) error {
	err := r.results.QueryRow().Scan(dest...)
	if closed := r.results.Close(); !r.of.unsent(cmp.Or(closed, err)) {
		return err
	}
	return r.of.queryRow(r.ctx, r.sql, r.args).Scan(dest...)
}

// laterResults are the results of a batch behind those of the statements that begin its
// transaction.
type laterResults struct {
	pgx.BatchResults
	of   *transaction
	skip int
}

// pass reads the results of what begins the transaction.
func (r *laterResults) pass() (err error) {
	for ; r.skip > 0 && err == nil; r.skip-- {
		_, err = r.BatchResults.Exec()
	}
	if err != nil {
		r.of.notBegun = err
	}
	return err
}

func (r *laterResults) Exec() (pgconn.CommandTag, error) {
	if err := r.pass(); err != nil {
		return pgconn.CommandTag{}, err
	}
	return r.BatchResults.Exec()
}

func (r *laterResults) Query() (pgx.Rows, error) {
	passed := r.pass()
	rows, err := r.BatchResults.Query()
	return rows, errors.Join(passed, err)
}

func (r *laterResults) QueryRow() pgx.Row {
	if err := r.pass(); err != nil {
		return failedRow{err}
	}
	return r.BatchResults.QueryRow()
}
