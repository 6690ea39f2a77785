package scaffold_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/internal/scaffold"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// The migration is applied as it is written, and its tests pass as they are: for each channel, in a
// schema that is there and in a new one, and for what references a table. The tests leave nothing
// behind.
func TestScaffoldWorksAsWritten(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]scaffold.Options{
		"db_function": {Name: "nightly_sum"}, "email": {Name: "send_invoice", Channel: "email", Schema: "comms"},
		"sms":           {Name: "s", Channel: "sms", MaxAttempts: 1},
		"file_delete":   {Name: "purge", Channel: "file_delete", MaxAttempts: 100, Schema: "public"},
		"own type":      {Name: "print_letter", Channel: "letter", Schema: "mail_room"},
		"long":          {Name: strings.Repeat("n", 40), Schema: strings.Repeat("s", 63), Channel: strings.Repeat("c", 63)},
		"long function": {Name: strings.Repeat("n", 40), Schema: strings.Repeat("s", 63)},
		"references":    {Name: "send_reminder", References: "shop.orders.order_id", Channel: "email"},
		"references id": {Name: "send_reminder", References: "shop.customers.id", Schema: "shop"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			files, err := scaffold.Files(o)
			require.NoError(t, err)
			require.Len(t, files, 2)
			for _, stmt := range []string{
				`CREATE SCHEMA shop; CREATE TABLE shop.orders (order_id bigint PRIMARY KEY); CREATE TABLE shop.customers (id bigserial PRIMARY KEY)`,
				`INSERT INTO shop.orders VALUES (17); INSERT INTO shop.customers DEFAULT VALUES`,
				string(files[0].Text), string(files[1].Text),
			} {
				_, err := db.Pool.Exec(t.Context(), stmt)
				require.NoError(t, err)
			}
			assert.Zero(t, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.task`))
			_, err = db.Pool.Exec(t.Context(), string(files[1].Text))
			require.NoError(t, err, "again")
		})
	}
}

// The tests that are written notice what is broken.
func TestScaffoldedTestsFail(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]string{
		"two attempts at a time":     `CREATE OR REPLACE FUNCTION app.count_x_attempts(_x_task_id bigint) RETURNS integer LANGUAGE sql SET search_path = pg_catalog, pg_temp AS 'SELECT 0'`,
		"a function that PUBLIC may": `GRANT EXECUTE ON FUNCTION app.x_supervisor TO PUBLIC`,
		"a function without a grant": `REVOKE EXECUTE ON FUNCTION app.x_supervisor FROM worker_service_user`,
		"no search path":             `ALTER FUNCTION app.x_supervisor RESET search_path`,
		"no rights of the owner":     `ALTER FUNCTION app.x_supervisor SECURITY INVOKER`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			files, err := scaffold.Files(scaffold.Options{Name: "x", Channel: "email"})
			require.NoError(t, err)
			for _, stmt := range []string{string(files[0].Text), broken} {
				_, err := db.Pool.Exec(t.Context(), stmt)
				require.NoError(t, err)
			}
			_, err = db.Pool.Exec(t.Context(), string(files[1].Text))
			require.Error(t, err)
		})
	}
}

func TestFileNames(t *testing.T) {
	t.Parallel()
	files, err := scaffold.Files(scaffold.Options{Name: "x", Prefix: "00007_"})
	require.NoError(t, err)
	assert.Equal(t, "00007_x.sql 00007_x_test.sql", fmt.Sprint(files[0].Name, " ", files[1].Name))
	assert.Contains(t, string(files[1].Text), "-f 00007_x_test.sql")
}

// What cannot be a name is refused, with what can.
func TestBadOptions(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]scaffold.Options{
		`the name ""`:                     {},
		`the name "Send"`:                 {Name: "Send"},
		`the name "a-b"`:                  {Name: "a-b"},
		`the name "1a"`:                   {Name: "1a"},
		`the name "a'; DROP TABLE x; --"`: {Name: "a'; DROP TABLE x; --"},
		`the name "é"`:                    {Name: "é"},
		`40 at most`:                      {Name: strings.Repeat("n", 41)},
		`the schema "a.b"`:                {Name: "x", Schema: "a.b"},
		`the schema queues is not`:        {Name: "x", Schema: "queues"},
		`the schema pg_temp is not`:       {Name: "x", Schema: "pg_temp"},
		`user is a word of SQL`:           {Name: "x", Schema: "user"},
		`the channel "E-Mail"`:            {Name: "x", Channel: "E-Mail"},
		`-1 attempts`:                     {Name: "x", MaxAttempts: -1},
		`101 attempts`:                    {Name: "x", MaxAttempts: 101},
		`the reference "orders"`:          {Name: "x", References: "orders"},
		`the reference "a.b.c.d"`:         {Name: "x", References: "a.b.c.d"},
		`order is a word of SQL`:          {Name: "x", References: "shop.order.id"},
		`the column x_task_id`:            {Name: "x", References: "shop.orders.x_task_id"},
		`the column payload`:              {Name: "x", References: "shop.orders.payload"},
		`the prefix "../"`:                {Name: "x", Prefix: "../"},
	} {
		_, err := scaffold.Files(o)
		require.ErrorIs(t, err, scaffold.ErrOptions, want)
		assert.ErrorContains(t, err, want)
	}
}
