package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/books"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/dev/pages"
)

// TestImportIsTakenBack does what the import prints as the next step: it looks at the import, undoes
// it, and imports the corrected file.
func TestImportIsTakenBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	file := write(t, t.TempDir()+"/sales.ndjson", `{"org_id": "acme", "id": "1", "type": "payment", "direction": "in", "currency": "EUR", "issue_date": "2026-03-14", "content": {"amount": 100}}
{"org_id": "acme", "id": "2", "type": "payment", "direction": "in", "currency": "EUR", "issue_date": "2026-03-14", "content": {"amount": 200}}
`)
	r := b.run("import", "ndjson", file)
	require.Zero(t, r.exit, r.err)
	assert.Contains(t, r.out, "2 new, 0 changed")
	var list answers.ImportList
	b.json(&list, "import", "list", "--org", "acme")
	require.Len(t, list.Imports, 1)
	made := list.Imports[0]
	assert.Equal(t, "ndjson", made.Format)
	assert.Equal(t, file, made.Files)
	assert.NotEmpty(t, made.Actor)
	assert.EqualValues(t, 2, made.Inserted)
	assert.NotNil(t, made.EndedAt)
	assert.Contains(t, r.out, fmt.Sprintf("import %d of organization acme: 2 new, 0 changed", made.ID))
	sessions, err := pages.Of("docs/import.md", pages.Console)
	require.NoError(t, err)
	require.Len(t, sessions, 1)
	number := regexp.MustCompile(`\d+`)
	assert.Equal(t, number.ReplaceAllString(sessions[0].Outputs()[0], "N"), number.ReplaceAllString(r.out, "N"), "as the page shows it")
	assert.Contains(t, r.err, fmt.Sprintf("`daybook import undo %d --dry-run`", made.ID))
	b.work()

	id := fmt.Sprint(made.ID)
	r = b.run("import", "undo", id, "--dry-run")
	assert.Contains(t, r.out, "dry run, nothing is changed: import "+id+" of organization acme: 0 removed, 2 reversed, 0 restored, 0 kept")
	assert.Equal(t, number.ReplaceAllString(sessions[0].Outputs()[1], "N"), number.ReplaceAllString(r.out, "N"), "as the page shows it")
	var undone answers.Undone
	b.json(&undone, "import", "undo", id)
	assert.EqualValues(t, 2, undone.Reversed)
	b.work()
	assert.Regexp(t, `1200 .* 3\.00 +3\.00 +0\.00`, b.ok("trial-balance", "--org", "acme"))
	r = b.run("import", "undo", id)
	assert.Zero(t, r.exit)
	assert.Contains(t, r.out, "0 removed, 0 reversed, 0 restored, 0 kept")
	assert.Contains(t, r.err, "Nothing was left to undo.")
	assert.Contains(t, b.ok("import", "list"), "done")

	write(t, file, strings.ReplaceAll(read(t, file), `"in"`, `"out"`))
	var again books.ImportResult
	b.json(&again, "import", "ndjson", file)
	assert.Equal(t, 2, again.Inserted)
	write(t, file, strings.ReplaceAll(read(t, file), `"out"`, `"in"`))
	b.ok("import", "ndjson", file)
	r = b.run("import", "undo", fmt.Sprint(again.Imports[0].ID))
	assert.Contains(t, r.out, "CHANGED_SINCE")
	assert.Contains(t, r.err, "Nothing was undone")
	assert.Equal(t, failure.ExitNotFound, b.run("import", "undo", "999").exit)
	assert.Equal(t, failure.ExitUsage, b.run("import", "undo", "x").exit)
	var log answers.ActionList
	b.json(&log, "actions", "list", "--action", "imports.undo", "--subject", id)
	require.NotEmpty(t, log.Actions)
	assert.Equal(t, "acme", log.Actions[0].OrgID)
}

// What a document was before the import may not be posted any more: the undo says so, and why.
func TestAnUndoSaysWhatCannotBePostedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	file := write(t, t.TempDir()+"/sales.ndjson", `{"org_id": "acme", "id": "1", "type": "payment", "direction": "in", "currency": "EUR", "issue_date": "2026-03-14", "content": {"amount": 100}}
`)
	b.ok("import", "ndjson", file)
	write(t, file, strings.ReplaceAll(read(t, file), "2026-03-14", "2026-04-14"))
	var made books.ImportResult
	b.json(&made, "import", "ndjson", file)
	require.Equal(t, 1, made.Changed)
	b.ok("periods", "add", "--org", "acme", "--month", "2026-03")
	b.ok("periods", "close", "--org", "acme", "--month", "2026-03", "--force")
	id := fmt.Sprint(made.Imports[0].ID)
	r := b.run("import", "undo", id, "--dry-run")
	assert.Contains(t, r.out, "cannot be posted  1: PERIOD_CLOSED: ")
	assert.Contains(t, r.out, "what 1 restored document was before the import cannot be posted")
	var undone answers.Undone
	b.json(&undone, "import", "undo", id)
	assert.EqualValues(t, 1, undone.Restored)
	require.Len(t, undone.Failing, 1)
	assert.Equal(t, "PERIOD_CLOSED", undone.Failing[0].Code)
	assert.Equal(t, "1", undone.Failing[0].ID)
	assert.NotEmpty(t, undone.Failing[0].Message)
}
