package queue

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"
)

// The defaults of WaitAccountingJobOptions and WaitJobOptions.
const (
	DefaultFirstPoll = 20 * time.Millisecond
	DefaultMaxPoll   = 2 * time.Second
)

// errWrote: a Querier that is no transaction by its type turns out to be one.
var errWrote = fmt.Errorf("%w: this one has written something", ErrInTransaction)

// poll calls read at growing intervals until it is done or fails, and returns its error or ctx's.
// The pauses begin with first and end with longest; those that are not positive are the defaults.
func poll(ctx context.Context, first, longest time.Duration, read func() (done bool, err error)) error {
	longest = cmp.Or(max(longest, 0), DefaultMaxPoll)
	pause := min(cmp.Or(max(first, 0), DefaultFirstPoll), longest)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		if done, err := read(); done || err != nil {
			return err
		}
		timer.Reset(pause)
		pause = min(pause+pause/2, longest)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// outsideTransaction returns ErrInTransaction when q is a transaction, and what check says of any
// other that cannot be waited on.
func outsideTransaction(q Querier) error {
	if r, ok := q.(refused); ok {
		return fmt.Errorf("%w; to wait, pass queue.SQL of the *sql.DB that db.DB() returns", r.err)
	}
	if err := check(q); err != nil {
		return err
	}
	switch h := q.(type) {
	case pgx.Tx:
		return ErrInTransaction
	case *pgx.Conn:
		return idle(h)
	case *pgxpool.Conn:
		return idle(h.Conn())
	case sqlAdapter:
		switch h.q.(type) {
		case *sql.Tx, gorm.TxCommitter:
			return ErrInTransaction
		}
	}
	return nil
}

func idle(c *pgx.Conn) error {
	if c.PgConn().TxStatus() != 'I' {
		return ErrInTransaction
	}
	return nil
}
