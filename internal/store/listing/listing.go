package listing

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// Listing reads for the command line and the HTTP API: lists, searches and single rows. It locks
// and changes nothing.
type Listing struct {
	pool *pgxpool.Pool
	sql  *sql.DB
	db   *gorm.DB
	// scan is how many rows a search reads at most for a page: MaxScan, and less in tests.
	scan int
}

// New returns a listing on pool, which stays the caller's to close. Close the listing first.
func New(pool *pgxpool.Pool) (*Listing, error) {
	handle := stdlib.OpenDBFromPool(pool)
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: handle}), &gorm.Config{
		Logger: logger.Discard, SkipDefaultTransaction: true, DisableAutomaticPing: true,
	})
	if err != nil {
		return nil, errors.Join(store.Wrap("open the listing", err), handle.Close())
	}
	return &Listing{pool: pool, sql: handle, db: db, scan: MaxScan}, nil
}

// Close ends the listing; the pool stays open.
func (l *Listing) Close() error { return l.sql.Close() }

// where adds a condition on a column, unless the value is empty: that means any.
func where[T ~string](q *gorm.DB, condition string, value T) *gorm.DB {
	if value == "" {
		return q
	}
	return q.Where(condition, value)
}

// find reads the rows of a query; doing says in an error what was being done.
func find[T any](doing string, q *gorm.DB) ([]T, error) {
	rows := []T{}
	err := q.Find(&rows).Error
	return rows, store.Wrap(doing, err)
}

// one reads the row of a query, or returns missing when there is none.
func one[T any](doing string, q *gorm.DB, missing error) (T, error) {
	row, err := atMostOne[T](q)
	if row == nil {
		return *new(T), cmp.Or(store.Wrap(doing, err), missing)
	}
	return *row, nil
}

// atMostOne reads the row of a query; nil: there is none.
func atMostOne[T any](q *gorm.DB) (*T, error) {
	row := new(T)
	switch err := q.Take(row).Error; {
	case errors.Is(err, gorm.ErrRecordNotFound):
		return nil, nil //nolint:nilnil // there is none
	case err != nil:
		return nil, err
	}
	return row, nil
}

// HistoryPage says which part of the history of a job to read, which may be long.
type HistoryPage struct {
	// Before is the id of an attempt: older ones are read; 0: the newest.
	Before int64
	// Limit is how many are read at most; default DefaultLimit.
	Limit int
}

// history are the attempts of a page, the newest first.
func history(db *gorm.DB, jobID string, p HistoryPage) *gorm.DB {
	q := db.Where("job_id = ?", jobID).Order("id DESC").Limit(cmp.Or(p.Limit, store.DefaultLimit))
	if p.Before > 0 {
		q = q.Where("id < ?", p.Before)
	}
	return q
}

// Attempts lists a page of the attempts at a job, the newest first.
func (l *Listing) Attempts(ctx context.Context, jobID string, p HistoryPage) ([]models.Attempt, error) {
	return find[models.Attempt]("list attempts", history(l.db.WithContext(ctx), jobID, p))
}
