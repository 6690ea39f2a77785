package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Variables of the environment, as Go code names them. Those of Temporal are read by its own library.
var (
	wholeVariable = regexp.MustCompile(`^(DAYBOOK|OTEL|ACCOUNTING_QUEUE|JOB_QUEUE|TASK_QUEUE)_[A-Z0-9_]*[A-Z0-9]$`)
	// kindOfSecret is what package handlers puts before a secret's name, without DAYBOOK_.
	kindOfSecret = regexp.MustCompile(`^[A-Z][A-Z0-9_]*_$`)
	unitVariable = regexp.MustCompile(`\$\{?(DAYBOOK_[A-Z0-9_]+)`)
)

// settings are the variables that the program and the units of its package read.
func settings(t *testing.T) []string {
	t.Helper()
	var lines []string
	is := func(names ...string) {
		for _, name := range names {
			lines = append(lines, "setting: "+name)
		}
	}
	require.NoError(t, filepath.WalkDir(checkout, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(checkout, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			switch filepath.ToSlash(folder) {
			case "bench", "clients", "examples", "internal/dev", "cmd/daybook/internal/newapp/app", "tools", "bin", ".git":
				return filepath.SkipDir
			}
		case filepath.Ext(path) == ".go" && !strings.HasSuffix(path, "_test.go"):
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			is(variables(file)...)
		case filepath.Ext(path) == ".service":
			text, err := os.ReadFile(path)
			for _, found := range unitVariable.FindAllSubmatch(text, -1) {
				is(string(found[1]))
			}
			return err
		}
		return nil
	}))
	return lines
}

// variables are those that a file reads: the tags env of structs, and what looks like a variable's
// name. In package handlers, names have no DAYBOOK_, and one that ends with _ is for secrets of any name.
func variables(file *ast.File) (names []string) {
	prefix := ""
	if file.Name.Name == "handlers" {
		prefix = "DAYBOOK_"
	}
	text := func(e ast.Expr) string {
		if literal, is := e.(*ast.BasicLit); is && literal.Kind == token.STRING {
			s, _ := strconv.Unquote(literal.Value)
			return s
		}
		return ""
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if n.Tag != nil {
				if name := reflect.StructTag(text(n.Tag)).Get("env"); name != "" && name != "-" {
					names = append(names, prefix+name)
				}
			}
		case *ast.BinaryExpr:
			if x, is := n.X.(*ast.Ident); is && x.Name == "environmentPrefix" && text(n.Y) != "" && !kindOfSecret.MatchString(text(n.Y)) {
				names = append(names, prefix+text(n.Y))
			}
		case *ast.BasicLit:
			switch s := text(n); {
			case wholeVariable.MatchString(s):
				names = append(names, s)
			case prefix != "" && s != prefix && kindOfSecret.MatchString(s):
				names = append(names, prefix+s+"<NAME>")
			}
		}
		return true
	})
	return names
}

// Each way to read a variable is found.
func TestSettingsAreFound(t *testing.T) {
	t.Parallel()
	found := settings(t)
	for _, name := range []string{
		"DAYBOOK_DATABASE_URL", "DAYBOOK_DATABASE_DIRECT_URL", "DAYBOOK_SLACK_URL", "DAYBOOK_SLACK_SECRET_<NAME>", "DAYBOOK_AIRTABLE_TOKEN_<NAME>",
		"DAYBOOK_SECRET_ORGS_<NAME>", "DAYBOOK_SECRETS_DIR", "DAYBOOK_JOBS_OWNER", "DAYBOOK_SMTP_PASSWORD", "DAYBOOK_FUNCTIONS_FILE", "DAYBOOK_ARCHIVE",
		"DAYBOOK_LOG_JOBS", "DAYBOOK_MAIL_TEMPLATES", "DAYBOOK_WORKER_FLAGS", "ACCOUNTING_QUEUE_RETRY_BASE_SECONDS", "OTEL_SDK_DISABLED", "NO_COLOR",
	} {
		assert.Contains(t, found, "setting: "+name)
	}
	// One that begins as secrets of a kind do would be taken for such a secret.
	for _, kind := range found {
		begins, isKind := strings.CutSuffix(kind, "<NAME>")
		for _, other := range found {
			assert.False(t, isKind && other != kind && strings.HasPrefix(other, begins), "%s and %s", kind, other)
		}
	}
}
