package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pages"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
)

// legacy makes the legacy tables in public, with a completed, an open and a failed row of the
// organization acme, and the documented view.
func (b *bundle) legacy() {
	b.t.Helper()
	tables, err := os.ReadFile("../../internal/moving/adopt/testdata/legacy.sql")
	require.NoError(b.t, err)
	views, err := pages.Of("docs/adopting.md", "sql")
	require.NoError(b.t, err)
	require.Len(b.t, views, 1)
	_, err = b.Pool.Exec(b.t.Context(), `BEGIN; SET LOCAL search_path = public;`+string(tables)+views[0].Text+`
INSERT INTO organization VALUES ('acme', 'Acme');
INSERT INTO documents (id, org_id, net, accounting_ready_at, accounting_ready_version) SELECT 'doc-' || i, 'acme', 1000, now(), 1 FROM generate_series(1, 3) i;
INSERT INTO accounting_work_queue (id, updated_at, org_id, document_id, version_hint, state, run_count, last_error)
VALUES ('c1', now(), 'acme', 'doc-1', 1, 'completed', 1, NULL), ('c2', now(), 'acme', 'doc-2', 1, 'pending', 0, NULL), ('c3', now(), 'acme', 'doc-3', 1, 'failed', 6, 'reset');
INSERT INTO financial_entries (org_id, document_id, account, debit_cents, credit_cents) VALUES ('acme', 'doc-1', '1200', 1190, 0), ('acme', 'doc-1', '3800', 0, 190), ('acme', 'doc-1', '4400', 0, 1000);
COMMIT`)
	require.NoError(b.t, err)
}

// TestAdoptingAsDocumented runs the commands of docs/adopting.md in their order, on tables as
// Prisma makes them.
func TestAdoptingAsDocumented(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	b.legacy()
	commands, err := pages.Commands("daybook")
	require.NoError(t, err)
	var outs []string
	for _, c := range commands {
		if c.Page == "docs/adopting.md" && c.Whole && c.Words[1] == "adopt" {
			outs = append(outs, b.ok(c.Words[1:]...))
		}
	}
	require.Len(t, outs, 5, "look, apply, verify, forward, undo")
	assert.Contains(t, outs[0], "Nothing was changed. --apply would adopt 3 rows.")
	assert.Contains(t, outs[1], "3 rows adopted")
	assert.Contains(t, outs[2], "nothing differs")
	assert.Contains(t, outs[3], "0 rows adopted")
	assert.Contains(t, outs[4], "3 rows given back")
	assert.Contains(t, outs[4], "the trigger is off public.accounting_work_queue")
	assert.Equal(t, 3, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM public.accounting_work_queue WHERE (id, state::text) IN (('c1', 'completed'), ('c2', 'pending'), ('c3', 'failed'))`))
	actions := b.ok("actions", "list", "--action", "adopt.accounting-queue")
	assert.Equal(t, 3, strings.Count(actions, "adopt.accounting-queue"), "what changed something is in the log: %s",
		actions)
}

// TestPostedElsewhereIsShown by explain and by the command of its own, which decides.
func TestPostedElsewhereIsShown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	b.legacy()
	b.ok("adopt", "accounting-queue", "--entries", "public.legacy_entries", "--apply")
	assert.Contains(t, b.ok("explain", "acme", "doc-1"), "version 1 is posted by public.accounting_work_queue")
	var shown struct {
		Version int64
		Next    string
		Entries []struct{ Account string }
	}
	require.NoError(t, json.Unmarshal([]byte(b.ok("accounting", "elsewhere", "acme", "doc-1", "--json")), &shown))
	assert.EqualValues(t, 1, shown.Version)
	assert.Equal(t, "difference", shown.Next)
	assert.Len(t, shown.Entries, 3)
	b.ok("accounting", "elsewhere", "acme", "doc-1", "--post", "full")
	assert.Contains(t, b.ok("accounting", "elsewhere", "acme", "doc-1"), "Daybook posts the document in full")
	assert.Equal(t, 3, b.run("accounting", "elsewhere", "acme", "doc-2").exit)
	assert.Equal(t, 2, b.run("adopt", "accounting-queue", "--apply", "--undo").exit)
	assert.Equal(t, 3, b.run("adopt", "accounting-queue", "--table", "public.nowhere").exit)
	assert.Equal(t, 6, b.run("adopt", "accounting-queue", "--table", "public.documents", "--apply").exit)
}
