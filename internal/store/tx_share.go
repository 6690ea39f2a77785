package store

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/failure"
)

// Shared is a transaction of InTx that the functions of several jobs share: they run one after
// another, each behind a savepoint, by a handle of its own (Loan). It belongs to one goroutine.
type Shared struct {
	tx *transaction
	// settings are what they were before the first function (shareSettings).
	settings string
	// savepoints counts those of the transaction that are known.
	savepoints int
	// spoilt: nothing of the transaction can be committed.
	spoilt bool
}

const (
	// share limits statements, and with them how long they wait for locks. A lock_timeout would be an
	// error that EXCEPTION WHEN OTHERS hides from us.
	share = planFreely + `, set_config('statement_timeout', $2, true)`
	// shareSettings are those that change what statements do, or how long they take: a function that
	// changes one changes it for those after it. To read all that there are takes six times as long.
	shareSettings = `
SELECT concat_ws('|', current_user, session_user, current_setting('search_path'), current_setting('row_security'), current_setting('session_replication_role'),
       current_setting('default_tablespace'), current_setting('temp_tablespaces'), current_setting('check_function_bodies'), current_setting('default_table_access_method'),
       current_setting('transaction_isolation'), current_setting('transaction_read_only'), current_setting('synchronous_commit'),
       current_setting('statement_timeout'), current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout'), current_setting('deadlock_timeout'),
       current_setting('transaction_timeout', true), -- PostgreSQL 17
       current_setting('TimeZone'), current_setting('DateStyle'), current_setting('IntervalStyle'), current_setting('lc_monetary'), current_setting('lc_numeric'),
       current_setting('lc_time'), current_setting('lc_messages'), current_setting('client_encoding'), current_setting('client_min_messages'),
       current_setting('bytea_output'), current_setting('extra_float_digits'), current_setting('xmloption'), current_setting('default_text_search_config'),
       current_setting('standard_conforming_strings'), current_setting('transform_null_equals'), current_setting('work_mem'), current_setting('temp_file_limit'),
       current_setting('enable_seqscan'), current_setting('enable_indexscan'), current_setting('enable_bitmapscan'), current_setting('enable_hashjoin'),
       current_setting('enable_mergejoin'), current_setting('enable_nestloop'), current_setting('enable_sort'), current_setting('jit'), current_setting('plan_cache_mode'))`
	// callSettings are also temporary tables and open cursors: a function of the database that a task
	// names may hide the error when it makes one of the same name.
	callSettings = `SELECT concat_ws('|', (SELECT count(*) FROM pg_class WHERE pg_my_temp_schema() <> 0 AND relnamespace = pg_my_temp_schema()),
       (SELECT count(*) FROM pg_cursors), (` + shareSettings + `))`
	unlimited  = `SELECT set_config('statement_timeout', '0', true)`
	nextShared = `SAVEPOINT daybook_job`
	// keepShared checks deferred constraints without a trace: they are checked again at the commit,
	// and those of the next function are deferred again as they are declared.
	keepShared = `SAVEPOINT daybook_check; SET CONSTRAINTS ALL IMMEDIATE; ROLLBACK TO SAVEPOINT daybook_check; ` +
		`RELEASE SAVEPOINT daybook_job; SAVEPOINT daybook_job`
	undoShared = `ROLLBACK TO SAVEPOINT daybook_job`
	// spoil undoes a transaction, and lets nothing be written by its connection.
	spoil = `ROLLBACK; BEGIN READ ONLY`
)

// Share has functions share tx, a transaction of InTx in which the rows of their jobs are locked: a
// rollback to a savepoint frees what was locked behind it. Each statement may take so long.
func Share(ctx context.Context, tx pgx.Tx, limit time.Duration) (*Shared, error) {
	t, own := tx.(*transaction)
	if !own {
		return nil, errors.New("the transaction was not begun by InTx")
	}
	s := &Shared{tx: t}
	batch := &pgx.Batch{}
	batch.Queue(share, nil, milliseconds(limit))
	batch.Queue(shareSettings).QueryRow(func(row pgx.Row) error { return row.Scan(&s.settings) })
	batch.Queue(nextShared)
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return nil, Wrap("share a transaction", err)
	}
	return s, nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Savepoints counts the savepoints that are known: not those of EXCEPTION blocks.
func (s *Shared) Savepoints() int { return s.savepoints }

// Keep keeps what the function has done whose loan has ended. With an error it is to be undone: it
// has left the transaction aborted or has ended it, or a deferred constraint refuses what it has
// written.
func (s *Shared) Keep(ctx context.Context) error {
	if s.spoilt {
		return ErrSpoilt
	}
	if err := Returned(s.tx); err != nil {
		s.spoilt = s.spoilt || IsEnded(err)
		return err
	}
	_, err := s.tx.Exec(ctx, keepShared)
	if SQLState(err) == stateNoSavepoint {
		s.spoilt = true
		return errEnded
	}
	return err
}

// ErrSpoilt says that nothing of a shared transaction can be committed, because of what one of its
// functions did.
var ErrSpoilt = failure.New(failure.DatabaseUnavailable, "a function has spoilt the transaction that jobs share")

// Undo undoes what the last function has done. With an error nothing can be committed.
func (s *Shared) Undo(ctx context.Context) error {
	if s.spoilt || s.tx.conn.IsClosed() {
		return ErrSpoilt
	}
	_, err := s.tx.Exec(ctx, undoShared)
	return err
}

// Unchanged reports whether the settings are what they were before the first function; if not,
// nothing can be committed. The limits are lifted, for the completion.
func (s *Shared) Unchanged(ctx context.Context) (bool, error) {
	var now string
	batch := &pgx.Batch{}
	batch.Queue(shareSettings).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
	batch.Queue(unlimited)
	err := s.tx.SendBatch(ctx, batch).Close()
	return now == s.settings, Wrap("end sharing a transaction", err)
}

// IsBlameless reports whether err may come from the neighbours in a shared transaction, from its
// limits or from the database: alone the same function may succeed.
func IsBlameless(err error) bool {
	switch SQLState(err) {
	case "": // the driver's
		return false
	case stateLockNotAvailable, stateCanceled, // it was cancelled: by statement_timeout, too
		"42P07", "42710", // a table or another object exists, such as a temporary table of the same name
		"42P03", // a cursor of the name is open
		"55006", // a deferred constraint or a cursor has a table in use
		"25001": // it is not for subtransactions
		return true
	}
	return FaultOf(err) != NoFault
}
