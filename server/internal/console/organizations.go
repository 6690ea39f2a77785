package console

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

// organizationsShown is how many organizations a page has.
const organizationsShown = 100

var errNumber = failure.New(failure.Invalid, "want a number from 1, or leave it empty for none")

// organizations adds the list of organizations, a page of each, and what holds their jobs and tasks
// back.
func (c *console) organizations() {
	c.addToMenu(menuEntry{Group: "Operate", Name: "Organizations", Path: "organizations"})
	c.page("GET "+Root+"organizations", tokens.ScopeRead, c.organizationList)
	c.page("GET "+Root+"organizations/{id}", tokens.ScopeRead, c.organizationPage)
	c.action(Root+"organizations/{id}/pause", tokens.ScopeOperate, "organizations.pause",
		c.limitOrganization("paused", store.PauseOrganization))
	c.action(Root+"organizations/{id}/resume", tokens.ScopeOperate, "organizations.resume",
		c.limitOrganization("resumed", store.ResumeOrganization))
	c.action(Root+"organizations/{id}/cap", tokens.ScopeOperate, "organizations.cap", c.capOrganization)
	c.action(Root+"organizations/{id}/rate", tokens.ScopeOperate, "organizations.rate", c.rateOrganization)
	c.action(Root+"organizations/{id}/source", tokens.ScopeOperate, "organizations.source", c.setSource)
	c.action(Root+"organizations/{id}/hooks", tokens.ScopeOperate, "organizations.hooks", c.setHooks)
	c.action(Root+"task-limits", tokens.ScopeOperate, "tasks.limit", c.limitTasks)
}

func (c *console) organizationList(ctx context.Context, r *request) (*view, error) {
	org, err := r.org()
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	p := store.OrganizationsPage{
		OrgID: org, Prefix: strings.TrimSpace(q.Get("prefix")), HeldBack: q.Get("held") != "",
		After: q.Get("after"), Limit: organizationsShown + 1,
	}
	list, err := store.KnownOrganizations(ctx, c.Pool, p)
	if err != nil {
		return nil, err
	}
	next := ""
	if len(list) > organizationsShown {
		list = list[:organizationsShown]
		next = list[len(list)-1].OrgID
	}
	data := map[string]any{"Organizations": list, "Pager": pagerBy(r, "after", next), "Filters": filters{
		Action: Root + "organizations", Hidden: []field{{Name: "org", Value: r.chosenOrg()}},
		Fields: []field{
			{Name: "prefix", Label: "Id begins with", Value: p.Prefix},
			{
				Name: "held", Label: "Held back", Value: q.Get("held"),
				Options: []option{{Label: "any"}, {Value: "yes", Label: "paused, capped or with a rate"}},
			},
		},
	}}
	if r.Token.OrgID == nil {
		limits, err := store.TaskLimits(ctx, c.Pool)
		if err != nil {
			return nil, err
		}
		data["Tasks"], data["TaskButton"] = limits, button{
			Action: Root + "task-limits", Label: "Set", Next: r.here(), Fields: []field{
				{Name: "type", Label: "Type (* for all)", Suggestions: []string{models.AllTasks}},
				{
					Name: "paused", Label: "Paused",
					Options: []option{{Value: "", Label: "as it is"}, {Value: "yes"}, {Value: "no"}},
				},
				{Name: "cap", Label: "Cap (0: none)", Type: "number"},
			},
		}
	}
	return &view{
		Title: "Organizations", Template: "organizations", Nav: "organizations", Data: data,
		Lead: "What holds an organization's jobs back, by which rules it posts, and what its documents need of a worker.",
	}, nil
}

func (c *console) organizationPage(ctx context.Context, r *request) (*view, error) {
	org, err := r.reach(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	list, err := store.KnownOrganizations(ctx, c.Pool, store.OrganizationsPage{OrgID: org, Limit: 1})
	if err != nil {
		return nil, err
	}
	o := store.KnownOrganization{
		OrgID:                org,
		OrganizationSettings: store.OrganizationSettings{Source: store.SourceDaybook},
	}
	if len(list) > 0 {
		o = list[0]
	} else if unknown, err := store.UnknownOrganizations(ctx, c.Pool, []string{org}); err != nil || len(unknown) > 0 {
		if err == nil {
			err = store.NoOrganization(org)
		}
		return nil, err
	}
	data := map[string]any{"Organization": o, "Known": len(list) > 0}
	if o.Rate != nil {
		data["Rate"] = rateIn(*o.Rate, store.Value(o.RateSeconds))
	}
	if r.Token.OrgID == nil && r.Token.Allows(tokens.ScopeOperate) {
		data["Buttons"] = organizationButtons(r, o)
	}
	return &view{
		Title: org, Template: "organization", Nav: "organizations", Data: data,
		Trail: []trail{{"Organizations", r.link("organizations")}},
	}, nil
}

func organizationButtons(r *request, o store.KnownOrganization) []button {
	base := Root + joinPath("organizations", o.OrgID) + "/"
	pause := button{
		Action: base + "pause", Label: "Pause", Tone: "quiet", Next: r.here(),
		Confirm: "No worker leases a job of it until it is resumed. What is leased is finished.",
	}
	if o.PausedAt != nil {
		pause = button{Action: base + "resume", Label: "Resume", Next: r.here()}
	}
	own := func(has bool, value string) string {
		if has {
			return value
		}
		return ""
	}
	return []button{
		pause,
		{
			Action: base + "cap", Label: "Set cap", Tone: "quiet", Next: r.here(),
			Confirm: "How many of its jobs may be leased at a time in each queue, over all workers. Empty: any number.",
			Fields: []field{
				{Name: "most", Label: "Jobs at a time", Type: "number", Value: asText(o.MaxInFlight)},
			},
		},
		{
			Action: base + "rate", Label: "Set rate", Tone: "quiet", Next: r.here(),
			Confirm: "How many attempts of its background jobs may begin in a time, over all workers. Empty: any number.",
			Fields: []field{
				{Name: "rate", Label: "Attempts", Type: "number", Value: asText(o.Rate)},
				{Name: "rateSeconds", Label: "in seconds", Value: asText(o.RateSeconds), Placeholder: "1"},
			},
		},
		{
			Action: base + "source", Label: "Set source", Tone: "quiet", Next: r.here(),
			Confirm: "Only workers that have the source work its documents. Empty: follow the default.", Fields: []field{
				{Name: "source", Label: "Source", Value: own(o.OwnSource, o.Source)},
			},
		},
		{
			Action: base + "hooks", Label: "Set hooks", Tone: "quiet", Next: r.here(),
			Confirm: "Called with what is posted, by workers that have all of them. Names with spaces between; none: a " +
				"hyphen; empty: follow the default.", Fields: []field{
				{Name: "hooks", Label: "Hooks", Value: own(o.OwnHooks, strings.Join(o.Hooks, " "))},
			},
		},
	}
}

// limitOrganization makes a change of what holds an organization back, and writes its action in the
// same transaction.
func (c *console) limitOrganization(what string,
	change func(ctx context.Context, tx pgx.Tx, org string) (store.Limits, error)) func(ctx context.Context,
	r *request) (done, error) {
	return func(ctx context.Context, r *request) (done, error) {
		org := r.PathValue("id")
		d := done{Org: org, Text: fmt.Sprintf("Organization %s is %s.", org, what)}
		if err := wholeInstance(r); err != nil {
			return d, err
		}
		return d, store.Begin(ctx, c.Pool, func(tx pgx.Tx) error {
			limits, err := change(ctx, tx, org)
			if err != nil {
				return err
			}
			return actions.Note(ctx, tx, org, "", map[string]any{"changed": limits.Changed})
		})
	}
}

func (c *console) capOrganization(ctx context.Context, r *request) (done, error) {
	most, err := optionalNumber(r.PostFormValue("most"))
	if err != nil {
		return done{Org: r.PathValue("id")}, err
	}
	actions.About(ctx, "", "", map[string]any{"max_in_flight": most})
	return c.limitOrganization("capped as you said",
		func(ctx context.Context, tx pgx.Tx, org string) (store.Limits, error) {
			return store.CapOrganization(ctx, tx, org, most)
		})(ctx, r)
}

func (c *console) rateOrganization(ctx context.Context, r *request) (done, error) {
	d := done{Org: r.PathValue("id")}
	given, err := optionalNumber(r.PostFormValue("rate"))
	if err != nil {
		return d, err
	}
	rate := store.Value(given)
	seconds, err := secondsOf(r, rate)
	if err != nil {
		return d, err
	}
	actions.About(ctx, "", "", map[string]any{"rate": given, "rateSeconds": seconds})
	return c.limitOrganization("given the rate",
		func(ctx context.Context, tx pgx.Tx, org string) (store.Limits, error) {
			return store.RateOrganization(ctx, tx, org, rate, seconds)
		})(ctx, r)
}

// secondsOf reads the time of a rate from a form; 0: there is no rate, or the time is not given.
func secondsOf(r *request, rate int) (float64, error) {
	text := strings.TrimSpace(r.PostFormValue("rateSeconds"))
	if text == "" || rate == 0 {
		return 0, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || seconds != seconds {
		return 0, store.Invalid("%q is no number of seconds", text)
	}
	return seconds, nil
}

// optionalNumber reads a number from 1; empty is none.
func optionalNumber(text string) (*int, error) {
	if text = strings.TrimSpace(text); text == "" {
		return nil, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("%w: %q is none", errNumber, text)
	}
	return &n, nil
}

// needs changes what an organization's documents need of a worker, and writes its action in the
// same transaction.
func (c *console) needs(ctx context.Context, r *request, details map[string]any,
	change func(tx pgx.Tx, org string) (store.NeedsSet, error),
) (done, error) {
	org := r.PathValue("id")
	d := done{Org: org, Details: details}
	if err := wholeInstance(r); err != nil {
		return d, err
	}
	return d, store.Begin(ctx, c.Pool, func(tx pgx.Tx) error {
		set, err := change(tx, org)
		if err != nil {
			return err
		}
		d.Text = fmt.Sprintf("Saved. Jobs that are pending again: %d.", set.Returned)
		actions.About(ctx, "", "", details)
		return actions.Note(ctx, tx, org, "", map[string]any{"changed": set.Changed, "returned": set.Returned})
	})
}

func (c *console) setSource(ctx context.Context, r *request) (done, error) {
	source := strings.TrimSpace(r.PostFormValue("source"))
	return c.needs(ctx, r, map[string]any{"source": source}, func(tx pgx.Tx, org string) (store.NeedsSet, error) {
		return store.SetSource(ctx, tx, org, source)
	})
}

func (c *console) setHooks(ctx context.Context, r *request) (done, error) {
	var hooks []string // nil: the default
	if names := strings.Fields(r.PostFormValue("hooks")); len(names) == 1 && names[0] == "-" {
		hooks = []string{}
	} else if len(names) > 0 {
		hooks = names
	}
	return c.needs(ctx, r, map[string]any{"hooks": hooks}, func(tx pgx.Tx, org string) (store.NeedsSet, error) {
		return store.SetHooks(ctx, tx, org, hooks)
	})
}

// limitTasks pauses, resumes or caps a type of task, or all.
func (c *console) limitTasks(ctx context.Context, r *request) (done, error) {
	taskType := strings.TrimSpace(r.PostFormValue("type"))
	d := done{Subject: taskType, Text: "Saved.", Details: map[string]any{}}
	if err := wholeInstance(r); err != nil {
		return d, err
	}
	var change store.TaskChange
	if paused := r.PostFormValue("paused"); paused != "" {
		yes := paused == "yes"
		change.Paused, d.Details["paused"] = &yes, yes
	}
	if text := strings.TrimSpace(r.PostFormValue("cap")); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return d, fmt.Errorf("%w: %q is none", errNumber, text)
		}
		change.Cap, d.Details["cap"] = &n, n
	}
	return d, store.Begin(ctx, c.Pool, func(tx pgx.Tx) error {
		set, err := store.LimitTasks(ctx, tx, taskType, change)
		if err != nil {
			return err
		}
		actions.About(ctx, "", taskType, d.Details)
		return actions.Note(ctx, tx, "", taskType, map[string]any{"changed": set.Changed})
	})
}
