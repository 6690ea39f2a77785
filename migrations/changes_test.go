package migrations_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/released"
	"github.com/daybook-dev/daybook/migrations"
)

// TestLaterMigrations: each migration that follows the newest release can be applied beside its
// workers, and leaves its programs what they use. The database is one of that release, with rows in
// every table and the rights of the roles.
func TestLaterMigrations(t *testing.T) {
	t.Parallel()
	require.NoError(t, migrations.Roles(t.Context(), pgtest.New(t).URL)) // which belong to the server
	dump, err := released.Dump("..")
	require.NoError(t, err)
	db := pgtest.NewEmpty(t)
	db.Restore(t, dump)
	paths, err := filepath.Glob("0*.sql")
	require.NoError(t, err)
	for _, path := range paths[released.Schema:] { // they are numbered without a gap
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Empty(t, problems(t, db, string(text)), "%s", path)
	}
}

// problems applies a migration and says what workers beside it, or programs of the release before,
// would suffer.
func problems(t *testing.T, db *pgtest.DB, text string) []string {
	t.Helper()
	up, down, _ := strings.Cut(text, "-- +goose Down")
	conn, err := pgx.Connect(t.Context(), db.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	before := look(t, conn)
	var found []string
	alone, breaks := strings.Contains(text, "-- +goose NO TRANSACTION"), strings.Contains(text, "\n-- +daybook breaks\n")
	if alone {
		found = outside(t, conn, up)
	} else {
		found = inside(t, conn, up)
	}
	after := look(t, conn)
	if !breaks {
		found = append(found, gone(before, after)...)
	}
	found = append(found, missed(before, after)...)
	changes := guards(before, after)
	maps.Copy(changes, named(t, conn, before, after))
	found = append(found, unexplained(changes, up)...)
	found = append(found, misfits(t, conn)...)
	if alone {
		found = append(found, again(t, conn, up, down)...)
	}
	if len(found) == 0 || breaks { // it takes as long as all the rest
		found = append(found, refused(t, conn)...)
	}
	slices.Sort(found)
	return found
}

// allows is the line by which a file says why a change that may harm is safe.
var allows = regexp.MustCompile(`(?m)^-- \+daybook allows ([^:\n]+): .*\pL`)

// unexplained leaves out the changes that the file explains. changes are the problems by the things
// that change. A thing that the file explains, and that does not change, is a problem as well.
func unexplained(changes map[string]string, text string) (found []string) {
	explained := map[string]bool{}
	for _, m := range allows.FindAllStringSubmatch(text, -1) {
		explained[m[1]] = true
		if changes[m[1]] == "" {
			found = append(found, "allows "+m[1]+", which does not change")
		}
	}
	for thing, problem := range changes {
		if !explained[thing] {
			found = append(found, thing+" "+problem+`; if that is safe, say why: "-- +daybook allows `+thing+`: …"`)
		}
	}
	return found
}
