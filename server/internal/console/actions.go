package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// actionsShown is how many rows a page of the log has.
const actionsShown = 100

var errFilter = failure.New(failure.Invalid, "the filter cannot be read")

// actionLine is an action as the page shows it.
type actionLine struct {
	actions.Action
	// Org is the organization's id; empty: several, or none.
	Org string
	// Words are the details as "name value" pairs.
	Words []field
}

// actionsPage adds the log of actions.
func (c *console) actionsPage() {
	c.addToMenu(menuEntry{Group: "Operate", Name: "Actions", Path: "actions"})
	c.page("GET "+Root+"actions", tokens.ScopeRead, func(ctx context.Context, r *request) (*view, error) {
		org, err := r.org()
		if err != nil {
			return nil, err
		}
		names, err := actions.Names(ctx, c.Pool)
		if err != nil {
			return nil, err
		}
		form := r.filter(actionFilters(r, names))
		f, err := actionFilter(r)
		if err != nil {
			return nil, err
		}
		f.OrgID, f.Limit = org, actionsShown+1
		list, err := actions.List(ctx, c.Pool, f)
		if err != nil {
			return nil, err
		}
		var p pager
		if f.Before > 0 {
			p.First = r.here("before", "")
		}
		if len(list) > actionsShown {
			list = list[:actionsShown]
			p.Next = r.here("before", strconv.FormatInt(list[len(list)-1].ID, 10))
		}
		return &view{
			Title: "Actions", Template: "actions", Nav: "actions", Live: f.Before == 0,
			Lead: "What operators did, through this console, the API and the command line.",
			Data: map[string]any{"Lines": actionLines(list), "Filters": form, "Pager": p},
		}, nil
	})
}

func actionFilter(r *request) (f actions.Filter, err error) {
	q := r.URL.Query()
	f = actions.Filter{
		Via: actions.Via(q.Get("via")), Action: q.Get("action"), Actor: strings.TrimSpace(q.Get("actor")),
		TokenID: q.Get("token"),
		Subject: strings.TrimSpace(q.Get("subject")), Outcome: actions.Outcome(q.Get("outcome")),
	}
	for name, into := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if *into, err = formTime(q.Get(name)); err != nil {
			return f, err
		}
	}
	if before := q.Get("before"); before != "" {
		if f.Before, err = strconv.ParseInt(before, 10, 64); err != nil {
			return f, fmt.Errorf("%w: before=%q is no number", errFilter, before)
		}
	}
	return f, nil
}

// formTime reads what an input of the type datetime-local sends, in UTC, or a time as RFC 3339;
// empty is zero.
func formTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%w: %q is no time such as 2026-01-31T09:00", errFilter, text)
}

func actionFilters(r *request, names []string) filters {
	q := r.URL.Query()
	unset := option{Label: "any"}
	f := filters{
		Action: Root + "actions",
		Hidden: []field{{Name: "org", Value: r.chosenOrg()}, {Name: "token", Value: q.Get("token")}},
		Fields: []field{
			{Name: "action", Label: "Action", Value: q.Get("action"), Options: []option{unset}},
			{Name: "actor", Label: "By", Value: q.Get("actor"), Placeholder: "token or user"},
			{Name: "via", Label: "Via", Value: q.Get("via"), Options: append([]option{unset}, optionsOf(actions.Vias())...)},
			{
				Name: "outcome", Label: "Outcome", Value: q.Get("outcome"),
				Options: append([]option{unset}, optionsOf(actions.Outcomes())...),
			},
			{Name: "subject", Label: "About", Value: q.Get("subject"), Placeholder: "job, document, type …"},
			{Name: "since", Label: "Since (UTC)", Value: q.Get("since"), Type: "datetime-local"},
			{Name: "until", Label: "Until (UTC)", Value: q.Get("until"), Type: "datetime-local"},
		},
	}
	f.Fields[0].Options = append(f.Fields[0].Options, optionsOf(names)...)
	for _, one := range f.Fields {
		if one.Value != "" || q.Get("token") != "" {
			f.Clear = r.link("actions")
		}
	}
	return f
}

// optionsOf makes a choice of each value.
func optionsOf[T ~string](values []T) []option {
	list := make([]option, len(values))
	for i, v := range values {
		list[i] = option{Value: string(v)}
	}
	return list
}

func actionLines(list []actions.Action) []actionLine {
	lines := make([]actionLine, len(list))
	for i, a := range list {
		lines[i] = actionLine{Action: a, Org: asText(a.OrgID), Words: detailWords(a.Details)}
	}
	return lines
}

// detailWords are the details of an action by their names; what is not a text or a number stays
// JSON.
func detailWords(details json.RawMessage) []field {
	var named map[string]json.RawMessage
	if json.Unmarshal(details, &named) != nil {
		return nil
	}
	var words []field
	for _, name := range slices.Sorted(maps.Keys(named)) {
		text := string(bytes.Trim(named[name], `"`))
		if text != "" && text != "{}" && text != "null" {
			words = append(words, field{Name: name, Value: text})
		}
	}
	return words
}
