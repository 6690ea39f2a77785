package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/work"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
)

// TestOrganizationsSourceAndHooks puts them on record, and has status and the audit name what they
// stand for.
func TestOrganizationsSourceAndHooks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ok("accounting", "enqueue", "--create", "acme", "d", "--version", "1")
	b.ok("accounting", "enqueue", "--create", "beta", "d", "--version", "1")
	assert.NotContains(t, b.ok("status"), "for a worker")
	assert.NotContains(t, b.ok("audit", "--all-orgs"), "SOURCE")

	var out struct{ Organizations []work.ChangedNeeds }
	b.json(&out, "organizations", "source", "orders", "--org", "acme")
	assert.Equal(t, []work.ChangedNeeds{{OrgID: "acme", NeedsSet: store.NeedsSet{Changed: true}}}, out.Organizations)
	assert.Regexp(t, `(?m)^acme +unchanged`, b.ok("organizations", "source", "orders", "--org", "acme"))
	assert.Regexp(t, `(?m)^\(default\) +changed`, b.ok("organizations", "hooks", "mail", "audit", "--default"))

	status := b.ok("status")
	assert.Contains(t, status, "1 due job of 1 organization waits for a worker with hooks audit, mail")
	assert.Contains(t, status, "1 due job of 1 organization waits for a worker with source orders and hooks audit, mail")
	assert.Regexp(t, `(?m)^acme .* orders +audit, mail$`, b.ok("organizations", "list"))
	audit := b.ok("audit", "--all-orgs")
	assert.Regexp(t, `(?m)^orders +no +1 +\? +1 `, audit)
	assert.Contains(t, audit, "The documents of orders are not compared")

	b.ok("organizations", "hooks", "--none", "--org", "acme")
	b.ok("organizations", "source", "--follow-default", "--org", "acme")
	assert.NotContains(t, b.ok("status"), "orders")
	for _, wrong := range [][]string{
		{"source", "--org", "acme"},
		{"source", "", "--org", "acme"},
		{"source", "orders"},
		{"source", "orders", "--follow-default", "--org", "acme"},
		{"source", "orders", "--default", "--org", "acme"},
		{"source", "The Shop", "--org", "acme"},
		{"hooks", "--org", "acme"},
		{"hooks", "mail", "--none", "--org", "acme"},
		{"hooks", "--follow-default", "--default"},
	} {
		assert.Equal(t, failure.ExitUsage, b.run(append([]string{"organizations"}, wrong...)...).exit, "%v", wrong)
	}
	require.Empty(t, b.run("organizations", "list").err)
}
