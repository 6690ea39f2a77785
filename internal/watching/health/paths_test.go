package health_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/migrations"
)

// role makes a role of the server for the test, with a name of its own.
func (b *bundle) role(name, options string) string {
	b.t.Helper()
	name = b.Name + "_" + name
	b.exec(`CREATE ROLE ` + name + ` ` + options + `; GRANT ` + name + ` TO CURRENT_USER`)
	b.t.Cleanup(func() {
		_, err := b.Pool.Exec(context.WithoutCancel(b.t.Context()), `DROP OWNED BY `+name+`; DROP ROLE `+name)
		assert.NoError(b.t, err)
	})
	return name
}

// TestSearchPathOpenToAll: public as servers before PostgreSQL 15 had it. What the finding says
// ends it.
func TestSearchPathOpenToAll(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, migrations.Roles(t.Context(), b.URL))
	assert.Empty(t, of(b.check(), health.SearchPathOpen), "PostgreSQL's default")
	b.exec(`GRANT CREATE ON SCHEMA public TO PUBLIC`)
	f := one(t, b.check(), health.SearchPathOpen)
	assert.Equal(t, health.Warning, f.Severity)
	assert.Contains(t, f.Says,
		"Every role may create objects in the schema public, which is on the search path of the roles ")
	assert.Regexp(t, "daybook_server(,| and) daybook_worker", f.Says)
	assert.Contains(t, f.Todo, "`REVOKE CREATE ON SCHEMA public FROM PUBLIC`")
	assert.Contains(t, f.Todo, " IN DATABASE "+b.Name+" SET search_path = daybook`, and so for the others.")
	b.exec(`REVOKE CREATE ON SCHEMA public FROM PUBLIC`)
	assert.Empty(t, of(b.check(), health.SearchPathOpen))
}

// TestSearchPathOpenToARole: a role that may create objects is named, unless it may do what the
// worker may anyway.
func TestSearchPathOpenToARole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, migrations.Roles(t.Context(), b.URL))
	worker, other, owner := b.role("worker", `LOGIN IN ROLE daybook_worker`), b.role("other", ``), b.role("owner", ``)
	var super string
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`SELECT quote_ident(rolname) FROM pg_roles WHERE rolsuper LIMIT 1`).Scan(&super))
	b.exec(`CREATE SCHEMA "App, too" AUTHORIZATION ` + owner + `;
CREATE SCHEMA unused;
CREATE SCHEMA ` + worker + `;
GRANT USAGE ON SCHEMA "App, too", unused, ` + worker + ` TO ` + worker + `;
GRANT CREATE ON SCHEMA unused TO ` + other + `;
GRANT CREATE ON SCHEMA "App, too" TO ` + worker + `, ` + super + `;
ALTER ROLE ` + worker + ` SET search_path = unused;
ALTER ROLE ` + worker + ` IN DATABASE ` + b.Name + ` SET search_path = "$user", "App, too", daybook`)
	as := b.As(t, worker)
	check := func(pool *pgxpool.Pool) []health.Finding {
		return of(clean(t, health.Check(t.Context(), health.Options{Pool: pool})), health.SearchPathOpen)
	}
	assert.Empty(t, check(as), "the owner, a superuser and the worker itself may create objects")

	b.exec(`GRANT CREATE ON SCHEMA "App, too" TO ` + other)
	found := check(as)
	require.Len(t, found, 1)
	assert.Equal(t, health.Info, found[0].Severity, "it may be meant")
	assert.Contains(t, found[0].Says, `The role `+other+
		` may create objects in the schema "App, too", which is on the search path of the role `+worker+`:`)
	assert.Contains(t, found[0].Todo, "`REVOKE CREATE ON SCHEMA \"App, too\" FROM "+other+"`")
	assert.Contains(t, found[0].Todo, "SET search_path = "+worker+", daybook`.")

	assert.Empty(t, check(b.Pool), "no program of Daybook is logged in as the role")
	config := as.Config()
	config.ConnConfig.RuntimeParams["application_name"] = "daybook"
	program, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	defer program.Close()
	require.NoError(t, program.Ping(t.Context()))
	assert.Len(t, check(b.Pool), 1, "a program is")
	assert.Len(t, check(b.As(t, "daybook_reader")), 1, "and any role sees it")

	b.exec(`ALTER ROLE ` + worker + ` IN DATABASE ` + b.Name +
		` SET search_path = "$user", daybook; GRANT CREATE ON SCHEMA ` + worker + ` TO ` + other)
	found = check(b.Pool)
	require.Len(t, found, 1)
	assert.Contains(t, found[0].Says, "in the schema "+worker)
}
