package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/migrations"
)

// readAll concatenates files.
func readAll(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files, pattern)
	var b strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		b.Write(data)
	}
	return b.String()
}

// TestLedgerDocumentation: what docs/ledger.md names is there.
func TestLedgerDocumentation(t *testing.T) {
	t.Parallel()
	docs := readAll(t, "../../docs/ledger.md")
	tests := readAll(t, "../../internal/*/*_test.go") + readAll(t, "../../migrations/*_test.go") + readAll(t, "*_test.go") +
		readAll(t, "../../admin/books/*_test.go")
	for _, name := range regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(docs, -1) {
		assert.Contains(t, tests, "func "+name[1]+"(", "a test that shows it")
	}
	schema := readAll(t, "../../migrations/*.sql")
	for _, name := range []string{
		"entries_check", "impacts_check", "impacts_append_only", "entries_append_only", "confirmations_append_only",
		"chain_alternates",
		"chain_has_no_gap", "impacts_once", "dates_are_bookable", "closed_spans", "lock_configuration",
		"try_use_configurations", "periods_check", "DB001", "DB002", "DB003", "DB004", "DB005", "DB006",
		"documents_continue_versions",
	} {
		assert.Contains(t, docs, "`"+name+"`")
		assert.Contains(t, schema, name)
	}
	b := setup(t)
	report, err := audit.Run(t.Context(), b.Pool, audit.Options{Guards: audit.GuardsOf(migrations.Schema())})
	require.NoError(t, err)
	for _, c := range report.Checks {
		assert.Contains(t, docs, "| `"+c.Kind+"` |")
	}
}
