package locks_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/models/locks"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// takers are the files that name each class or lock. A file more for a class is written here after
// its purpose was read: it must be the same one.
var takers = map[string][]string{
	"wakers":               {"internal/store/wake/lock.go", "internal/store/waker.go", "migrations/00001_common.sql"},
	"reclaim":              {"internal/store/reclaim.go"},
	"organization leases":  {"internal/store/organizations_rates.go", "migrations/00025_async_operations.sql", "migrations/00029_jobs_claim.sql"},
	"type leases":          {"internal/store/lease_shares.go"},
	"configuration groups": {"migrations/00002_organizations.sql"},
	"configurations":       {"migrations/00002_organizations.sql"},
	"sampler":              {"internal/watching/sampler/sampler.go"},
	"adoption":             {"internal/moving/adopt/record.go"},
	"task type leases":     {"migrations/00016_tasks_worker.sql"},
	"async operations":     {"migrations/00025_async_operations.sql"},
	"queue leases":         {"internal/store/queues_limits.go", "migrations/00029_jobs_claim.sql"},
	"fleets":               {"migrations/00022_queues.sql"},
	"job limits":           {"migrations/00030_limits.sql"},
	"reconciliations":      {"migrations/00032_open_items.sql"},
	"workers":              {"internal/store/figures/life.go", "internal/store/reclaimer.go", "internal/store/wake/waker.go"},
	"migrations":           {"migrations/migrations.go", "migrations/roles.go"},
	"archive":              {"internal/store/archives.go"},
}

var (
	call = regexp.MustCompile(`pg_(?:try_)?advisory_\w+\(([^(,)]*(?:\('[^']*'\))?)`)
	// inSQL is a class as SQL names it, inGo a class or lock as Go does.
	inSQL = regexp.MustCompile(`daybook\.lock_class\('([^']*)'\)`)
	inGo  = regexp.MustCompile(`\blocks\.([A-Z]\w*)`)
	// number is one of ours, in any way to write it.
	number = regexp.MustCompile(`16841096\d\d|(?i:646179626f6f6b)`)
	word   = regexp.MustCompile(`[A-Z][a-z]+`)
)

// sources calls f with each file of Go and SQL that takes locks: not tests, and not what is made
// from others.
func sources(t *testing.T, f func(path, text string)) {
	t.Helper()
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case e.IsDir() && (strings.HasPrefix(e.Name(), ".") && name != "." || e.Name() == "node_modules" ||
			e.Name() == "testdata"):
			return filepath.SkipDir
		case e.IsDir(), strings.HasSuffix(name, "_test.go"), filepath.Dir(name) == "models/locks",
			name == "migrations/schema.sql":
			return nil
		case filepath.Ext(name) != ".go" && filepath.Ext(name) != ".sql":
			return nil
		}
		text, err := os.ReadFile(path)
		f(filepath.ToSlash(name), string(text))
		return err
	}))
}

// TestEachLockHasAName reads all statements that take an advisory lock: each names its class, and
// each class is for what its files do alone.
func TestEachLockHasAName(t *testing.T) {
	t.Parallel()
	found := map[string][]string{}
	note := func(name, path string) {
		if !slices.Contains(found[name], path) {
			found[name] = append(found[name], path)
		}
	}
	sources(t, func(path, text string) {
		isSQL := filepath.Ext(path) == ".sql"
		for _, m := range call.FindAllStringSubmatch(text, -1) {
			if isSQL {
				assert.Regexp(t, inSQL, m[1], "%s: %s: name the class by daybook.lock_class", path, m[0])
			} else {
				assert.Contains(t, []string{"$1", "%d"}, m[1], "%s: %s: give the class, or the lock, as an argument", path,
					m[0])
			}
		}
		if path != "migrations/00001_common.sql" { // which has the table
			assert.NotRegexp(t, number, text, "%s: take the name from models/locks", path)
		}
		for _, m := range inSQL.FindAllStringSubmatch(text, -1) {
			note(m[1], path)
		}
		if strings.Contains(text, `daybook/models/locks"`) {
			for _, m := range inGo.FindAllStringSubmatch(text, -1) {
				if name := strings.ToLower(strings.Join(word.FindAllString(m[1], -1), " ")); name != "class" {
					note(name, path)
				}
			}
		}
	})
	for _, paths := range found {
		slices.Sort(paths)
	}
	assert.Equal(t, takers, found)
}

// TestClassesAreThoseOfSQL: each class has one number, the same in SQL and Go.
func TestClassesAreThoseOfSQL(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	numbers := map[locks.Class]string{}
	for name, class := range locks.Names {
		assert.Empty(t, numbers[class], "%d is that of two purposes: %s", class, name)
		numbers[class] = name
		var known *locks.Class
		require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT daybook.lock_class($1)`, name).Scan(&known))
		assert.Equal(t, &class, known, name)
		assert.Contains(t, takers, name)
	}
	var listed int
	require.NoError(t, db.Pool.QueryRow(t.Context(),
		`SELECT count(*) FROM regexp_matches(pg_get_functiondef('daybook.lock_class'::regproc), 'WHEN', 'g')`).Scan(&listed))
	assert.Len(t, locks.Names, listed)
	assert.NotEqual(t, locks.Migrations, locks.Archive)
}
