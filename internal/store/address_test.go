package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
)

// TestAddressNamesNoSecret: it has each server once, and nothing of the user.
func TestAddressNamesNoSecret(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"postgres://ada:secret@db.internal:5433/books":                     "db.internal:5433/books",
		"postgres://ada:secret@a:5432,b:5433/books?sslmode=prefer":         "a:5432,b:5433/books",
		"postgres://ada:secret@[::1]:5432/books":                           "[::1]:5432/books",
		"host=/var/run/postgresql port=5432 user=ada password=x dbname=bo": "/var/run/postgresql:5432/bo",
	} {
		config, err := pgx.ParseConfig(address)
		require.NoError(t, err)
		assert.Equal(t, want, store.Address(config))
	}
}
