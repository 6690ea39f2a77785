package publicapi_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/publicapi"
)

// shown are the packages whose functions a program calls. models is rows, workflows and activities
// are registered by workers.
var shown = []string{
	"queue", "daybooktest/queuetest", "jobs", "tasks", "workers", "posting", "migrations", "handlers", "schedules",
	"daybooktest", "source",
	"books", "inspect", "tokens",
}

// plain are functions whose use shows itself, or is shown by the example of another.
var plain = map[string]bool{
	"daybooktest.Balances": true, "daybooktest.Main": true, "daybooktest.Run": true, "daybooktest.SQL": true,
	"daybooktest.SampleAccounts": true, "daybooktest.SampleRules": true,
	"handlers.CleanupPolicy": true, "handlers.DBFunctionPolicy": true, "handlers.EmailPolicy": true,
	"handlers.ReportPolicy": true, "handlers.WebhookPolicy": true,
	"handlers.FileDeletePolicy": true, "handlers.SMSPolicy": true, "handlers.NewFileDelete": true,
	"handlers.NewSMS":         true,
	"handlers.AirtablePolicy": true, "handlers.NewAirtable": true, "handlers.NotificationPolicy": true,
	"handlers.NewNotification": true, "handlers.PlaidPolicy": true, "handlers.NewPlaid": true,
	"handlers.NewCleanup": true, "handlers.NewDBFunction": true, "handlers.NewEmail": true, "handlers.NewReport": true,
	"jobs.NewRegistry":       true,
	"migrations.Roles":       true,
	"migrations.Schema":      true,
	"migrations.Wrong":       true,
	"posting.CaseSchema":     true,
	"posting.Schema":         true,
	"queue.SetDefaultHooks":  true,
	"queue.SetDefaultSource": true,
	"tasks.NewRegistry":      true,
	"source.Columns":         true,
}

// examples are the names of a folder's examples whose output is checked.
func examples(t *testing.T, folder string) map[string]bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "..", folder, "*_test.go"))
	require.NoError(t, err)
	var files []*ast.File
	set := token.NewFileSet()
	for _, path := range paths {
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, file)
	}
	names := map[string]bool{}
	for _, e := range doc.Examples(files...) {
		assert.True(t, e.Output != "" || e.EmptyOutput, "%s: Example%s has no checked output, and is only compiled", folder,
			e.Name)
		names[e.Name] = true
	}
	return names
}

// Every function that a program calls has an example that runs.
func TestEveryEntryPointHasAnExample(t *testing.T) {
	t.Parallel()
	packages, err := publicapi.Load(t.Context(), "../../..")
	require.NoError(t, err)
	total := 0
	for _, p := range packages {
		folder := strings.TrimPrefix(p.Path(), publicapi.Module+"/")
		has := examples(t, folder)
		total += len(has)
		for _, name := range p.Scope().Names() {
			f, ok := p.Scope().Lookup(name).(*types.Func)
			if !ok || !f.Exported() || plain[p.Name()+"."+name] {
				continue
			}
			if slices.Contains(shown, folder) {
				assert.True(t, has[name], "%s.%s has no example: write Example%s in %s/", p.Name(), name, name, folder)
			}
		}
	}
	assert.GreaterOrEqual(t, total, 37)
	t.Logf("%d examples", total)
}
