package queue_test

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// sqlDB is database/sql on the bundle's pool.
func (b *bundle) sqlDB() *sql.DB {
	b.t.Helper()
	db := stdlib.OpenDBFromPool(b.Pool)
	b.t.Cleanup(func() { assert.NoError(b.t, db.Close()) })
	return db
}

func (b *bundle) gormDB(c gorm.Config) *gorm.DB {
	b.t.Helper()
	c.Logger = logger.Discard
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: b.sqlDB()}), &c)
	require.NoError(b.t, err)
	if prepared, ok := db.ConnPool.(*gorm.PreparedStmtDB); ok {
		b.t.Cleanup(func() { stopCache(prepared) })
	}
	return db
}

// stopCache ends the goroutine of GORM's cache of prepared statements, which GORM 1.31 offers no
// way to end.
func stopCache(p *gorm.PreparedStmtDB) {
	done := reflect.ValueOf(p.Stmts).Elem().FieldByName("lru").Elem().FieldByName("done")
	close(*(*chan struct{})(done.Addr().UnsafePointer()))
}

// errRollback is what a caller returns who changed its mind.
var errRollback = errors.New("the caller changed its mind")

// inTx runs f in a transaction of some library, commits it when f returns nil, and rolls it back
// otherwise.
type inTx func(ctx context.Context, f func(queue.Querier) error) error

// transactions are all ways to be in a transaction.
func transactions(b *bundle) map[string]inTx {
	gormTx := func(c gorm.Config) inTx {
		return func(ctx context.Context, f func(queue.Querier) error) error {
			return b.gormDB(c).WithContext(ctx).Transaction(func(tx *gorm.DB) error { return f(queue.GORM(tx)) })
		}
	}
	finish := func(err error, commit, rollback func() error) error {
		if err != nil {
			return errors.Join(err, rollback())
		}
		return commit()
	}
	return map[string]inTx{
		"pgx.Tx": func(ctx context.Context, f func(queue.Querier) error) error {
			return pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error { return f(tx) })
		},
		"pgx savepoint": func(ctx context.Context, f func(queue.Querier) error) error {
			return pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error {
				return pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error { return f(inner) })
			})
		},
		"pgx connection after BEGIN": func(ctx context.Context, f func(queue.Querier) error) error {
			conn, err := b.Pool.Acquire(ctx)
			if err != nil {
				return err
			}
			defer conn.Release()
			run := func(s string) func() error {
				return func() error { _, err := conn.Exec(ctx, s); return err }
			}
			if err := run("BEGIN")(); err != nil {
				return err
			}
			return finish(f(conn.Conn()), run("COMMIT"), run("ROLLBACK"))
		},
		"sql.Tx": func(ctx context.Context, f func(queue.Querier) error) error {
			tx, err := b.sqlDB().BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			return finish(f(queue.SQL(tx)), tx.Commit, tx.Rollback)
		},
		"GORM":             gormTx(gorm.Config{}),
		"GORM PrepareStmt": gormTx(gorm.Config{PrepareStmt: true}),
		"GORM Begin": func(ctx context.Context, f func(queue.Querier) error) error {
			tx := b.gormDB(gorm.Config{}).WithContext(ctx).Begin()
			return finish(f(queue.GORM(tx)), func() error { return tx.Commit().Error },
				func() error { return tx.Rollback().Error })
		},
		"GORM savepoint": func(ctx context.Context, f func(queue.Querier) error) error {
			return b.gormDB(gorm.Config{}).WithContext(ctx).Transaction(func(tx *gorm.DB) error {
				return tx.Transaction(func(inner *gorm.DB) error { return f(queue.GORM(inner)) })
			})
		},
		"GORM with conditions and a session": func(ctx context.Context, f func(queue.Querier) error) error {
			return b.gormDB(gorm.Config{}).WithContext(ctx).Transaction(func(tx *gorm.DB) error {
				return f(queue.GORM(tx.Session(&gorm.Session{}).Model(&models.Document{}).Where("id = ?", "unknown")))
			})
		},
	}
}

// everything makes one request of each kind, for documents of their own.
func everything(ctx context.Context, q queue.Querier) error {
	if _, err := queue.EnqueueAccountingJob(ctx, q,
		queue.AccountingJob{
			OrgID: org, DocumentID: "one", Version: 3, ReadyAt: time.Now().Add(time.Hour),
			Priority: queue.High,
		}); err != nil {
		return err
	}
	// Twice, so that a prepared statement is used again and no rows are left open.
	for range 2 {
		rs, err := queue.EnqueueAccountingJobs(ctx, q, []queue.AccountingJob{
			{OrgID: org, DocumentID: "z", Version: 1, ReadyAt: time.Now().Add(time.Hour)},
			{OrgID: org, DocumentID: `ä "quoted", {braced} \ \'`, Version: 2, Priority: queue.Low},
			{OrgID: org, DocumentID: "one", Version: 4},
		})
		if err != nil {
			return err
		}
		if len(rs) != 3 || rs[0].JobID == "" || rs[0].JobID == rs[1].JobID {
			return errors.New("not one response for each job")
		}
	}
	if _, err := queue.MarkAccountingJobPending(ctx, q,
		queue.PendingAccountingJob{OrgID: org, DocumentID: "z", Delay: time.Minute}); err != nil {
		return err
	}
	if _, err := queue.CancelAccountingJob(ctx, q, queue.Document{OrgID: org, ID: "one"}); err != nil {
		return err
	}
	if _, err := queue.MarkDocumentReady(ctx, q, queue.Document{OrgID: org, ID: doc, Priority: queue.High}); err != nil {
		return err
	}
	if _, err := queue.MarkDocumentNotReady(ctx, q, queue.Document{OrgID: org, ID: doc}); err != nil {
		return err
	}
	_, err := queue.MarkDocumentDeleted(ctx, q, queue.Document{OrgID: org, ID: doc})
	return err
}

func (b *bundle) putDocument() {
	b.t.Helper()
	fixture.Tx(b.t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		_, err := ledgerdb.PutDocument(ctx, tx, fixture.Invoice(org, doc, 1000))
		require.NoError(b.t, err)
	})
}

func TestRequestsFollowTheCallersTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.putDocument()
	// One after the other: each leaves the database as it found it, or is cleared after.
	for name, tx := range transactions(b) {
		err := tx(t.Context(), func(q queue.Querier) error {
			if err := everything(t.Context(), q); err != nil {
				return err
			}
			return errRollback
		})
		require.ErrorIs(t, err, errRollback, name)
		require.Zero(t, b.jobs(), "%s: jobs after the rollback", name)
		require.Zero(t, fixture.Count(t, b.Pool, `SELECT accounting_ready_version FROM daybook.documents`),
			"%s: version after the rollback", name)

		require.NoError(t, tx(t.Context(), func(q queue.Querier) error { return everything(t.Context(), q) }), name)
		require.Equal(t, 4, b.jobs(), "%s: jobs after the commit", name)
		require.Equal(t, 1, fixture.Count(t, b.Pool,
			`SELECT count(*) FROM daybook.accounting_work_queue WHERE document_id = $1 AND version_hint = 2 AND priority = 3`,
			`ä "quoted", {braced} \ \'`), name)
		require.Equal(t, 3, fixture.Count(t, b.Pool, `SELECT accounting_ready_version FROM daybook.documents`), name)
		b.exec(`DELETE FROM daybook.accounting_work_queue`)
		b.exec(`UPDATE daybook.documents SET accounting_ready_version = 0, deleted_at = NULL`)
	}
}

// A document that domain code writes through GORM and the job that posts it are one transaction.
func TestGORMDocumentAndJobTogether(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := b.clock()
	d := fixture.Invoice(org, doc, 1000)
	d.CreatedAt, d.UpdatedAt = now, now
	err := b.gormDB(gorm.Config{}).WithContext(t.Context()).Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(d).Error; err != nil {
			return err
		}
		m, err := queue.MarkDocumentReady(t.Context(), queue.GORM(tx), queue.Document{OrgID: org, ID: doc})
		assert.EqualValues(t, 1, m.Version)
		assert.Equal(t, queue.Enqueued, m.Result)
		return err
	})
	require.NoError(t, err)
	assert.EqualValues(t, 1, b.job().VersionHint)
}

// handles are all ways to be in no transaction.
func handles(t *testing.T, b *bundle) map[string]queue.Querier {
	t.Helper()
	db := b.sqlDB()
	sqlConn, err := db.Conn(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, sqlConn.Close()) })
	poolConn, err := b.Pool.Acquire(t.Context())
	require.NoError(t, err)
	t.Cleanup(poolConn.Release)
	return map[string]queue.Querier{
		"pgxpool.Pool": b.Pool,
		"pgxpool.Conn": poolConn,
		"pgx.Conn":     poolConn.Conn(),
		"sql.DB":       queue.SQL(db),
		"sql.Conn":     queue.SQL(sqlConn),
	}
}

func TestRequestsWithoutATransactionCommitByThemselves(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, q := range handles(t, b) {
		_, err := queue.EnqueueAccountingJob(t.Context(), q, queue.AccountingJob{OrgID: org, DocumentID: "one", Version: 1})
		require.NoError(t, err, name)
		_, err = queue.EnqueueAccountingJobs(t.Context(), q,
			[]queue.AccountingJob{{OrgID: org, DocumentID: "two", Version: 1}, {OrgID: org, DocumentID: "three", Version: 1}})
		require.NoError(t, err, name)
		require.Equal(t, 3, b.jobs(), name)
		b.exec(`DELETE FROM daybook.accounting_work_queue`)
	}
}

func TestMarkingADocumentNeedsATransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.putDocument()
	qs := handles(t, b)
	qs["GORM"] = queue.GORM(b.gormDB(gorm.Config{}))
	for name, q := range qs {
		for _, mark := range []func(context.Context, queue.Querier, queue.Document) (queue.Marked, error){
			queue.MarkDocumentReady, queue.MarkDocumentNotReady, queue.MarkDocumentDeleted,
		} {
			_, err := mark(t.Context(), q, queue.Document{OrgID: org, ID: doc})
			require.ErrorIs(t, err, queue.ErrNoTransaction, name)
			require.ErrorContains(t, err, "pass the", "%s: the message says what to do", name)
		}
	}
	assert.Zero(t, b.jobs())
}

func TestGORMOutsideOfATransactionIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	db := b.gormDB(gorm.Config{})
	var conn *gorm.DB
	require.NoError(t, db.Connection(func(tx *gorm.DB) error { conn = tx; return nil }))
	for name, handle := range map[string]*gorm.DB{
		"plain":       db,
		"session":     db.Session(&gorm.Session{}),
		"context":     db.WithContext(t.Context()),
		"PrepareStmt": b.gormDB(gorm.Config{PrepareStmt: true}),
		"connection":  conn,
		"nil":         nil,
		"zero":        {},
	} {
		q := queue.GORM(handle)
		for what, ask := range map[string]func() error{
			"EnqueueAccountingJob": func() error { _, err := enqueue(1)(t.Context(), q); return err },
			"EnqueueAccountingJobs": func() error {
				_, err := queue.EnqueueAccountingJobs(t.Context(), q, []queue.AccountingJob{{OrgID: org, DocumentID: doc}})
				return err
			},
			"MarkAccountingJobPending": func() error { _, err := markPending(0)(t.Context(), q); return err },
			"CancelAccountingJob":      func() error { _, err := cancel(t.Context(), q); return err },
		} {
			err := ask()
			require.ErrorIs(t, err, queue.ErrNoTransaction, "%s %s", name, what)
			if name != "nil" && name != "zero" {
				require.ErrorContains(t, err, "pass the tx of db.Transaction", "%s %s", name, what)
			}
		}
	}
	assert.Zero(t, b.jobs())
}

// A transaction that has failed says so, instead of "not in a transaction".
func TestGORMTransactionThatHasFailed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	err := b.gormDB(gorm.Config{}).WithContext(t.Context()).Transaction(func(tx *gorm.DB) error {
		failed := tx.Exec(`SELECT * FROM nowhere`)
		_, err := enqueue(1)(t.Context(), queue.GORM(failed))
		return err
	})
	require.ErrorContains(t, err, "failed already")
	assert.NotErrorIs(t, err, queue.ErrNoTransaction)
}

// Poolers such as PgBouncer are used with other ways to send a statement.
func TestEachWayToSendAStatement(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.putDocument()
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		config, err := pgx.ParseConfig(b.URL)
		require.NoError(t, err)
		config.DefaultQueryExecMode = mode
		conn, err := pgx.ConnectConfig(t.Context(), config)
		require.NoError(t, err)
		tx, err := conn.Begin(t.Context())
		require.NoError(t, err)
		assert.NoError(t, everything(t.Context(), tx), mode.String())
		require.NoError(t, tx.Rollback(t.Context()))
		require.NoError(t, conn.Close(t.Context()))
	}
}
