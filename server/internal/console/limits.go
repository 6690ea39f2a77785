package console

import (
	"context"
	"strings"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/keylimit"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// keysShown is how many keys of a limit its page shows.
const keysShown = 50

// limits adds the page of a limit by key, of a type or a named queue, and its change. The page of the
// queues lists them.
func (c *console) limits() {
	c.page("GET "+Root+"limits/{scope...}", tokens.ScopeRead, c.limitPage)
	c.action(Root+"limits/{scope...}", tokens.ScopeOperate, "limits.set", c.setLimit)
}

// limitLine is a limit by key as a list shows it.
type limitLine struct{ store.KeyLimit }

// Says is what the limit says, in a few words; empty: there is none.
func (l limitLine) Says() string {
	var parts []string
	if l.Parallel > 0 {
		parts = append(parts, number(l.Parallel)+" at a time")
	}
	if l.Rate > 0 {
		parts = append(parts, rateIn(l.Rate, l.RateSeconds))
	}
	return strings.Join(parts, ", ")
}

// Programs are who sets it unless a person does.
func (l limitLine) Programs() string {
	if l.Queue != "" {
		return "its programs"
	}
	return "its policy"
}

// Path is the page of the limit.
func (l limitLine) Path() string { return limitPath(l.LimitScope) }

func limitPath(of store.LimitScope) string {
	if of.Queue != "" {
		return joinPath("limits", "queue", of.Queue)
	}
	return joinPath("limits", of.Type)
}

func (c *console) limitPage(ctx context.Context, r *request) (*view, error) {
	if err := wholeInstance(r); err != nil {
		return nil, err
	}
	of := store.ParseLimitScope(r.PathValue("scope"))
	l, err := store.KeyLimitOf(ctx, c.Pool, of)
	if err != nil {
		return nil, err
	}
	keys, err := store.LimitedKeys(ctx, c.Pool, of, keysShown)
	if err != nil {
		return nil, err
	}
	at, line := Root+limitPath(of), limitLine{l}
	buttons := []button{{
		Action: at, Label: "Set the limit", Tone: "quiet", Next: r.here(), Fields: limitFields("set-", l),
		Confirm: "What waits follows the new numbers at once; the key holds for what is enqueued from now on.",
	}}
	if line.Says() != "" {
		buttons = append(buttons, button{
			Action: at, Label: "Remove the limit", Tone: "danger", Next: r.here(),
			Confirm: "What waits for it may begin. Its " + strings.TrimPrefix(line.Programs(), "its ") +
				" may set it again at the next start.",
		})
	}
	return &view{
		Title: "Limit of " + of.String(), Template: "limit", Nav: "queues", Live: true,
		Trail: []trail{{"Queues", r.link("queues")}},
		Data:  map[string]any{"Limit": line, "Keys": keys, "Buttons": buttons},
	}, nil
}

// limitFields are a limit as a form asks for it.
func limitFields(prefix string, l store.KeyLimit) []field {
	seconds := secondsGiven(l.Rate, l.RateSeconds)
	return []field{
		{Name: "by", ID: prefix + "by", Label: "Key", Value: l.By, Placeholder: "org_id or payload.account_id"},
		{
			Name: "parallel", ID: prefix + "key-parallel", Label: "Jobs at a time", Type: "number", Value: most(l.Parallel),
			Placeholder: "any",
		},
		{
			Name: "rate", ID: prefix + "key-rate", Label: "Attempts", Type: "number", Value: most(l.Rate), Placeholder: "any",
		},
		{Name: "rateSeconds", ID: prefix + "key-seconds", Label: "in seconds", Value: seconds, Placeholder: "1"},
	}
}

// setLimit sets a limit, of the type that the form names where the address names none, or, where the
// form has no number, takes it away.
func (c *console) setLimit(ctx context.Context, r *request) (done, error) {
	of := store.ParseLimitScope(r.PathValue("scope"))
	if of == (store.LimitScope{}) {
		of.Type = strings.TrimSpace(r.PostFormValue("type"))
	}
	d := done{Subject: of.String(), To: Root + limitPath(of), Text: "Saved. What waits follows at once."}
	if err := wholeInstance(r); err != nil {
		return d, err
	}
	l := store.KeyLimit{LimitScope: of, By: strings.TrimSpace(r.PostFormValue("by"))}
	for name, into := range map[string]*int{"parallel": &l.Parallel, "rate": &l.Rate} {
		n, err := optionalNumber(r.PostFormValue(name))
		if err != nil {
			return d, err
		}
		*into = store.Value(n)
	}
	var err error
	if l.RateSeconds, err = secondsOf(r, l.Rate); err != nil {
		return d, err
	}
	actions.About(ctx, "", of.String(), map[string]any{
		"by": l.By, "parallel": l.Parallel, "rate": l.Rate, "rateSeconds": l.RateSeconds,
	})
	changed, err := keylimit.Set(ctx, c.Pool, l)
	d.unless(changed, "the limit is so already")
	return d, err
}
