package migrations_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/migrations"
)

// TestRolesOfAnOwnerWhoMayNotCreateRoles: on a server without any of the roles the owner migrates, the
// error says that a superuser makes them, and then a worker may work tasks.
func TestRolesOfAnOwnerWhoMayNotCreateRoles(t *testing.T) {
	t.Parallel()
	stack, err := devstack.Start(t.Context(), devstack.Options{Private: true, NoTemporal: true, FastAndUnsafe: true})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, stack.Stop(context.WithoutCancel(t.Context()))) })
	admin, err := pgx.Connect(t.Context(), stack.AdminURL)
	require.NoError(t, err)
	defer func() { _ = admin.Close(context.WithoutCancel(t.Context())) }()
	for _, stmt := range []string{`CREATE ROLE own LOGIN PASSWORD 'for-a-test'`, `CREATE DATABASE owned OWNER own`} {
		_, err = admin.Exec(t.Context(), stmt)
		require.NoError(t, err, stmt)
	}
	as := func(user *url.Userinfo) string {
		address, err := url.Parse(stack.AdminURL)
		require.NoError(t, err)
		address.Path = "/owned"
		if user != nil {
			address.User = user
		}
		return address.String()
	}
	own := as(url.UserPassword("own", "for-a-test"))
	require.NoError(t, migrations.Up(t.Context(), own))
	err = migrations.Roles(t.Context(), own)
	require.ErrorIs(t, err, migrations.ErrMayNotCreateRoles)
	require.ErrorContains(t, err, "ALTER ROLE own CREATEROLE")

	require.NoError(t, migrations.Up(t.Context(), as(nil)))
	require.NoError(t, migrations.Roles(t.Context(), as(nil)), "a superuser")
	_, err = admin.Exec(t.Context(), `ALTER ROLE daybook_worker PASSWORD 'for-a-test'`)
	require.NoError(t, err)
	pool, err := pgxpool.New(t.Context(), as(url.UserPassword("daybook_worker", "for-a-test")))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	require.NoError(t, store.VerifyTasks(t.Context(), pool), "a worker of tasks")
	require.NoError(t, migrations.Roles(t.Context(), own), "what is done needs no right to do it")
}
