package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/queue"
)

// setUp makes what is missing in the database: Daybook's tables, this program's and the books. That
// takes the rights of the database's owner.
func setUp(ctx context.Context, pool *pgxpool.Pool, databaseURL string) error {
	if err := migrations.Up(ctx, databaseURL); err != nil {
		return err
	}
	if err := migrateOrders(ctx, databaseURL); err != nil {
		return err
	}
	return setUpBooks(ctx, pool)
}

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrateOrders makes this program's own tables, in a database that has Daybook's. A second call
// does nothing.
func migrateOrders(ctx context.Context, databaseURL string) (err error) {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return fmt.Errorf("database address: %w", err)
	}
	db := stdlib.OpenDB(*config)
	defer func() { err = errors.Join(err, db.Close()) }()
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return err
	}
	locker, err := lock.NewPostgresSessionLocker() // several of this program may start at once
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithTableName("public.app_migrations"),
		goose.WithDisableGlobalRegistry(true), goose.WithSessionLocker(locker))
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

var (
	//go:embed books/chart.csv
	chart []byte
	//go:embed books/rules.yaml
	rules []byte
)

// setUpBooks gives the organization its chart of accounts, its rules and the source of its
// documents. What is so already stays.
func setUpBooks(ctx context.Context, pool *pgxpool.Pool) error {
	accounts, err := books.ParseAccounts(chart)
	if err != nil {
		return fmt.Errorf("books/chart.csv: %w", err)
	}
	if _, err := books.PutAccounts(ctx, pool, org, accounts, books.AccountsOptions{Create: true}); err != nil {
		return fmt.Errorf("books/chart.csv: %w", err)
	}
	if _, err := books.ApplyRules(ctx, pool, org, rules, books.ApplyOptions{}); err != nil {
		return fmt.Errorf("books/rules.yaml: %w", err)
	}
	_, err = queue.SetSource(ctx, pool, org, sourceName)
	return err
}
