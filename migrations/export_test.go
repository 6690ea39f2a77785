package migrations

import (
	"context"
	"database/sql"

	"github.com/pressly/goose/v3"
)

// UpByOne applies the oldest migration that is missing.
func UpByOne(ctx context.Context, databaseURL string) error {
	return withProvider(ctx, databaseURL, func(_ *sql.DB, p *goose.Provider) error {
		_, err := p.UpByOne(ctx)
		return err
	})
}
