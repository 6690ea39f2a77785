package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/internal/store"
)

// Querier is what a request runs on. A pgx.Tx, *pgx.Conn and *pgxpool.Pool satisfy it as they are;
// SQL and GORM make one of a database/sql or GORM transaction. On a pool or a connection without a
// transaction a request commits by itself.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// SQLQuerier is what SQL needs: *sql.Tx, and for requests that commit by themselves *sql.DB and
// *sql.Conn.
type SQLQuerier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// SQL returns a Querier on a database/sql handle that was opened with pgx's stdlib driver.
func SQL(q SQLQuerier) Querier { return sqlAdapter{q} }

// GORM returns a Querier on a GORM transaction: the handle that db.Transaction passes to its
// function, or that db.Begin returns. With any other GORM handle every request returns
// ErrNoTransaction, because it would enqueue outside of the transaction that writes the document,
// which is rarely meant and hard to notice.
//
// In a dry run (gorm.Session.DryRun, ToSQL) GORM writes nothing, also when it begins a transaction
// and calls the hooks of a model. Then every request does nothing, and returns ErrDryRun. A hook
// that may be called so returns nil when tx.DryRun is set, as it must where it enqueues before the
// row is written: GORM makes no statement after an error. With SkipHooks no hook is called, and
// what only a hook enqueues is not enqueued.
func GORM(tx *gorm.DB) Querier {
	if tx == nil || tx.Statement == nil {
		return refused{fmt.Errorf("%w: the GORM handle is nil", ErrNoTransaction)}
	}
	if tx.Error != nil {
		return refused{fmt.Errorf("the GORM transaction has failed already: %w", tx.Error)}
	}
	if tx.DryRun {
		return refused{ErrDryRun}
	}
	if ctx := tx.Statement.Context; ctx != nil && ctx.Err() != nil {
		return refused{fmt.Errorf("the context of the GORM handle has ended: %w", context.Cause(ctx))}
	}
	if _, ok := tx.Statement.ConnPool.(gorm.TxCommitter); !ok {
		return refused{fmt.Errorf("%w: this GORM handle is not in one; pass the tx of db.Transaction(func(tx *gorm.DB) "+
			"error { … })", ErrNoTransaction)}
	}
	return sqlAdapter{tx.Statement.ConnPool}
}

// check returns ErrNoQuerier for a Querier that is nil, or holds a nil handle, and what is wrong
// with one that refuses.
func check(q Querier) error {
	switch h := q.(type) {
	case nil:
		return ErrNoQuerier
	case sqlAdapter:
		if store.IsNil(h.q) {
			return ErrNoQuerier
		}
	case refused:
		return h.err
	default:
		if store.IsNil(q) {
			return ErrNoQuerier
		}
	}
	return nil
}

// inTransaction returns ErrNoTransaction when a request would commit by itself.
func inTransaction(q Querier) error {
	switch h := q.(type) {
	case *pgxpool.Pool:
		return fmt.Errorf("%w: a pool commits each statement by itself; pass the pgx.Tx that writes the document",
			ErrNoTransaction)
	case *pgx.Conn:
		if h.PgConn().TxStatus() == 'I' {
			return fmt.Errorf("%w: the connection is in none; pass the pgx.Tx that writes the document", ErrNoTransaction)
		}
	case *pgxpool.Conn:
		if h.Conn().PgConn().TxStatus() == 'I' {
			return fmt.Errorf("%w: the connection is in none; pass the pgx.Tx that writes the document", ErrNoTransaction)
		}
	case sqlAdapter:
		switch h.q.(type) {
		case *sql.DB, *sql.Conn:
			return fmt.Errorf("%w: %T commits each statement by itself; pass the *sql.Tx that writes the document",
				ErrNoTransaction, h.q)
		}
	case refused:
		return h.err
	}
	return nil
}

// sqlAdapter speaks pgx's interface over database/sql.
type sqlAdapter struct{ q SQLQuerier }

// QueryRow implements Querier.
func (a sqlAdapter) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	rows, err := a.Query(ctx, query, args...)
	return sqlRow{rows, err}
}

// Query implements Querier.
func (a sqlAdapter) Query(ctx context.Context, query string, args ...any) (pgx.Rows, error) {
	rows, err := a.q.QueryContext(ctx, query, args...) //nolint:rowserrcheck // the caller, who reads the rows, checks
	if err != nil {
		return nil, err
	}
	return &sqlRows{Rows: rows}, nil
}

type sqlRow struct {
	rows pgx.Rows
	err  error
}

// Scan implements pgx.Row.
func (r sqlRow) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}

// errNotHere: the rest of pgx.Rows has no counterpart in database/sql, and no request uses it.
var errNotHere = errors.New("not available over database/sql")

// sqlRows gives *sql.Rows the shape of pgx.Rows.
type sqlRows struct {
	*sql.Rows
	closeErr error
}

// Close implements pgx.Rows.
func (r *sqlRows) Close() { r.closeErr = errors.Join(r.closeErr, r.Rows.Close()) }

// Next implements pgx.Rows; like pgx's, it closes the rows after the last.
func (r *sqlRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

// Err implements pgx.Rows.
func (r *sqlRows) Err() error { return errors.Join(r.Rows.Err(), r.closeErr) }

// CommandTag implements pgx.Rows.
func (r *sqlRows) CommandTag() pgconn.CommandTag { return pgconn.CommandTag{} }

// FieldDescriptions implements pgx.Rows.
func (r *sqlRows) FieldDescriptions() []pgconn.FieldDescription { return nil }

// Values implements pgx.Rows.
func (r *sqlRows) Values() ([]any, error) { return nil, errNotHere }

// RawValues implements pgx.Rows.
func (r *sqlRows) RawValues() [][]byte { return nil }

// TypeMap implements pgx.Rows.
func (r *sqlRows) TypeMap() *pgtype.Map { return nil }

// Conn implements pgx.Rows.
func (r *sqlRows) Conn() *pgx.Conn { return nil }

// refused answers every request with the same error.
type refused struct{ err error }

// QueryRow implements Querier.
func (r refused) QueryRow(context.Context, string, ...any) pgx.Row { return sqlRow{err: r.err} }

// Query implements Querier.
func (r refused) Query(context.Context, string, ...any) (pgx.Rows, error) { return nil, r.err }
