package store_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

func state(code string) error { return &pgconn.PgError{Code: code} }

// An outage is no attempt. What is one job's own fault must not be taken for it, or it would be
// tried for ever.
func TestIsOutage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{"none", nil, false},
		{"connection exception", state("08000"), true},
		{"connection failure", state("08006"), true},
		{"administrator's shutdown", state("57P01"), true},
		{"crash shutdown", state("57P02"), true},
		{"starting up", state("57P03"), true},
		{"database dropped", state("57P04"), true},
		{"idle session ended", state("57P05"), true},
		{"too many connections", state("53300"), true},
		{"disk full", state("53100"), true},
		{"out of memory", state("53200"), true},
		{"input/output error", state("58030"), true},
		{"read-only: a standby", state("25006"), true},
		{"idle in transaction", state("25P03"), true},
		{"serialization failure", state("40001"), true},
		{"deadlock", state("40P01"), true},
		{"a changed plan", &pgconn.PgError{Code: "0A000", Message: "cached plan must not change result type"}, true},
		{
			"a changed plan, in another language",
			&pgconn.PgError{
				Code: "0A000", Message: "gecachter Plan darf den Ergebnistyp nicht ändern",
				Routine: "RevalidateCachedQuery",
			}, true,
		},
		{"a statement that a pooler has lost", state("26000"), true},
		{"a statement that a pooler has twice", state("42P05"), true},
		{
			"columns that the driver remembers",
			&pgconn.PgError{Code: "08P01", Message: "bind message has 4 result formats but query has 5 columns"}, true,
		},
		{"the row of a function's plan", &pgconn.PgError{Code: "42804", Routine: "plpgsql_param_eval_recfield"}, true},
		{"a dropped type", &pgconn.PgError{Code: "XX000", Message: "cache lookup failed for type 17448"}, true},
		{"a dropped index", &pgconn.PgError{Code: "XX000", Message: "could not open relation with OID 17448"}, true},
		{"a row of the catalogue", &pgconn.PgError{Code: "XX000", Message: "tuple concurrently updated"}, true},

		{"statement timeout", state("57014"), false},
		{"unique violation", state("23505"), false},
		{"check violation", state("23514"), false},
		{"not a number", state("22P02"), false},
		{"division by zero", state("22012"), false},
		{"no such table", state("42P01"), false},
		{"no permission", state("42501"), false},
		{"transaction is aborted", state("25P02"), false},
		{
			"not supported", &pgconn.PgError{Code: "0A000", Message: "cannot insert into view", Routine: "rewriteTargetView"},
			false,
		},
		{"another type", &pgconn.PgError{Code: "42804", Routine: "transformAssignedExpr"}, false},
		{"a snapshot that is too old", state("72000"), true},
		{"unbalanced", state("DB001"), false},
		{"unknown account", state("DB003"), false},
		{"a bug in the database", state("XX000"), false},
		{"the caller's own", errors.New("the rate service answered 500"), false},
		{"no rows", pgx.ErrNoRows, false},
		{"a full disk of this machine", &os.PathError{Op: "write", Path: "export.csv", Err: syscall.ENOSPC}, false},

		{"end of file", io.EOF, true},
		{"unexpected end of file", io.ErrUnexpectedEOF, true},
		{"closed", net.ErrClosed, true},
		{"connection refused", &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, true},
		{"connection reset", &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, true},
		{"connection lost, by package sql", driver.ErrBadConn, true},
		{"cancelled", context.Canceled, true},
		{"deadline", context.DeadlineExceeded, true},
		{"transaction closed", pgx.ErrTxClosed, true},
		{"lease lost", store.ErrLeaseLost, true},
	} {
		assert.Equal(t, c.want, store.IsTransient(c.err), c.name)
		if c.err != nil {
			assert.Equal(t, c.want, store.IsTransient(fmt.Errorf("complete: %w", c.err)), "%s, wrapped", c.name)
		}
	}
}

// What the driver really says when a server is unavailable.
func TestOutagesOfARealServer(t *testing.T) {
	t.Parallel()
	b := setup(t)

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	_, err = pgx.Connect(t.Context(), "postgres://daybook@"+address+"/daybook")
	assert.True(t, store.IsTransient(err), "connection refused: %v", err)

	pool, err := pgxpool.New(t.Context(), b.URL)
	require.NoError(t, err)
	pool.Close()
	_, err = store.New(pool).NextFence(t.Context())
	require.Error(t, err)

	conn, err := pgx.Connect(t.Context(), b.URL)
	require.NoError(t, err)
	b.exec(`SELECT pg_terminate_backend($1)`, conn.PgConn().PID())
	require.Eventually(t, func() bool {
		_, err = conn.Exec(t.Context(), `SELECT 1`)
		return err != nil
	}, pgtest.Patience, time.Millisecond)
	assert.True(t, store.IsTransient(err), "session ended: %v", err)
	_, err = conn.Exec(t.Context(), `SELECT 1`)
	assert.True(t, store.IsTransient(err), "connection closed: %v", err)

	_, err = b.Pool.Exec(t.Context(), `SELECT 1 / 0`)
	require.Error(t, err)
	assert.False(t, store.IsTransient(err), "a statement's own fault: %v", err)

	_, err = b.Pool.Exec(t.Context(), `SET statement_timeout = '20ms'; SELECT pg_sleep(10)`)
	require.Error(t, err)
	assert.False(t, store.IsTransient(err), "one slow statement: %v", err)
}
