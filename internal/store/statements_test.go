package store_test

import (
	"errors"
	"flag"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/released"
	"github.com/daybook-dev/daybook/internal/store"
)

// statement is one of the package's statements, as its source has it.
type statement struct {
	at, text string
	// shared: the kinds of queue share it.
	shared bool
}

// noPackages has the sources of this package checked without those that it imports: constants need
// none of them.
type noPackages struct{}

func (noPackages) Import(string) (*types.Package, error) {
	return nil, errors.New("it is not wanted")
}

// startsStatement finds texts that begin as statements do. A WITH names a query next; one before a
// parenthesis gives the parameters of a table's storage.
var startsStatement = regexp.MustCompile(`^\s*(WITH\s+[A-Za-z_]|(SELECT|INSERT INTO|UPDATE|DELETE FROM)\s)`)

// statements reads all SQL statements from the sources of the package, and of those in its folders.
func statements(t *testing.T) map[string]statement {
	t.Helper()
	found := map[string]statement{}
	require.NoError(t, filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && e.Name() != "testdata" {
			addStatements(t, found, path)
		}
		return err
	}))
	delete(found, "")
	return found
}

// parsed are the sources of one folder without its tests, with the values of their constants.
func parsed(t *testing.T, folder string) (*token.FileSet, []*ast.File, types.Info) {
	t.Helper()
	set := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	var files []*ast.File
	for _, path := range paths {
		if !strings.HasSuffix(path, "_test.go") {
			f, err := parser.ParseFile(set, path, nil, 0)
			require.NoError(t, err)
			files = append(files, f)
		}
	}
	info := types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: noPackages{}, Error: func(error) {}}
	_, _ = config.Check(folder, set, files, &info) // what it imports is missing
	return set, files, info
}

// addStatements adds the statements in the sources of one folder.
func addStatements(t *testing.T, found map[string]statement, folder string) {
	t.Helper()
	set, files, info := parsed(t, folder)
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.SelectorExpr); ok && strings.EqualFold(f.Sel.Name, "sql") && len(call.Args) == 1 {
					text := textOf(info, call.Args[0])
					found[text] = statement{set.Position(n.Pos()).String(), text, true}
				}
			}
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text := textOf(info, e)
			if known := found[text]; startsStatement.MatchString(text) && known.text == "" {
				found[text] = statement{set.Position(n.Pos()).String(), text, false}
			}
			// The parts of a text that is put together are no statements.
			_, sum := e.(*ast.BinaryExpr)
			return !sum
		})
	}
}

func textOf(info types.Info, e ast.Expr) string {
	if v := info.Types[e].Value; v != nil && v.Kind() == constant.String {
		return constant.StringVal(v)
	}
	return ""
}

// TestStatementsFitTheSchema has PostgreSQL prepare every statement, those that kinds share for
// each kind, so that none is noticed only when it runs.
func TestStatementsFitTheSchema(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	conn, err := db.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	all := statements(t)
	assert.Greater(t, len(all), 100, "statements that were found")
	var kept []string
	for _, s := range all {
		texts := []string{s.text}
		if s.shared {
			texts = []string{store.Jobs.SQL(s.text), store.Jobs.SQLOfQueues(s.text), store.Accounting.SQL(s.text)}
		}
		for _, text := range texts {
			numbered, _ := store.Number(text)
			numbered = numberAsGORM(numbered)
			_, err := conn.Conn().Prepare(t.Context(), "", numbered)
			assert.NoError(t, err, "%s:\n%s", s.at, text)
			kept = append(kept, strings.TrimSpace(numbered))
		}
	}
	if *keep {
		slices.Sort(kept)
		root := filepath.Join("..", "..")
		require.NoError(t, released.MayKeep(root))
		require.NoError(t, os.WriteFile(released.Path(root, "statements.sql"), []byte(strings.Join(slices.Compact(kept), "\n;\n")+"\n"), 0o644))
	}
}

// keep has the statements written down: migrations that follow the newest release are tested with
// those of its programs.
var keep = flag.Bool("keep", false, "write the statements into testdata of the newest release")

// numberAsGORM writes numbers in the place of GORM's question marks, and some query in the place of
// one that is put in.
func numberAsGORM(text string) string {
	text = strings.ReplaceAll(text, "(?)", "(SELECT id, generation FROM daybook.jobs)")
	for n := 1; strings.Contains(text, "?"); n++ {
		text = strings.Replace(text, "?", "$"+strconv.Itoa(n), 1)
	}
	return text
}

var (
	inBraces = regexp.MustCompile(`\{[a-z][a-z _]*\}`)
	numbered = regexp.MustCompile(`\$([5-9]|[1-9][0-9])`)
	named    = regexp.MustCompile(`@[a-z]`)
)

// TestStatementsCanBeRead: what kinds have instead of each other stands in the statement, and many
// arguments have names.
func TestStatementsCanBeRead(t *testing.T) {
	t.Parallel()
	for _, s := range statements(t) {
		assert.NotRegexp(t, inBraces, s.text, "%s: a word in braces stands for text that is elsewhere", s.at)
		assert.NotRegexp(t, numbered, s.text, "%s: more than four arguments want names", s.at)
		if named.MatchString(s.text) {
			assert.NotContains(t, s.text, "$1", "%s: arguments have names or numbers, not both", s.at)
		}
		if !s.shared {
			assert.NotContains(t, s.text, "/*", "%s: a statement of one kind has no variants", s.at)
			continue
		}
		for _, k := range []*store.Kind{store.Jobs, store.Accounting} {
			assert.NotContains(t, k.SQL(s.text), "/*", "%s: a variant that does not end, or is of an unknown kind", s.at)
			assert.NotContains(t, k.SQL(s.text), "*/", "%s: a variant that does not begin", s.at)
		}
		assert.NotEqual(t, store.Jobs.SQL(s.text), store.Accounting.SQL(s.text),
			"%s: the kinds have the same text: it needs no variants", s.at)
	}
}
