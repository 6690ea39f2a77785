package pgtest

import (
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// rolePassword is the password of every role that As logs in.
const rolePassword = "for-a-test"

// changingRoles is held while a role is changed: roles belong to the server, and PostgreSQL refuses
// two changes at once.
var changingRoles sync.Mutex

// As returns a pool that is logged in as a role of the server. It is closed when the test ends.
func (db *DB) As(tb testing.TB, role string) *pgxpool.Pool {
	tb.Helper()
	changingRoles.Lock()
	defer changingRoles.Unlock()
	// A member may end the role's sessions: those that are about to end when the test's database is
	// dropped.
	for _, stmt := range []string{
		`ALTER ROLE ` + role + ` PASSWORD '` + rolePassword + `'`,
		`GRANT ` + role + ` TO CURRENT_USER`,
	} {
		for {
			_, err := db.Pool.Exec(tb.Context(), stmt)
			if err == nil {
				break
			}
			if !strings.Contains(err.Error(), "concurrently updated") {
				tb.Fatalf("pgtest: %s: %v", role, err)
			}
		}
	}
	address, err := url.Parse(db.URL)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	address.User = url.UserPassword(role, rolePassword)
	pool, err := pgxpool.New(tb.Context(), address.String())
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(pool.Close)
	return pool
}
