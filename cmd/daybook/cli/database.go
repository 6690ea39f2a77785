package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/migrations"
)

// Database holds what a command reads and writes with.
type Database struct {
	*pgxpool.Pool
	*listing.Listing
}

// Close ends the listing and the pool.
func (d *Database) Close() {
	_ = d.Listing.Close()
	ClosePool(d.Pool)
}

// closeLimit is how long a command waits in the end until its sessions have ended. A server that
// stands still ends none, and the driver waits for it for 15 seconds.
const closeLimit = 2 * time.Second

// ClosePool ends a pool. It does not wait for sessions that a server does not end.
func ClosePool(pool *pgxpool.Pool) {
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(closeLimit):
	}
}

// Open connects to the database and checks that its schema is the one of this program. conns is the
// size of the pool.
func (a *App) Open(ctx context.Context, conns int32) (*Database, error) {
	pool, err := a.Pool(ctx, conns)
	if err != nil {
		return nil, err
	}
	if err = Verify(ctx, pool); err == nil {
		err = a.KnowsOrganization(ctx, pool)
	}
	if err != nil {
		ClosePool(pool)
		return nil, err
	}
	listing, err := listing.New(pool)
	if err != nil {
		ClosePool(pool)
		return nil, err
	}
	return &Database{Pool: pool, Listing: listing}, nil
}

// Verify checks that the database and its sessions can be used and that the schema is this
// program's. If that takes too long it says which tables are locked.
func Verify(ctx context.Context, pool *pgxpool.Pool) error {
	if err := store.VerifySession(ctx, pool); err != nil {
		return fmt.Errorf("the database cannot be used: %w", err)
	}
	err := migrations.Verify(ctx, pool)
	if !errors.Is(err, migrations.ErrNoAnswer) {
		return err
	}
	says := []string{migrations.ErrNoAnswer.Error()}
	for _, f := range health.Locks(ctx, pool) {
		says = append(says, f.Says+" "+f.Todo)
	}
	return Tagged(migrations.ErrNoAnswer, "%s", strings.Join(says, "\n"))
}

// OnDatabase is the action of a command that needs one connection to the database: it opens it, and
// closes it in the end.
func (a *App) OnDatabase(run func(c *cobra.Command, db *Database, args []string) error) func(c *cobra.Command,
	args []string) error {
	return func(c *cobra.Command, args []string) error {
		db, err := a.Open(c.Context(), 1)
		if err != nil {
			return err
		}
		defer db.Close()
		return run(c, db, args)
	}
}

// CheckDatabaseURL refuses an address that cannot be read, without repeating any of it: what is
// wrong may be the password.
func (a *App) CheckDatabaseURL() error {
	if a.DatabaseURL == "" {
		return ErrNoDatabaseURL
	}
	for _, address := range []string{a.DatabaseURL, a.DirectURL} {
		_, err := pgxpool.ParseConfig(address)
		if file, ok := errors.AsType[*fs.PathError](err); ok {
			return Tagged(ErrBadDatabaseURL, "a file that the database's address names (sslrootcert, sslcert or sslkey) cannot be "+
				"read: %s", file)
		}
		if err != nil {
			return ErrBadDatabaseURL
		}
	}
	return nil
}

// Moment is ParseMoment back from the database's clock, which the times in rows are from: for what
// is removed by its age.
func (d *Database) Moment(ctx context.Context, flag, text string) (time.Time, error) {
	now, err := store.Now(ctx, d.Pool)
	if err != nil {
		return now, err
	}
	return ParseMoment(flag, text, now)
}

// DueIn is when something is due that waits for a delay, by the database's clock, which workers go
// by; 0: at, which says it.
func (d *Database) DueIn(ctx context.Context, delay time.Duration, at time.Time) (time.Time, error) {
	if delay == 0 {
		return at, nil
	}
	now, err := store.Now(ctx, d.Pool)
	return now.Add(delay), err
}

// RequireRight refuses a role without the right by which the one that the command needs is known.
// It is for commands that run until a signal, because what such a role may not do would be told
// with each job, or to each caller, and for those that change something outside of the database
// before they write there.
func RequireRight(ctx context.Context, pool *pgxpool.Pool, right, table string) error {
	var has bool
	if err := pool.QueryRow(ctx, `SELECT has_any_column_privilege($1, $2)`, table, right).Scan(&has); err != nil || has {
		return err
	}
	return Tagged(ErrRoleLacksRight, "role %s lacks %s on %s", pool.Config().ConnConfig.User, right, table)
}
