package migrations

import (
	"context"
	"database/sql"
	"testing/fstest"

	"github.com/pressly/goose/v3"
)

// Chapters are the migrations that a program has, for tests of programs that have others.
type Chapters struct{ chapters }

// Shipped returns the migrations of this build, and more.
func Shipped(more map[string]string) Chapters {
	all := fstest.MapFS{}
	entries, _ := files.ReadDir(".")
	for _, e := range entries {
		content, _ := files.ReadFile(e.Name())
		all[e.Name()] = &fstest.MapFile{Data: content}
	}
	for name, content := range more {
		all[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return Chapters{chaptersOf(all)}
}

// Up applies every migration that is missing.
func (c Chapters) Up(ctx context.Context, databaseURL string) error {
	return c.withProvider(ctx, databaseURL, func(db *sql.DB, p *goose.Provider) error { return c.up(ctx, db, p) })
}

// Down takes the newest migration back.
func (c Chapters) Down(ctx context.Context, databaseURL string) error {
	return c.withProvider(ctx, databaseURL, func(db *sql.DB, p *goose.Provider) error {
		return c.down(ctx, db, p, DownOptions{DeleteData: true})
	})
}

// Verify says whether a program with these migrations can work with the schema.
func (c Chapters) Verify(ctx context.Context, db Querier) error { return c.verify(ctx, db) }

// UpByOne applies the oldest migration that is missing.
func UpByOne(ctx context.Context, databaseURL string) error {
	return shipped.withProvider(ctx, databaseURL, func(_ *sql.DB, p *goose.Provider) error {
		_, err := p.UpByOne(ctx)
		return err
	})
}
