package handlers

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pages"
	"github.com/daybook-dev/daybook/internal/payload"
)

func page(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../docs/job-types.md")
	require.NoError(t, err)
	return string(b)
}

func blocks(t *testing.T, language string) []pages.Block {
	t.Helper()
	all, err := pages.Of("docs/job-types.md", language)
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

func TestDocsNameEverything(t *testing.T) {
	t.Parallel()
	page := page(t)
	for _, b := range builtins {
		assert.Contains(t, page, "\n## "+b.name+"\n")
	}
	for _, config := range []any{
		WebhookConfig{},
		EmailConfig{},
		ReportConfig{},
		CleanupConfig{},
		DBFunctionConfig{},
		SMSConfig{},
		FileDeleteConfig{},
		AirtableConfig{},
		ChatConfig{},
		PushConfig{},
		PlaidConfig{},
	} {
		for field := range reflect.TypeOf(config).Fields() {
			if tag := field.Tag.Get("env"); tag != "-" {
				assert.Contains(t, page, "`"+environmentPrefix+tag+"`", "%T.%s", config, field.Name)
			}
		}
	}
	for field := range reflect.TypeFor[FunctionConfig]().Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "-" {
			assert.Contains(t, page, "\n| `"+name+"` |", field.Name)
		}
	}
	for field := range reflect.TypeFor[functionEntry]().Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); !field.Anonymous {
			assert.Contains(t, page, "`"+name+"`", field.Name)
		}
	}
	for _, p := range []any{
		Webhook{},
		Email{},
		Report{},
		Cleanup{},
		DBFunction{},
		SMS{},
		FileDelete{},
		AirtableSync{},
		AirtableSettings{},
		Notification{},
		PlaidEnrichment{},
	} {
		for field := range reflect.TypeOf(p).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			assert.Contains(t, page, "`"+name+"`", "%T.%s", p, field.Name)
		}
	}
}

// TestTasksPageNamesEverything: what tasks have besides the job types is on their own page.
func TestTasksPageNamesEverything(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../docs/tasks.md")
	require.NoError(t, err)
	for field := range reflect.TypeFor[functionsConfig]().Fields() {
		assert.Contains(t, string(b), "`"+environmentPrefix+field.Tag.Get("env")+"`")
	}
	for _, name := range []string{
		"`to_address`", "`to_number`", "job-types.md#email", "job-types.md#sms",
		"job-types.md#file_delete",
	} {
		assert.Contains(t, string(b), name)
	}
}

// The examples run, and their payloads are what their types ask for.
func TestDocsExamples(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE SCHEMA app; CREATE TABLE app.totals (org_id text, day date, amount bigint)`)
	for _, block := range blocks(t, "sql") {
		b.exec(block.Text)
	}
	for name, p := range map[string]any{
		"webhook": Webhook{}, "email": Email{}, "report": Report{}, "cleanup": Cleanup{}, "db_function": DBFunction{},
		"sms": SMS{}, "file_delete": FileDelete{}, "airtable_sync": AirtableSync{}, "notification": Notification{},
		"plaid_enrichment": PlaidEnrichment{},
	} {
		var raw []byte
		require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT payload FROM daybook.jobs WHERE type = $1`,
			name).Scan(&raw), name)
		schema, err := payload.SchemaFor(reflect.TypeOf(p))
		require.NoError(t, err)
		require.NoError(t, schema.Validate(raw), name)
	}
	h, err := NewDBFunction(DBFunctionConfig{Functions: []string{"app.refresh_totals"}})
	require.NoError(t, err)
	require.NoError(t, h.prepare(callFor(DBFunction{Function: "app.refresh_totals"})))
}

// TestFilesOfFunctions reads the files of functions that the page shows, and the request of one.
func TestFilesOfFunctions(t *testing.T) {
	t.Parallel()
	files, requests := blocks(t, "yaml"), blocks(t, "json")
	require.Len(t, files, 2)
	for _, file := range files {
		path := filepath.Join(t.TempDir(), "functions.yaml")
		require.NoError(t, os.WriteFile(path, []byte(file.Text), 0o600))
		entries, err := functionEntries(path)
		require.NoError(t, err, file.Text)
		for _, e := range entries {
			_, err := e.policy("growth")
			assert.NoError(t, err, file.Text)
		}
	}
	require.Len(t, requests, 1)
	decoder := json.NewDecoder(strings.NewReader(requests[0].Text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&FunctionRequest{}), requests[0].Text)
}
