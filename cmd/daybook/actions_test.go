package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/camel"
	"github.com/daybook-dev/daybook/internal/answers"
)

// unrecorded are the commands that are not in the log of actions: they only look, or do what
// applications and programs do.
var unrecorded = strings.Fields(`
accounting-enqueue accounting-list accounting-mark accounting-show accounting-status accounting-worker accounts-ledger accounts-list actions-list archive-list archive-verify erasures-list erasures-show audit demo dev entries
explain export import-camt import-cii import-csv import-facturx import-gobl import-hledger import-json import-list import-mt940 import-ndjson import-opening import-ubl init-app jobs-enqueue jobs-limits jobs-list jobs-show jobs-stats
jobs-types jobs-work journal-list leases man openapi migrate-down migrate-dump migrate-status migrate-up open-items-ageing open-items-list open-items-show open-items-statement organizations-list periods-adjustments periods-check
periods-closings periods-list queues-list rates-list rules-list rules-show rules-test rules-try schedules-list schedules-show serve statement-balance statement-cash statement-income statement-vat status doctor exchange-show
tasks-enqueue tasks-history tasks-limits tasks-list tasks-scaffold tasks-show tasks-worker templates-list templates-preview tokens-list trial-balance version worker help top workflow-status workflow-show rules-check
rules-schema jobs-worker rules-simulate`)

// TestEveryChangingCommandIsRecorded: a command is either in the log of actions, or known to change
// nothing that operators change.
func TestEveryChangingCommandIsRecorded(t *testing.T) {
	t.Parallel()
	a, err := cli.New(nil, nil, nil)
	require.NoError(t, err)
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if c.RunE == nil || c.HasSubCommands() {
			return
		}
		name := strings.TrimPrefix(c.CommandPath(), "daybook ")
		if recordedCommands[name] == "" {
			assert.Contains(t, unrecorded, strings.ReplaceAll(name, " ", "-"),
				"add %q to recordedCommands or, if it changes nothing, here", name)
		}
	}
	walk(newRoot(a))
}

// TestCommandsAreRecorded: what was done is in the log once, what was refused with its code, and
// what only counted is not.
func TestCommandsAreRecorded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	list := func(args ...string) []answers.ActionTaken {
		var out answers.ActionList
		require.NoError(t, camel.Unmarshal([]byte(b.ok(append([]string{"actions", "list", "--json"}, args...)...)), &out))
		return out.Actions
	}
	b.ok("organizations", "pause", "--org", "acme", "--create")
	paused := list()
	require.Len(t, paused, 1)
	one := paused[0]
	assert.Equal(t, "organizations.pause", one.Action)
	assert.Equal(t, "cli", one.Via)
	assert.Equal(t, "acme", one.OrgID)
	assert.Equal(t, "done", one.Outcome)
	assert.NotEmpty(t, one.Actor)
	assert.JSONEq(t, `{"changed": true, "create": "true"}`, string(one.Details))

	b.ok("tokens", "create", "--name", "t", "--scope", "read", "--all-orgs")
	b.ok("jobs", "retry", "--all", "--dry-run")
	require.Equal(t, 3, b.run("jobs", "cancel", "nothing").exit)
	require.Equal(t, 2, b.run("jobs", "retry", "a", "b").exit)
	all := list()
	require.Len(t, all, 3, "neither a dry run nor a wrong command is an action")
	assert.Equal(t, "jobs.cancel", all[0].Action)
	assert.Equal(t, "nothing", all[0].Subject)
	assert.Equal(t, "refused", all[0].Outcome)
	assert.Equal(t, "JOB_NOT_FOUND", all[0].Code)
	assert.Equal(t, "tokens.create", all[1].Action)
	assert.NotContains(t, string(all[1].Details), "dbk_")
	assert.Contains(t, b.ok("tokens", "list"), all[1].Subject, "the token that was made")
	assert.NotEmpty(t, all[1].Subject)
	assert.Len(t, list("--outcome", "refused"), 1)
	assert.Len(t, list("--org", "acme", "--via", "cli", "--since", "1h"), 1)
	assert.Empty(t, list("--via", "api"))

	// Why documents belong together may be about a person.
	b.run("open-items", "reconcile", "--org", "acme", "a", "b", "--reason", "Ada rang")
	refused := list()[0]
	assert.Equal(t, "open-items.reconcile", refused.Action)
	assert.NotContains(t, string(refused.Details), "Ada")

	// One job, or one document: the log has it under its organization, as the API and the console do.
	id := b.background("webhook", "--org", "shop", "--skip-validation")
	b.ok("jobs", "cancel", id)
	b.ok("jobs", "retry", id)
	b.ok("accounting", "enqueue", "--create", "shop", "invoice 7", "--version", "1")
	b.ok("accounting", "cancel", "shop", "invoice 7")
	about := list("--org", "shop")
	require.Len(t, about, 3)
	assert.Equal(t, "accounting.cancel", about[0].Action)
	assert.Equal(t, "invoice 7", about[0].Subject)
	assert.Equal(t, id, about[1].Subject)
	assert.Equal(t, id, about[2].Subject)
}
