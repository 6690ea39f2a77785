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

	"github.com/daybook-dev/daybook/internal/dev/testdb"
)

// Dump returns the schemas daybook, queues and internal of the database as pg_dump writes them,
// without rows, and without the tables in which the migrations keep their own books. A server that
// was installed without pg_dump, as those of scripts/postgres.sh, skips the test.
func (db *DB) Dump(tb testing.TB) string {
	tb.Helper()
	program, err := program(tb.Context(), shared(tb), "pg_dump")
	if errors.Is(err, os.ErrNotExist) {
		tb.Skipf("the server was installed without pg_dump: %v", err)
	}
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	command := exec.CommandContext(tb.Context(), program, "--schema-only", "--schema=daybook", "--schema=queues",
		"--schema=internal", "--exclude-table=daybook.schema_*", "--dbname="+db.URL)
	// The session does not take the application's settings from the environment.
	command.Env = append(os.Environ(), "PGOPTIONS=")
	var problems bytes.Buffer
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		tb.Fatalf("pgtest: %s: %v: %s", program, err, problems.String())
	}
	var lines strings.Builder
	for line := range strings.Lines(string(output)) {
		// Newer versions guard a dump with a random key.
		if !strings.HasPrefix(line, `\restrict `) && !strings.HasPrefix(line, `\unrestrict `) {
			lines.WriteString(line)
		}
	}
	return lines.String()
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
