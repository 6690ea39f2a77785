package main

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/cmd/daybook/work"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workflows"
)

// flows calls a command that changes organizations.
func (b *bundle) limits(args ...string) []work.ChangedLimits {
	b.t.Helper()
	var out struct{ Organizations []work.ChangedLimits }
	b.json(&out, append([]string{"organizations"}, args...)...)
	return out.Organizations
}

func (b *bundle) organizations() map[string]store.OrganizationSummary {
	b.t.Helper()
	var out struct{ Organizations []store.OrganizationSummary }
	b.json(&out, "organizations", "list")
	byID := map[string]store.OrganizationSummary{}
	for _, o := range out.Organizations {
		byID[o.OrgID] = o
	}
	return byID
}

func TestOrganizationsList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	assert.JSONEq(t, `{"organizations": []}`, b.ok("organizations", "list", "--json"))
	b = posted(t)
	b.ok("accounting", "enqueue", "--create", "stranger", "d", "--version", "1")
	_, err := b.Pool.Exec(t.Context(), `
SELECT daybook.enqueue_job('stranger', 'mail', '{}'), daybook.enqueue_job('stranger', 'mail', '{}'), daybook.enqueue_job('only jobs', 'mail', '{}')`)
	require.NoError(t, err)
	b.ok("organizations", "cap", "--org", "jp", "--max-in-flight", "5")
	all := b.organizations()
	require.Len(t, all, 5)
	queues := func(accounting, jobs store.OpenJobs) []store.OpenJobs {
		accounting.Kind, jobs.Kind = "accounting", "jobs"
		return []store.OpenJobs{accounting, jobs}
	}
	assert.Equal(t, store.OrganizationSummary{
		OrgID: "es", Known: true, Name: all["es"].Name,
		OrganizationSettings: store.OrganizationSettings{
			ActiveRuleSet: new(int64(1)), Source: "daybook",
			Hooks: []string{},
		},
		Queues: queues(store.OpenJobs{Failed: 1}, store.OpenJobs{}),
	}, all["es"])
	assert.Equal(t, store.OrganizationSummary{
		OrgID: "stranger", OrganizationSettings: store.OrganizationSettings{Source: "daybook", Hooks: []string{}},
		Queues: queues(store.OpenJobs{Pending: 1}, store.OpenJobs{Pending: 2}),
	}, all["stranger"])
	assert.Equal(t, queues(store.OpenJobs{}, store.OpenJobs{Pending: 1}), all["only jobs"].Queues)
	assert.Equal(t, 5, *all["jp"].MaxInFlight)
	text := b.ok("organizations", "list")
	assert.Regexp(t, `(?m)^ORGANIZATION +RULE SET +PAUSED SINCE +CAP +RATE +ACCOUNTING +JOBS +SOURCE`, text)
	assert.Regexp(t, `(?m)^jp +1 +5`, text)
	assert.Regexp(t, `(?m)^es +1 +1 failed`, text)
	assert.Regexp(t, `(?m)^stranger +1 pending +2 pending$`, text)
}

func TestOrganizationsPauseAndResume(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	b.sample("beta")
	assert.NotContains(t, b.ok("status"), "paused")

	r := b.run("organizations", "pause", "--org", "acme", "--org", "stranger", "--create")
	require.Zero(t, r.exit, r.err)
	assert.Regexp(t, `(?m)^acme +changed +20`, r.out)
	assert.Contains(t, r.err, "What is leased already is finished")
	assert.Contains(t, r.err, "Organization stranger had no settings of its own until now")
	assert.NotContains(t, r.err, "acme had no settings")
	since := b.organizations()["acme"].PausedAt
	require.NotNil(t, since)
	r = b.run("organizations", "pause", "--org", "acme")
	assert.Regexp(t, `(?m)^acme +unchanged`, r.out)
	assert.Empty(t, r.err)
	assert.Equal(t, since, b.organizations()["acme"].PausedAt)

	paused := b.limits("pause", "--all-orgs")
	require.Len(t, paused, 3)
	assert.Equal(t, []bool{false, true, false}, []bool{paused[0].Changed, paused[1].Changed, paused[2].Changed})

	resumed := b.limits("resume", "--org", "stranger", "--org", "beta")
	require.Len(t, resumed, 2)
	assert.Equal(t, work.ChangedLimits{OrgID: "stranger", Limits: store.Limits{Changed: true}}, resumed[0])
	assert.Regexp(t, `(?m)^paused: acme since 20[-0-9]+ [:0-9]+$`, b.ok("status"))
	assert.Contains(t, b.ok("status", "--org", "acme"), "paused: acme")
	assert.NotContains(t, b.ok("status", "--org", "beta"), "paused")
	var s struct {
		Paused []store.PausedOrganization `json:"paused_organizations"`
	}
	b.json(&s, "status")
	require.Len(t, s.Paused, 1)
	assert.Equal(t, store.PausedOrganization{OrgID: "acme", PausedAt: *since}, s.Paused[0])
	b.ok("organizations", "resume", "--all-orgs")
	b.json(&s, "status")
	assert.Empty(t, s.Paused)
}

func TestStatusNamesOnlySomePausedOrganizations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	args := []string{"organizations", "pause", "--create"}
	for i := range 12 {
		args = append(args, "--org", fmt.Sprintf("o%02d", i))
	}
	b.ok(args...)
	status := b.ok("status")
	assert.Contains(t, status, "o09 since ")
	assert.NotContains(t, status, "o10")
	assert.Contains(t, status, ", and 2 more")
}

func TestOrganizationsCap(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	b.sample("beta")
	capped := b.limits("cap", "--org", "acme", "--max-in-flight", "20")
	require.Len(t, capped, 1)
	assert.Equal(t, work.ChangedLimits{OrgID: "acme", Limits: store.Limits{Changed: true, MaxInFlight: new(20)}},
		capped[0])
	assert.Regexp(t, `(?m)^acme +unchanged +20$`, b.ok("organizations", "cap", "--org", "acme", "--max-in-flight", "20"))
	assert.Equal(t, 20, *b.organizations()["acme"].MaxInFlight)
	assert.Nil(t, b.organizations()["beta"].MaxInFlight)
	assert.Equal(t, []work.ChangedLimits{{OrgID: "acme", Limits: store.Limits{Changed: true}}, {OrgID: "beta"}},
		b.limits("cap", "--all-orgs", "--none"))
}

func TestOrganizationsRate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	want := store.Limits{Changed: true, Rate: new(100), RateSeconds: new(60.0)}
	assert.Equal(t, []work.ChangedLimits{{OrgID: "acme", Limits: want}},
		b.limits("rate", "--org", "acme", "--rate", "100", "--per", "1m"))
	assert.Regexp(t, `(?m)^acme +unchanged +100 in 1 min$`,
		b.ok("organizations", "rate", "--org", "acme", "--rate", "100", "--per", "1m"))
	assert.Contains(t, b.ok("organizations", "list"), "100 in 1 min")
	assert.Equal(t, []work.ChangedLimits{{OrgID: "acme", Limits: store.Limits{Changed: true}}},
		b.limits("rate", "--org", "acme", "--none"))
}

func TestOrganizationsRefuse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, test := range []struct {
		args []string
		exit int
		code string
		says string
	}{
		{[]string{"pause"}, failure.ExitUsage, "USAGE", "--org, once or more, or --all-orgs"},
		{[]string{"pause", "acme"}, failure.ExitUsage, "USAGE", "unknown command"},
		{
			[]string{"pause", "--org", "acme", "--all-orgs"},
			failure.ExitUsage, "USAGE",
			"--org, once or more, or --all-orgs",
		},
		{[]string{"pause", "--all-orgs"}, failure.ExitNotFound, "ORGANIZATION_NOT_FOUND", "there is no organization yet"},
		{[]string{"resume", "--org", ""}, failure.ExitUsage, "USAGE", "--org is empty"},
		{[]string{"resum"}, failure.ExitUsage, "USAGE", "did you mean resume?"},
		{[]string{"cap", "--org", "acme"}, failure.ExitUsage, "USAGE", "either --max-in-flight or --none"},
		{
			[]string{"cap", "--org", "acme", "--max-in-flight", "1", "--none"},
			failure.ExitUsage, "USAGE",
			"either --max-in-flight or --none",
		},
		{[]string{"cap", "--org", "acme", "--max-in-flight", "many"}, failure.ExitUsage, "USAGE", "invalid argument"},
		{
			[]string{"cap", "--org", "acme", "--create", "--max-in-flight", "0"},
			failure.ExitUsage, "INVALID",
			"want 1 to 2147483647, or pause the organization",
		},
		{
			[]string{"cap", "--org", "acme", "--create", "--max-in-flight", "2147483648"},
			failure.ExitUsage, "INVALID",
			"want 1 to 2147483647",
		},
		{[]string{"cap", "--max-in-flight", "1"}, failure.ExitUsage, "USAGE", "--all-orgs"},
	} {
		r := b.run(append([]string{"organizations", "--json"}, test.args...)...)
		assert.Equal(t, test.exit, r.exit, "%v: %s", test.args, r.err)
		var said struct {
			Error struct{ Code, Message string }
		}
		require.NoError(t, json.Unmarshal([]byte(r.err), &said), r.err)
		assert.Equal(t, test.code, said.Error.Code, "%v", test.args)
		assert.Contains(t, said.Error.Message, test.says)
	}
	assert.Empty(t, b.organizations(), "nothing was changed")
}

// A running worker passes over a paused organization, and looks at once when it is resumed: the
// next poll is ten minutes off. Then it goes on to the end, though only one job of it may be leased
// at a time.
func TestWorkerPassesOverPausedOrganizations(t *testing.T) {
	server := temporaltest.Shared(t)
	namespace := server.Namespace(t)
	inNamespace(t, server, namespace)
	b := setup(t)
	b.sample("acme")
	b.sample("beta")
	b.ok("organizations", "pause", "--org", "acme")
	b.ok("organizations", "cap", "--org", "acme", "--max-in-flight", "1")
	// Those of acme come first in every order: by time, by id, by organization.
	fixture.Ready(t, b.Pool, fixture.Invoice("acme", "1", 1000), fixture.Invoice("acme", "2", 1000),
		fixture.Invoice("acme", "3", 1000),
		fixture.Invoice("beta", "4", 1000))

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan result, 1)
	go func() { ended <- call(ctx, "", "--database-url", b.URL, "worker", "--log-level", "warn") }()
	c := server.Client(t, namespace)
	_, err := c.ExecuteWorkflow(t.Context(),
		client.StartWorkflowOptions{ID: "w", TaskQueue: workflows.AccountingTaskQueue},
		workflows.AccountingWorkflow, workflows.Input{PollIntervalSeconds: new(600), Concurrency: new(1)})
	require.NoError(t, err)
	stateOf := func(org, document string) models.JobState {
		limit, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s, err := queue.WaitAccountingJob(limit, b.Pool, queue.Document{OrgID: org, ID: document},
			queue.WaitAccountingJobOptions{})
		require.NoError(t, err)
		return s.State
	}
	assert.Equal(t, models.JobCompleted, stateOf("beta", "4"))
	for _, document := range []string{"1", "2", "3"} {
		job := b.job("acme", document)
		assert.Equal(t, "pending", job.State)
		assert.Zero(t, job.Attempts)
	}
	b.ok("organizations", "resume", "--org", "acme")
	for _, document := range []string{"1", "2", "3"} {
		assert.Equal(t, models.JobCompleted, stateOf("acme", document))
	}
	stop()
	r := <-ended
	assert.Equal(t, failure.ExitOK, r.exit, r.err)
}
