package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The databases that those of the runs are copied from.
const (
	daybookTemplate  = "bench_daybook"
	riverTemplate    = "bench_river"
	byHandTemplate   = "bench_by_hand"
	graphileTemplate = "bench_graphile"
	pgbossTemplate   = "bench_pgboss"
	dbosTemplate     = "bench_dbos"
)

// benchConns is how many connections a scenario itself may open to a run's database.
const benchConns = 16

// database is the database of one run.
type database struct {
	name, url string
	pool      *pgxpool.Pool
	b         *bench
}

// withDatabase runs f with a new copy of the template, which is dropped afterwards.
func (b *bench) withDatabase(ctx context.Context, template string, f func(*database) error) (err error) {
	d := &database{name: fmt.Sprintf("bench_%d", b.count()), b: b}
	if d.url, err = b.createDatabase(ctx, d.name, template); err != nil {
		return err
	}
	defer func() {
		cleanUp, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		_, dropErr := b.admin.Exec(cleanUp, `DROP DATABASE `+pgx.Identifier{d.name}.Sanitize()+` WITH (FORCE)`)
		err = errors.Join(err, dropErr)
	}()
	if d.pool, err = openPool(ctx, d.url, benchConns); err != nil {
		return err
	}
	defer d.pool.Close()
	return f(d)
}

// createDatabase creates a database that belongs to the role of the program, and returns its
// address for that role.
func (b *bench) createDatabase(ctx context.Context, name, template string) (string, error) {
	u, err := url.Parse(b.stack.DatabaseURL)
	if err != nil {
		return "", err
	}
	quoted, owner := pgx.Identifier{name}.Sanitize(), pgx.Identifier{u.User.Username()}.Sanitize()
	create := `CREATE DATABASE ` + quoted + ` TEMPLATE ` + pgx.Identifier{template}.Sanitize() + ` OWNER ` + owner
	if _, err := b.admin.Exec(ctx, create); err != nil {
		return "", fmt.Errorf("create database %s: %w", name, err)
	}
	if _, err := b.admin.Exec(ctx, `ALTER DATABASE `+quoted+` SET search_path = daybook, public`); err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

// quiesce leaves nothing of the preparations to be done while the clock runs: tables are vacuumed
// and analyzed, dirty pages written.
func (d *database) quiesce(ctx context.Context) error {
	if _, err := d.pool.Exec(ctx, `VACUUM (ANALYZE)`); err != nil {
		return fmt.Errorf("vacuum database %s: %w", d.name, err)
	}
	if _, err := d.b.admin.Exec(ctx, `CHECKPOINT`); err != nil {
		return fmt.Errorf("write dirty pages: %w", err)
	}
	return nil
}

// one reads a single value.
func one[T any](ctx context.Context, pool *pgxpool.Pool, query string, args ...any) (T, error) {
	var v T
	err := pool.QueryRow(ctx, query, args...).Scan(&v)
	return v, err
}

// stalled is how long nothing may happen before a run is given up.
const stalled = time.Minute

// await asks done every interval until it says so, and gives up when the progress that it tells
// stands still.
func await(ctx context.Context, interval time.Duration,
	done func(context.Context) (ready bool, progress int64, err error),
) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	last, since := int64(-1), time.Now()
	for {
		ready, progress, err := done(ctx)
		if err != nil || ready {
			return err
		}
		if progress != last {
			last, since = progress, time.Now()
		}
		if time.Since(since) > stalled {
			return fmt.Errorf("nothing happened for %s, at %d", stalled, progress)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// withApplicationName is the address with an application_name.
func withApplicationName(address, name string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	q := u.Query()
	q.Set("application_name", name)
	u.RawQuery = q.Encode()
	return u.String(), nil
}
