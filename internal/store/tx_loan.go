package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
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

// note takes in an error of a statement that goes on.
func (l *Loan) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault == nil && IsBlameless(err) {
		l.fault = err
	}
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
