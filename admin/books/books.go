package books

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// DB is what a function of this package works on. A *pgxpool.Pool, *pgxpool.Conn and *pgx.Conn
// satisfy it as they are: each change is a transaction of its own, with the isolation level that it
// needs. In makes one of a transaction.
type DB interface {
	BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// In returns a DB whose changes are part of a transaction of the caller's, and are committed or
// rolled back with it. Its isolation level must be READ COMMITTED, which is PostgreSQL's default: a
// stricter one would read what was true before the change waited for its lock. A change that fails
// is undone by itself; the transaction can go on.
func In(tx pgx.Tx) DB { return inTx{tx} }

type inTx struct{ pgx.Tx }

// check returns ErrNoDB for a DB that is nil, or holds a nil handle.
func check(db DB) error {
	if tx, ok := db.(inTx); ok && store.IsNil(tx.Tx) || store.IsNil(db) {
		return ErrNoDB
	}
	return nil
}

// BeginTx begins a savepoint, which has the isolation level of its transaction.
func (t inTx) BeginTx(ctx context.Context, _ pgx.TxOptions) (pgx.Tx, error) {
	var level string
	if err := t.QueryRow(ctx, `SHOW transaction_isolation`).Scan(&level); err != nil {
		return nil, store.Wrap("read the isolation level", err)
	}
	if level != "read committed" {
		return nil, store.Refuse(ErrInvalid, "the transaction's isolation level is "+level,
			"begin it as READ COMMITTED, or pass the pool")
	}
	return t.Begin(ctx)
}

// Change is what a change of an organization's books led to.
type Change struct {
	OrgID string `json:"org_id"`
	// Version is the rule set's; 0 for a change of accounts or of the policy.
	Version int64 `json:"version,omitempty"`
	// Name is the rule set's.
	Name string `json:"-"`
	// Changed is false when everything was so already.
	Changed bool `json:"changed"`
	// Returned counts the failed jobs that are pending again.
	Returned int `json:"returned"`
	// Moved are the balances that another type of their account moved to other parts of statements
	// and exports.
	Moved []MovedBalance `json:"moved,omitempty"`
	// MissingAccounts are those that the rules can post to and the chart lacks: documents that need
	// them fail with UNKNOWN_ACCOUNT.
	MissingAccounts []string `json:"missing_accounts,omitempty"`
}

// change runs a change of an organization's books in a transaction, of one that Daybook need not
// know if create says so.
func change(ctx context.Context, db DB, org string, create bool, f func(tx pgx.Tx) error) error {
	if err := check(db); err != nil {
		return err
	}
	return store.Begin(ctx, db, func(tx pgx.Tx) error {
		if !create {
			if err := known(ctx, tx, org); err != nil {
				return err
			}
		}
		return f(tx)
	})
}

// readable refuses what cannot be read: a DB that is nil, and an organization of which Daybook has
// nothing.
func readable(ctx context.Context, db DB, org string) error {
	if err := check(db); err != nil {
		return err
	}
	return known(ctx, db, org)
}

// known refuses an organization of which Daybook has nothing.
func known(ctx context.Context, q store.Querier, org string) error {
	unknown, err := store.UnknownOrganizations(ctx, q, []string{org})
	if err != nil || len(unknown) == 0 {
		return err
	}
	return store.Refuse(ErrOrganizationNotFound, fmt.Sprintf("Daybook knows no organization %s", org),
		"check the id (`daybook organizations list`); an organization is known from its first rules, account, document "+
			"or job on")
}
