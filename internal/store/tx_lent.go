package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

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
