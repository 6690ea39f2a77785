package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/keep"
	"github.com/daybook-dev/daybook/cmd/daybook/work"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
)

// wholeLists are the commands that list without pages, and why their lists stay short, or are read
// as a whole.
var wholeLists = map[string]string{
	"accounts list":  "a chart of accounts is read as a whole",
	"audit":          "the limit is of the examples of each check",
	"erasures list":  "a row a request to erase",
	"periods list":   "a row a month of the books",
	"rules list":     "a row a version that was applied",
	"schedules list": "Temporal has them, and pages them itself",
	"tasks show":     "the limit is of the facts of each kind; tasks history pages them",
	"templates list": "templates are files",
	"tokens list":    "tokens are made by hand",
	"trial-balance":  "a row an account and currency: it must add up",
}

// lists are the commands of the tree that list rows: those named so, and those that take a limit.
func lists(root *cobra.Command) (all []*cobra.Command) {
	for _, path := range leaves(root) {
		command, _, _ := root.Find(strings.Fields(path))
		switch {
		case command.Flags().Lookup("limit") != nil, command.Name() == "list", command.Name() == "history",
			command.Name() == "ledger", path == "leases", path == "entries", path == "trial-balance":
			all = append(all, command)
		}
	}
	return all
}

// Each list that can be long goes on at a cursor; one that has none says here why it needs none.
func TestEveryListHasACursor(t *testing.T) {
	t.Parallel()
	a, err := cli.New(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
	require.NoError(t, err)
	found := lists(newRoot(a))
	require.Greater(t, len(found), 15)
	named := map[string]bool{}
	for _, command := range found {
		path := pathOf(command)
		named[path] = true
		paged := command.Flags().Lookup("cursor") != nil && command.Flags().Lookup("limit") != nil
		assert.NotEqual(t, paged, wholeLists[path] != "",
			"daybook %s: give it --limit and --cursor (cli.PageFlags), or say in wholeLists why its list is short", path)
	}
	for path := range wholeLists {
		assert.True(t, named[path], "daybook %s is no list", path)
	}
}

// The running balance goes on from page to page, and each line comes once.
func TestAccountLedgerInPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("de")
	for i := range 5 {
		fixture.Ready(t, b.Pool, fixture.Invoice("de", fmt.Sprintf("doc-%d", i), int64(1000+i)))
	}
	b.work()
	whole, _ := b.ledgerLines("1000")
	require.Greater(t, len(whole), 4)
	paged, pages := b.ledgerLines("2")
	assert.Greater(t, pages, 2)
	assert.Equal(t, whole, paged)
}

// ledgerLines reads an account's ledger in pages of some lines, each as its impact, line and
// balance.
func (b *bundle) ledgerLines(limit string) (lines []string, pages int) {
	b.t.Helper()
	for cursor := ""; ; {
		args := []string{"accounts", "ledger", "1200", "--org", "de", "--limit", limit}
		if cursor != "" {
			args = append(args, "--cursor", cursor)
		}
		var page books.AccountLedger
		b.json(&page, args...)
		for _, e := range page.Entries {
			lines = append(lines, fmt.Sprint(e.ImpactID, " ", e.LineNo, " ", e.Balance))
		}
		if cursor, pages = page.Next, pages+1; cursor == "" {
			return lines, pages
		}
	}
}

// Organizations come in the order of their ids, those that only have jobs as well.
func TestOrganizationsInPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, org := range []string{"a", "c", "e"} {
		fixture.Organization(t, b.Pool, org)
	}
	_, err := b.Pool.Exec(t.Context(), `
INSERT INTO daybook.jobs (id, org_id, type, payload) VALUES ('1', 'b', 'mail', '{}'), ('2', 'b', 'mail', '{}'), ('3', 'c', 'mail', '{}');
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint) VALUES ('d', 'x', 1), ('e', 'x', 1)`)
	require.NoError(t, err)
	var whole work.OrganizationsPage
	b.json(&whole, "organizations", "list")
	require.Len(t, whole.Organizations, 5)
	var rows []store.OrganizationSummary
	for cursor := ""; ; {
		args := []string{"organizations", "list", "--limit", "2"}
		if cursor != "" {
			args = append(args, "--cursor", cursor)
		}
		var page work.OrganizationsPage
		b.json(&page, args...)
		require.LessOrEqual(t, len(page.Organizations), 2)
		rows = append(rows, page.Organizations...)
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	assert.Equal(t, whole.Organizations, rows, "with the same figures")
	for i, id := range []string{"a", "b", "c", "d", "e"} {
		assert.Equal(t, id, rows[i].OrgID)
	}
}

// The files of the archive come in the order in which they were written.
func TestArchiveInPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.Pool.Exec(t.Context(), `
INSERT INTO daybook.archives (key, kind, counts, lines, bytes, sha256, org_ids, first_at, last_at, archived_at)
SELECT 'file-' || n, 'jobs', '{"jobs": 1}', 1, 1, decode(repeat('00', 32), 'hex'), '{acme}', now(), now(), now() - make_interval(days => n / 2) FROM generate_series(1, 5) n`)
	require.NoError(t, err)
	var keys []string
	for next := ""; ; {
		args := []string{"archive", "list", "--limit", "2"}
		if next != "" {
			args = append(args, "--cursor", next)
		}
		var page keep.ArchivePage
		b.json(&page, args...)
		for i := range page.Files {
			keys = append(keys, page.Files[i].Key)
		}
		if next = page.Next; next == "" {
			break
		}
	}
	assert.Equal(t, []string{"file-4", "file-5", "file-2", "file-3", "file-1"}, keys)
}
