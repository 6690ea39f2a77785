package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-dev/daybook/failure"
)

// ErrSchemaMismatch: Daybook's schema is missing, was replaced, or is not whole, for instance while
// a dump is being restored. No attempt is counted for it.
var ErrSchemaMismatch = failure.New(failure.DatabaseUnavailable, "the database's schema was replaced, or is not whole")

// verifyEvery is how often a schema that did not fit is verified again, at most.
const verifyEvery = time.Second

// guard keeps the worker from a schema that it has not verified. It is verified before the first
// transaction, and again after any sign that it was replaced. Until it fits, the worker's
// transactions fail with ErrSchemaMismatch.
type guard struct {
	// verify says whether the schema is the one of this program, and whole; nil: there is no guard.
	verify func(ctx context.Context) error
	log    *slog.Logger
	// require is the call by which a transaction fails if the queue's table is not the verified one;
	// nil: none is verified.
	require atomic.Pointer[string]

	mu    sync.Mutex
	tried time.Time
	last  error
	// rights says which rights the role had on the schema when that was first verified.
	rights map[string]bool
}

// GuardSchema has verify called before the store works, and whenever the schema was replaced. Call
// it before the store is used.
func (b *base) GuardSchema(verify func(ctx context.Context) error, log *slog.Logger) {
	b.guard.verify, b.guard.log = verify, log
	b.hosts.Tell(log)
}

// ready returns what a transaction selects when it begins, or "" where there is no guard, or fails
// with ErrSchemaMismatch, or with hosts.ErrSplit while two servers take writes.
func (b *base) ready(ctx context.Context) (require string, err error) {
	g := &b.guard
	if err := b.hosts.Check(ctx); err != nil {
		return "", err
	}
	if g.verify == nil {
		return "", nil
	}
	if require := g.require.Load(); require != nil {
		return *require, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if require := g.require.Load(); require != nil {
		return *require, nil
	}
	if g.last != nil && time.Since(g.tried) < verifyEvery {
		return "", g.last
	}
	verified, err := b.verifySchema(ctx)
	switch {
	case err == nil:
		if g.last != nil {
			g.log.Info("the database's schema fits again; the worker goes on", "queue", b.kind.Name)
		}
		g.last = nil
		g.require.Store(&verified)
		return verified, nil
	case ctx.Err() != nil || IsTransient(err):
		return "", err
	case g.last == nil:
		g.log.Warn("the worker pauses until the database's schema fits; no job is charged", "queue", b.kind.Name, "error",
			err)
	}
	g.tried = time.Now()
	g.last = fmt.Errorf("%w: %w", ErrSchemaMismatch, err)
	return "", g.last
}

// verifySchema verifies the schema and returns the call that requires the queue's table as it is
// now: another table of its name makes it fail. The table is looked up first, so that one which
// replaces it meanwhile is noticed.
func (b *base) verifySchema(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	var table *uint32
	name := b.kind.table
	if err := b.pool.QueryRow(ctx, `SELECT to_regclass($1::text)::oid`, name).Scan(&table); err != nil {
		return "", err
	}
	if err := b.guard.verify(ctx); err != nil {
		return "", err
	}
	if table == nil {
		return "", fmt.Errorf("there is no table %s", name)
	}
	if err := b.verifyRights(ctx); err != nil {
		return "", err
	}
	require := cmp.Or(b.kind.require, "daybook.require_table")
	return require + `('` + name + `', ` + strconv.FormatUint(uint64(*table), 10) + `)`, nil
}

// verifyRights returns an error when the worker's role lacks rights that it had when the worker
// started. It is called with mu held.
func (b *base) verifyRights(ctx context.Context) error {
	const stmt = `
SELECT 'USAGE on schema ' || n.nspname, has_schema_privilege(n.oid, 'USAGE') FROM pg_namespace n WHERE n.nspname IN ('daybook', 'queues')
UNION ALL
SELECT r.name || ' on ' || n.nspname || '.' || c.relname, has_table_privilege(c.oid, r.name)
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 CROSS JOIN unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) AS r (name)
 WHERE n.nspname IN ('daybook', 'queues') AND c.relkind IN ('r', 'v', 'S')
UNION ALL
SELECT 'EXECUTE on ' || n.nspname || '.' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')', has_function_privilege(p.oid, 'EXECUTE')
  FROM pg_proc p
  JOIN pg_namespace n ON n.oid = p.pronamespace
 WHERE n.nspname IN ('daybook', 'queues')`
	rights := map[string]bool{}
	var right string
	var has bool
	err := Each(ctx, b.pool, []any{&right, &has}, func() error {
		if rights[right] = has; !has && b.guard.rights[right] {
			return fmt.Errorf("the role of the worker lacks %s, which it had before: grant it", right)
		}
		return nil
	}, stmt)
	if err == nil && b.guard.rights == nil {
		b.guard.rights = rights
	}
	return err
}

// suspect has the schema verified again after an error that may be a sign that it was replaced, and
// returns ErrSchemaMismatch if it does not fit.
func (b *base) suspect(ctx context.Context, err error) error {
	if err == nil || b.guard.verify == nil || errors.Is(err, ErrSchemaMismatch) || !mayBeReplaced(err) {
		return err
	}
	b.guard.require.Store(nil)
	if SQLState(err) == stateTableReplaced || isConnectError(err) {
		return err
	}
	if _, mismatch := b.ready(ctx); errors.Is(mismatch, ErrSchemaMismatch) {
		return fmt.Errorf("%w (%w)", mismatch, err)
	}
	return err
}

// mayBeReplaced reports whether an error is one that a replaced schema, rights that were revoked,
// or another server in the place of the first, lead to.
func mayBeReplaced(err error) bool {
	switch state := SQLState(err); state {
	case "3F000", "42P01", "42883", "42704", "42703", // no such schema, table, function, type, column
		"42501", // no right: it may have been revoked
		stateTableReplaced:
		return true
	default:
		return strings.HasPrefix(state, "57P") || FaultOf(err) == Stale || isConnectError(err)
	}
}

// IsSchemaMismatch reports whether err says that Daybook's schema is missing, was replaced, or is
// not whole. It is an outage, though the database answers.
func IsSchemaMismatch(err error) bool {
	return errors.Is(err, ErrSchemaMismatch) || SQLState(err) == stateTableReplaced || FaultOf(err) == Stale
}
