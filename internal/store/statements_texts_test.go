package store_test

import (
	"flag"
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
)

var update = flag.Bool("update", false, "write the texts of the shared statements anew")

// marked finds statements that have another text for each kind.
var marked = regexp.MustCompile(`/\* (jobs|accounting|queues)\b`)

// TestTextsOfSharedStatements: testdata/statements has the text of each statement that kinds share,
// as PostgreSQL is sent it. -update writes them anew.
func TestTextsOfSharedStatements(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	for name, stmt := range markedStatements(t) {
		plain := store.Jobs.SQL(stmt)
		want["jobs/"+name] = plain
		want["accounting/"+name] = store.Accounting.SQL(stmt)
		if queues := store.Jobs.SQLOfQueues(stmt); queues != plain {
			want["queues/"+name] = queues
		}
	}
	assert.Greater(t, len(want), 50, "texts that were found")
	root := filepath.Join("testdata", "statements")
	if *update {
		require.NoError(t, os.RemoveAll(root))
	}
	for path, stmt := range want {
		path, text := filepath.Join(root, path+".sql"), printed(stmt)
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		if text != string(got) {
			t.Errorf("%s is another text: write it with -update, and look at git diff", path)
		}
	}
	require.NoError(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			name, _ := filepath.Rel(root, strings.TrimSuffix(path, ".sql"))
			assert.Contains(t, want, filepath.ToSlash(name), "there is no such statement any more")
		}
		return err
	}))
}

// printed is a text with numbered arguments, whose names stand before it. EXPLAIN (GENERIC_PLAN)
// takes it as it is.
func printed(stmt string) string {
	text, names := store.Number(stmt)
	var b strings.Builder
	for i, name := range names {
		fmt.Fprintf(&b, "-- $%d %s\n", i+1, name)
	}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		if line = strings.TrimRight(line, " \n"); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// markedStatements are the statements of the package that have another text for each kind, by name:
// that of the constant, or, of one that a function calls stmt, that of the function.
func markedStatements(t *testing.T) map[string]string {
	t.Helper()
	found := maps.Clone(store.Shortened)
	_, files, info := parsed(t, ".")
	for _, f := range files {
		for _, d := range f.Decls {
			function := ""
			if fn, ok := d.(*ast.FuncDecl); ok {
				function = fn.Name.Name
			}
			ast.Inspect(d, func(n ast.Node) bool {
				spec, ok := n.(*ast.ValueSpec)
				if !ok || len(spec.Values) != 1 {
					return true
				}
				text := textOf(info, spec.Values[0])
				if !marked.MatchString(text) || !startsStatement.MatchString(store.Jobs.SQL(text)) {
					return true
				}
				name := nameOf(function, spec.Names[0].Name)
				assert.NotContains(t, found, name, "two statements have one name")
				found[name] = text
				return true
			})
		}
	}
	return found
}

func nameOf(function, constant string) string {
	name := strings.TrimSuffix(constant, "Stmt")
	switch {
	case function == "":
		return name
	case name == "stmt":
		return function
	}
	return function + "_" + name
}
