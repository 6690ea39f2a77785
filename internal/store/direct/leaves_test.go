package direct_test

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
)

// leaves is what stays in a session when its transaction ends: a setting, a lock, what it listens
// to, a temporary table, a cursor, a prepared statement with a name.
var leaves = regexp.MustCompile("[\"`;]\\s*SET\\s+(SESSION\\s+)?[a-z_.]+\\s+(=|TO)\\s|[\"`;]\\s*(UN)?LISTEN |" +
	`set_config\([^;]*?,\s*false\)|pg_(try_)?advisory_lock(_shared)?\(|\bCREATE TEMP|\bWITH HOLD\b|` +
	`\bSET (ROLE|SESSION AUTHORIZATION)\b|\.Prepare\(ctx, "[^"]`)

// ofTransaction looks like it, and ends with the transaction.
var ofTransaction = regexp.MustCompile(`SET\s+transaction_isolation`)

// may are the files with sessions that are theirs alone, for as long as these last, and those that
// only look as if they left something.
var may = map[string]string{
	"migrations/migrations.go":                 "requires a direct connection",
	"migrations/locking.go":                    "works in the session of migrations.go",
	"queue/events_listen.go":                   "requires a direct connection",
	"internal/store/wake/waker.go":             "VerifyWorker requires a direct connection",
	"internal/store/wake/lock.go":              "VerifyWorker requires a direct connection",
	"cmd/daybook/cli/pool.go":                  "asks whether the session is its own in the same statement",
	"internal/watching/health/database.go":     "advises an operator",
	"internal/moving/adopt/accounting_take.go": "is a part of UPDATE",
}

// TestSessionsAreLeftAsTheyWere: behind a pooler the session is another client's after each
// transaction. SET LOCAL, set_config(…, true) and pg_advisory_xact_lock end with the transaction.
func TestSessionsAreLeftAsTheyWere(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	apart := []string{"bench", "examples", "tools", ".git", "internal/dev", "clients", "docs", "testdata", "cmd/daybook/internal/newapp/app"}
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		switch ext := filepath.Ext(name); {
		case e.IsDir() && slices.Contains(apart, name):
			return fs.SkipDir
		case e.IsDir() || ext != ".go" && ext != ".sql" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range leaves.FindAllString(string(source), -1) {
			if ofTransaction.MatchString(match) {
				continue
			}
			found[name] = true
			assert.Contains(t, may, name, "%q stays in the session when the transaction ends", match)
		}
		return nil
	})
	require.NoError(t, err)
	for name := range may {
		assert.True(t, found[name], "%s leaves nothing: take it off the list", name)
	}
}
