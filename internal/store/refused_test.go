package store_test

import (
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

// An address without sslmode tries TLS first, and names the refusal of a server without TLS in
// whatever error it ends with: that is no reason to speak of certificates, or to give up.
func TestRefusalBehindATryOfTLS(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `CREATE ROLE refused_full LOGIN PASSWORD 'x' CONNECTION LIMIT 0`)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = db.Pool.Exec(t.Context(), `DROP ROLE refused_full`) })
	connect := func(change func(*url.URL)) error {
		t.Helper()
		u, err := url.Parse(db.URL)
		require.NoError(t, err)
		q := u.Query()
		q.Del("sslmode")
		u.RawQuery = q.Encode()
		change(u)
		conn, err := pgx.Connect(t.Context(), u.String())
		if err == nil {
			_ = conn.Close(t.Context())
		}
		require.ErrorContains(t, err, "server refused TLS connection")
		return err
	}

	err = connect(func(u *url.URL) { u.User = url.UserPassword("refused_full", "x") })
	assert.True(t, store.LacksConnections(err))
	assert.False(t, store.RefusesConnection(err), "%v", err)

	err = connect(func(u *url.URL) { u.Path = "/there_is_none" })
	assert.True(t, store.RefusesConnection(err))
	assert.NotContains(t, store.RefusalAdvice(err), "ssl")

	err = connect(func(u *url.URL) { u.RawQuery = "sslmode=require" })
	assert.True(t, store.RefusesConnection(err))
	assert.Contains(t, store.RefusalAdvice(err), "sslmode")
}
