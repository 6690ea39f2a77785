package console

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/internal/text/redact"
	"github.com/daybook-dev/daybook/models"
)

// pageRows is how many rows a list has on a page.
const pageRows = 50

// jobs adds the pages of background jobs.
func (c *console) jobs() {
	c.addToMenu(menuEntry{"Work", "Jobs", "jobs"})
	c.page("GET "+Root+"jobs", tokens.ScopeRead, c.jobList)
	c.page("GET "+Root+"jobs/{id}", tokens.ScopeRead, c.jobPage)
	c.page("GET "+Root+"jobs/{id}/edit", tokens.ScopeOperate, c.editPage)
	c.page("POST "+Root+"jobs/{id}/edit/compare", tokens.ScopeOperate, c.comparePage)
	c.action(Root+"jobs/{id}/edit", tokens.ScopeOperate, "jobs.edit", c.editJob)
	c.action(Root+"jobs/{id}/retry", tokens.ScopeOperate, "jobs.retry", c.retryJob)
	c.action(Root+"jobs/{id}/cancel", tokens.ScopeOperate, "jobs.cancel", c.cancelJob)
	c.action(Root+"jobs/{id}/decrypt", tokens.ScopeDecrypt, "jobs.decrypt", c.decryptJob)
}

// jobFilter reads the filter of background jobs from the address. It has the names of the API's
// parameters.
func jobFilter(r *request) (listing.JobFilter, error) {
	var f listing.JobFilter
	var err error
	if f.OrgID, err = r.org(); err != nil {
		return f, err
	}
	if f.State, err = stateOf(r.FormValue("state")); err != nil {
		return f, err
	}
	if f.Since, err = timeOf(r, "since"); err != nil {
		return f, err
	}
	if f.Until, err = timeOf(r, "until"); err != nil {
		return f, err
	}
	f.Type, f.Code, f.Key = value(r, "type"), models.ErrorCode(value(r, "code")), value(r, "idempotencyKey")
	f.Link = models.JobLink{Kind: value(r, "linkKind"), ID: value(r, "linkId")}
	return f, nil
}

// value is a parameter without spaces around it.
func value(r *request, name string) string { return strings.TrimSpace(r.FormValue(name)) }

func stateOf(text string) (models.JobState, error) {
	if text == "" {
		return "", nil
	}
	state, err := models.ParseJobState(text)
	if err != nil {
		err = store.Invalid("%v", err)
	}
	return state, err
}

// timeOf reads a time: one of a calendar, in UTC unless it names another zone, or a duration before
// now such as 90m, 24h or 7d.
func timeOf(r *request, name string) (time.Time, error) {
	text := value(r, name)
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 100_000 {
			return r.now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return r.now.Add(-d), nil
	}
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05",
		"2006-01-02 15:04", "2006-01-02",
	} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, store.Invalid("%s is %q: write a time as 2026-01-31T09:30 (UTC), or how long ago as 90m, 24h "+
		"or 7d", name, text)
}

// jobStates are the choices of a filter by state.
func jobStates() []option {
	options := []option{{"", "any"}}
	for _, s := range models.JobStates() {
		label := string(s)
		if s == models.JobFailed {
			label = "failed (dead letters)"
		}
		options = append(options, option{string(s), label})
	}
	return options
}

// set reports whether one of the parameters has a value.
func set(r *request, names ...string) bool {
	for _, n := range names {
		if value(r, n) != "" {
			return true
		}
	}
	return false
}

// keep are the parameters with a value, as names and values.
func keep(r *request, names ...string) []string {
	var pairs []string
	for _, n := range names {
		pairs = append(pairs, n, value(r, n))
	}
	return pairs
}

// fields makes fields whose values are those of the address.
func fields(r *request, list ...field) []field {
	for i := range list {
		list[i].Value = value(r, list[i].Name)
	}
	return list
}

func (c *console) jobList(ctx context.Context, r *request) (*view, error) {
	names := []string{"state", "type", "code", "since", "until", "linkKind", "linkId", "idempotencyKey"}
	form := filters{Action: Root + "jobs", Hidden: hiddenOrg(r), Fields: []field{
		{Name: "state", Label: "State", Options: jobStates()},
		{Name: "type", Label: "Type"},
		{Name: "code", Label: "Error code"},
		{Name: "since", Label: "Since", Placeholder: "24h, 7d, 2026-01-31T09:30"},
		{Name: "until", Label: "Until"},
		{Name: "linkKind", Label: "Link: kind"},
		{Name: "linkId", Label: "Link: id"},
		{Name: "idempotencyKey", Label: "Idempotency key"},
	}}
	if set(r, names...) {
		form.Clear = r.link("jobs")
	}
	form = r.filter(form)
	f, err := jobFilter(r)
	if err != nil {
		return nil, err
	}
	cursor := r.FormValue("cursor")
	found, err := c.Listing.FindJobs(ctx, f, pageRows, cursor)
	if err != nil {
		return nil, err
	}
	fleets, err := fleetsOf(ctx, c, found.Jobs)
	if err != nil {
		return nil, err
	}
	many, edit := "", ""
	if f.State == models.JobFailed && len(found.Jobs) > 0 {
		those := append(keep(r, names[1:]...), "kind", "jobs")
		many, edit = r.link("dead-letters/retry", those...), r.link("dead-letters/edit", those...)
	}
	return &view{
		Title: "Jobs", Template: "jobs", Nav: "jobs", Live: cursor == "", Data: map[string]any{
			"Filters": form, "Jobs": maskedErrors(found.Jobs), "Links": found.Links, "Owners": found.Owners, "Fleets": fleets,
			"Searched": found.Searched, "Pager": pagerOf(r, found.Next),
			"Filtered": form.Clear != "" || f.OrgID != "", "ByFailure": f.State == models.JobFailed, "Many": many, "Edit": edit,
		},
	}, nil
}

// fleetsOf returns the names of the fleets that work the queues of jobs, by the queues; the fleet
// without a name has none.
func fleetsOf(ctx context.Context, c *console, jobs []models.Job) (map[string]string, error) {
	queues := map[string]bool{}
	for i := range jobs {
		if q := answers.Text(jobs[i].Queue); q != "" {
			queues[q] = true
		}
	}
	return store.QueueFleets(ctx, c.Pool, slices.Collect(maps.Keys(queues)))
}

// maskedErrors masks secrets in the errors of jobs.
func maskedErrors(jobs []models.Job) []models.Job {
	for i := range jobs {
		maskError(&jobs[i].LastError)
	}
	return jobs
}

// maskError masks secrets in an error's text.
func maskError(e **string) {
	if *e != nil {
		masked := redact.Text(answers.ErrorText(*e))
		*e = &masked
	}
}

// hiddenOrg keeps the chosen organization in a form.
func hiddenOrg(r *request) []field {
	if org := r.chosenOrg(); org != "" {
		return []field{{Name: "org", Value: org}}
	}
	return nil
}

// short is the end of an id, which tells jobs apart that were enqueued at about the same time.
func short(id string) string {
	if len(id) <= 13 {
		return id
	}
	return "…" + id[len(id)-12:]
}

// clip is the beginning of a text, with at most so many characters.
func clip(s string, most int) string {
	for i := range s {
		if most--; most < 0 {
			return s[:i] + "…"
		}
	}
	return s
}
