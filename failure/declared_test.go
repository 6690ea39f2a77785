package failure_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// declaring are the folders whose errors callers meet, and how the names of these errors begin. An
// error that is exported again under another name is looked up where it is declared.
var declaring = map[string]string{
	"queue": "Err", "jobs": "Err", "workers": "Err", "migrations": "Err", "admin/schedules": "Err", "admin/books": "Err",
	"admin/inspect": "Err", "admin/tokens": "Err", "handlers": "Err", "accounting/posting": "Err", "models": "Err",
	"activities": "Err", "workflows": "Err", "daybooktest/queuetest": "Err",
	"internal/store": "Err", "internal/store/direct": "Err", "internal/store/ledgerdb": "Err", "internal/store/listing": "Err",
	"internal/store/tokens": "Err", "internal/moving/importer": "Err", "internal/moving/adopt": "Err",
	"internal/moving/export": "Err", "internal/dev/devstack": "Err",
	"server/internal/httpapi": "err", "server/internal/console": "err",
	"cmd/daybook/cli": "Err", "cmd/daybook/start": "err", "cmd/daybook/dev": "err", "cmd/daybook/look": "err",
	"cmd/daybook/work": "err", "cmd/daybook/books": "err", "cmd/daybook/keep": "err",
}

// An error gets its class where it is declared: that is the one place.
func TestEveryErrorHasAClass(t *testing.T) {
	t.Parallel()
	found := 0
	for folder, prefix := range declaring {
		for name, value := range declared(t, folder, prefix) {
			found++
			assert.True(t, classed(t, value), "%s.%s: declare it by failure.New with its class, in place of errors.New",
				folder, name)
		}
	}
	assert.Greater(t, found, 60)
}

// classed reports whether a value is failure.New(…), or the name of an error of another package
// that is.
func classed(t *testing.T, value ast.Expr) bool {
	t.Helper()
	switch v := value.(type) {
	case *ast.CallExpr:
		f, ok := v.Fun.(*ast.SelectorExpr)
		return ok && f.Sel.Name == "New" && f.X.(*ast.Ident).Name == "failure"
	case *ast.SelectorExpr:
		from := v.X.(*ast.Ident).Name
		for _, folder := range []string{from, "admin/" + from, "internal/" + from, "internal/store/" + from} {
			if there, ok := declared(t, folder, "Err")[v.Sel.Name]; ok {
				return classed(t, there)
			}
		}
	}
	return false
}

// declared are the package-level error variables of a folder whose names begin with prefix.
func declared(t *testing.T, folder, prefix string) map[string]ast.Expr {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
	require.NoError(t, err)
	values := map[string]ast.Expr{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.VAR {
				continue
			}
			for _, s := range group.Specs {
				spec := s.(*ast.ValueSpec)
				for i, name := range spec.Names {
					if after, ok := strings.CutPrefix(name.Name, prefix); ok && after != "" && ast.IsExported(after) &&
						i < len(spec.Values) {
						values[name.Name] = spec.Values[i]
					}
				}
			}
		}
	}
	return values
}

// store.Invalid says what is wrong with a request: the sentinel's own words, "invalid request", add
// nothing to that.
func TestInvalidRequestsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	wrapped := regexp.MustCompile(`Errorf\([^\n]*\b(store|queue|books|inspect|tokens)\.ErrInvalid\b`)
	root := ".."
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if dir := filepath.Base(filepath.Dir(path)); dir == "store" || dir == "queue" || dir == "books" {
			text = bytes.ReplaceAll(text, []byte(" ErrInvalid"), []byte(" "+dir+".ErrInvalid"))
		}
		assert.Empty(t, string(wrapped.Find(text)), "%s: use store.Invalid", path)
		return err
	}))
}
