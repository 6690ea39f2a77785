package pgtest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/dev/testdb"
)

// Dump returns the schemas daybook, queues and internal of the database as pg_dump writes them,
// without rows, and without the tables in which the migrations keep their own books. A server that
// was installed without pg_dump, as those of scripts/postgres.sh, skips the test.
func (db *DB) Dump(tb testing.TB) string {
	tb.Helper()
	return db.dump(tb, "--schema-only", "--schema=daybook", "--schema=queues", "--schema=internal",
		"--exclude-table=daybook.schema_*")
}

// DumpAll returns the whole database with its rows, without owners, as statements that Restore sends
// to a server that has the roles.
func (db *DB) DumpAll(tb testing.TB) string {
	tb.Helper()
	return db.dump(tb, "--no-owner", "--no-comments", "--rows-per-insert=100")
}

// Restore sends what DumpAll returned, as one transaction.
func (db *DB) Restore(tb testing.TB, dump string) {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), db.URL)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	if _, err := conn.PgConn().Exec(tb.Context(), dump).ReadAll(); err != nil {
		tb.Fatalf("pgtest: restore: %v", err)
	}
	if err := conn.Close(tb.Context()); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
}

func (db *DB) dump(tb testing.TB, flags ...string) string {
	tb.Helper()
	var lines strings.Builder
	for line := range strings.Lines(Program(tb, append(append([]string{"pg_dump"}, flags...), "--dbname="+db.URL)...)) {
		// Newer versions guard a dump with a random key, and set what older servers do not know.
		if !strings.HasPrefix(line, `\restrict `) && !strings.HasPrefix(line, `\unrestrict `) &&
			!strings.HasPrefix(line, "SET transaction_timeout") {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

// Program runs one of the server's own programs, such as pg_restore, and returns what it prints. A
// server that was installed without it skips the test.
func Program(tb testing.TB, words ...string) string {
	tb.Helper()
	program, err := program(tb.Context(), shared(tb), words[0])
	if errors.Is(err, os.ErrNotExist) {
		tb.Skipf("the server was installed without %s: %v", words[0], err)
	}
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	command := exec.CommandContext(tb.Context(), program, words[1:]...)
	// The session does not take the application's settings from the environment.
	command.Env = append(os.Environ(), "PGOPTIONS=")
	var problems bytes.Buffer
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		tb.Fatalf("pgtest: %s: %v: %s", program, err, problems.String())
	}
	return string(output)
}

// Superuser is the database's address for the server's superuser. A server that is not ours skips
// the test.
func (db *DB) Superuser(tb testing.TB) string {
	tb.Helper()
	address, err := shared(tb).AdminURL(db.Name)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	if address == "" {
		tb.Skip("the server is not this test's own, so neither is its superuser")
	}
	return address
}

// program returns the path of one of the server's own programs; that on the PATH when the server is
// not ours.
func program(ctx context.Context, s *testdb.Server, name string) (string, error) {
	if !s.Own() {
		return exec.LookPath(name)
	}
	dir, err := s.Programs(ctx)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	_, err = os.Stat(path)
	return path, err
}
