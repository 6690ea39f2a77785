package queue

import (
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"
)

// The defaults of WaitAccountingJobOptions.
const (
	DefaultFirstPoll = 20 * time.Millisecond
	DefaultMaxPoll   = 2 * time.Second
)

// outsideTransaction returns ErrInTransaction when q is a transaction.
func outsideTransaction(q Querier) error {
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
	case refused:
		return fmt.Errorf("%w; to wait, pass queue.SQL of the *sql.DB that db.DB() returns", h.err)
	}
	return nil
}

func idle(c *pgx.Conn) error {
	if c.PgConn().TxStatus() != 'I' {
		return ErrInTransaction
	}
	return nil
}
