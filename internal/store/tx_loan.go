package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Loan is the use of a shared transaction by one function. Its handles refuse all use once the loan
// has ended, so that a goroutine that goes on without the function cannot write into a neighbour.
type Loan struct {
	shared *Shared
	// ctx bounds the statements: the end of a function's own context would end the connection, which
	// is its neighbours' as well.
	ctx context.Context

	mu sync.Mutex
	// over: the loan has ended. busy: a statement is under way, or, if open, its results are being
	// read.
	over, busy, open bool
	freed            chan struct{}
	// fault is the first error that IsBlameless holds for, unshared what the function did that takes
	// its type out of sharing.
	fault    error
	unshared string
}

var (
	errReleased = errors.New("the transaction is over for this job: the function that was given to InTx has returned, " +
		"or has taken too long: use the transaction only in that function")
	errUnshared = errors.New("this cannot be done in a transaction that jobs share (Policy.SharedTransaction): the " +
		"function runs again, in a transaction of its own")
	errBusy = errors.New("the transaction is busy: the results of another statement are being read")
)

// Lend lends the transaction to the next function. ctx bounds all its statements.
func (s *Shared) Lend(ctx context.Context) *Loan {
	s.savepoints++
	return &Loan{shared: s, ctx: ctx}
}

// Tx is the function's handle.
func (l *Loan) Tx() pgx.Tx { return &lent{Tx: l.shared.tx, of: l} }

// LoanEnd is what is known of a function when its loan has ended.
type LoanEnd struct {
	// Fault is the first error of its statements that IsBlameless holds for; nil: there was none.
	Fault error
	// Unshared is what it did that cannot be done in a shared transaction; empty: nothing.
	Unshared string
}

// End ends the loan, when the function has returned or has taken too long. A statement that is
// under way is waited for; the transaction is spoilt when it does not end, and when the function
// left results open.
func (l *Loan) End(patience time.Duration) LoanEnd {
	if !l.close(patience) {
		l.shared.spoilt = true
		// The session's end interrupts the statement, whatever reads its results.
		_ = l.shared.tx.conn.PgConn().Conn().Close()
		l.close(patience)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	return LoanEnd{l.fault, l.unshared}
}

// close ends the loan, unless a statement is under way for longer than patience.
func (l *Loan) close(patience time.Duration) bool {
	l.mu.Lock()
	if !l.isBusy() {
		l.over = true
		l.mu.Unlock()
		return true
	}
	l.freed = make(chan struct{})
	freed := l.freed
	l.mu.Unlock()
	select {
	case <-freed:
		return true
	case <-time.After(patience):
		return false
	}
}

// isBusy reports whether the connection is in use. Results whose error closed them are not. It is
// called with mu locked.
func (l *Loan) isBusy() bool {
	if l.busy && l.open && !l.shared.tx.conn.PgConn().IsBusy() {
		l.busy, l.open = false, false
	}
	return l.busy
}

// enter begins a statement, or refuses it. The context that it returns has the values of ctx.
func (l *Loan) enter(ctx context.Context, sqls ...string) (context.Context, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over:
		return nil, errReleased
	case l.unshared != "":
		return nil, errUnshared
	case l.isBusy():
		return nil, errBusy
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	for _, sql := range sqls {
		word, savepoints := ofTransaction(sql)
		l.shared.savepoints += savepoints
		if word != "" {
			l.unshared = word
			return nil, errUnshared
		}
	}
	l.busy = true
	return valuesOf{l.ctx, ctx}, nil
}

// leave ends a statement that ended with err.
func (l *Loan) leave(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault == nil && IsBlameless(err) {
		l.fault = err
	}
	l.busy, l.open = false, false
	if l.freed != nil {
		l.over = true
		close(l.freed)
		l.freed = nil
	}
}

// reading says that the results of the statement are read by the function.
func (l *Loan) reading() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = true
}

// valuesOf is a context with the values of another one.
type valuesOf struct {
	context.Context
	values context.Context
}

// Value implements context.Context.
func (c valuesOf) Value(key any) any { return c.values.Value(key) }

// lent is a handle of a function: of its savepoint, or of one that it has begun itself.
type lent struct {
	pgx.Tx
	of    *Loan
	inner bool
}

func (t *lent) Begin(ctx context.Context) (pgx.Tx, error) {
	ctx, err := t.of.enter(ctx, "SAVEPOINT")
	if err != nil {
		return nil, err
	}
	savepoint, err := t.Tx.Begin(ctx)
	t.of.leave(err)
	if err != nil {
		return nil, err
	}
	return &lent{savepoint, t.of, true}, nil
}

func (t *lent) Commit(ctx context.Context) error { return t.finish(ctx, t.Tx.Commit) }

func (t *lent) Rollback(ctx context.Context) error { return t.finish(ctx, t.Tx.Rollback) }

// finish ends a savepoint of the function's own.
func (t *lent) finish(ctx context.Context, end func(context.Context) error) error {
	if !t.inner {
		return errLent
	}
	ctx, err := t.of.enter(ctx)
	if err != nil {
		return err
	}
	err = end(ctx)
	t.of.leave(err)
	return err
}

func (t *lent) Exec(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	ctx, err = t.of.enter(ctx, textsOf(sql, args)...)
	if err != nil {
		return tag, err
	}
	tag, err = t.Tx.Exec(ctx, sql, args...)
	t.of.leave(err)
	return tag, err
}

// textsOf are the texts that a call may send, or one that is refused where an argument writes it
// anew. pgx.NamedArgs only replace the names of the arguments.
func textsOf(sql string, args []any) []string {
	for _, arg := range args {
		switch arg.(type) {
		case pgx.NamedArgs, pgx.StrictNamedArgs, Args:
		case pgx.QueryRewriter:
			return []string{rewritten}
		}
	}
	return []string{sql}
}

func (t *lent) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	ctx, err := t.of.enter(ctx, sql)
	if err != nil {
		return nil, err
	}
	d, err := t.Tx.Prepare(ctx, name, sql)
	t.of.leave(err)
	return d, err
}

func (t *lent) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string,
	rows pgx.CopyFromSource,
) (int64, error) {
	ctx, err := t.of.enter(ctx)
	if err != nil {
		return 0, err
	}
	n, err := t.Tx.CopyFrom(ctx, table, columns, rows)
	t.of.leave(err)
	return n, err
}

func (t *lent) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	ctx, err := t.of.enter(ctx, textsOf(sql, args)...)
	if err != nil {
		rows, _ := pgx.FailedBatchResults(&pgx.Batch{}, err).Query()
		return rows, err
	}
	rows, err := t.Tx.Query(ctx, sql, args...)
	if err != nil {
		t.of.leave(err)
		return rows, err
	}
	t.of.reading()
	return &lentRows{Rows: rows, of: t.of}, nil
}

func (t *lent) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	ctx, err := t.of.enter(ctx, textsOf(sql, args)...)
	if err != nil {
		return failedRow{err}
	}
	row := t.Tx.QueryRow(ctx, sql, args...)
	t.of.reading()
	return lentRow{row, t.of}
}

func (t *lent) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	var sqls []string
	for _, q := range b.QueuedQueries {
		sqls = append(sqls, textsOf(q.SQL, q.Arguments)...)
	}
	ctx, err := t.of.enter(ctx, sqls...)
	if err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	results := t.Tx.SendBatch(ctx, b)
	t.of.reading()
	return &lentResults{BatchResults: results, of: t.of}
}

// Conn implements pgx.Tx. By its connection a function could end the transaction or listen, so
// nothing is shared any more: what the neighbours have done is undone, and they run again. It is
// nil when the loan has ended.
func (t *lent) Conn() *pgx.Conn {
	if !t.of.unshare("Conn()") {
		return nil
	}
	return t.of.shared.tx.conn
}

// LargeObjects implements pgx.Tx. They use the connection.
func (t *lent) LargeObjects() pgx.LargeObjects {
	if !t.of.unshare("LargeObjects()") {
		return ended.LargeObjects()
	}
	return t.Tx.LargeObjects()
}

// unshare undoes the shared transaction, and leaves the function one in which nothing can be
// written. It reports false when the loan has ended.
func (l *Loan) unshare(what string) bool {
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return false
	}
	if l.unshared == "" {
		l.unshared = what
	}
	l.shared.spoilt = true
	busy := l.isBusy()
	l.busy = true
	l.mu.Unlock()
	if busy {
		_ = l.shared.tx.conn.PgConn().Conn().Close()
		return true
	}
	_, err := l.shared.tx.Exec(l.ctx, spoil)
	l.leave(err)
	return true
}

// lentRows are rows of a lent transaction.
type lentRows struct {
	pgx.Rows
	of *Loan
	// within: they are a part of a batch's results.
	within, closed bool
}

func (r *lentRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.end()
	return false
}

func (r *lentRows) Close() {
	r.Rows.Close()
	r.end()
}

func (r *lentRows) end() {
	switch {
	case r.closed:
	case r.within:
		r.of.note(r.Rows.Err())
	default:
		r.of.leave(r.Rows.Err())
	}
	r.closed = true
}

// lentRow is a row of a lent transaction.
type lentRow struct {
	pgx.Row
	of *Loan
}

func (r lentRow) Scan(dest ...any) error {
	err := r.Row.Scan(dest...)
	r.of.leave(err)
	return err
}

// lentResults are the results of a batch of a lent transaction.
type lentResults struct {
	pgx.BatchResults
	of     *Loan
	closed bool
}

func (r *lentResults) Exec() (pgconn.CommandTag, error) {
	tag, err := r.BatchResults.Exec()
	r.of.note(err)
	return tag, err
}

func (r *lentResults) Query() (pgx.Rows, error) {
	rows, err := r.BatchResults.Query()
	r.of.note(err)
	return &lentRows{Rows: rows, of: r.of, within: true}, err
}

func (r *lentResults) Close() error {
	err := r.BatchResults.Close()
	if !r.closed {
		r.of.leave(err)
	}
	r.closed = true
	return err
}

// note takes in an error of a statement that goes on.
func (l *Loan) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault == nil && IsBlameless(err) {
		l.fault = err
	}
}
