package console

import (
	"github.com/daybook-dev/daybook/models"
)

// The types of this file are what templates/shared-parts.html shows: a handler fills one, its
// template says {{template "pager" .Data.Pager}}.

// pager leads to the next and the first part of a list; an empty address is not shown.
type pager struct{ First, Next string }

// pagerOf leads to the next part of the list of this address, which begins at the cursor next, and
// back to its beginning.
func pagerOf(r *request, next string) pager { return pagerBy(r, "cursor", next) }

// pagerBy is pagerOf for a list whose place in the address has another name.
func pagerBy(r *request, name, next string) pager {
	var p pager
	if next != "" {
		p.Next = r.here(name, next)
	}
	if r.FormValue(name) != "" {
		p.First = r.here(name, "")
	}
	return p
}

// filters is the form above a list. It is sent by GET, so that what is shown can be shared as a
// link.
type filters struct {
	// Action is the list's address without parameters, Hidden what stays in the address beside the
	// fields.
	Action string
	Hidden []field
	Fields []field
	// Clear is the address without filters; empty: none is set.
	Clear string
}

// field is an input with its label.
type field struct {
	Name, Label, Value string
	// ID is that of the input where a page has several of the name; empty: made of the name.
	ID string
	// Type is that of the input (text, search, number, datetime-local …); empty: text, or a select
	// when there are Options.
	Type        string
	Placeholder string
	Options     []option
	// Suggestions are offered for a text.
	Suggestions []string
}

// option is a choice of a select; an empty Label shows the Value.
type option struct{ Value, Label string }

// button is a form of one button: a POST to Action with the hidden fields.
type button struct {
	Action, Label string
	// Tone is "", "quiet" or "danger".
	Tone   string
	Hidden []field
	// Fields are asked for beside the button.
	Fields []field
	// Next is the page to show afterwards; empty: the overview.
	Next string
	// Confirm is a question that is asked first: the button appears when it is opened.
	Confirm string
	// Again says that the form was refused and is shown as it was filled in.
	Again bool
}

// Tones of tags: how much attention something deserves.
const (
	toneBad  = "bad"
	toneWarn = "warn"
	toneGood = "good"
	toneBusy = "busy"
)

// tone is the tone of a state, an outcome or a severity.
func tone(word any) string {
	switch asText(word) {
	case string(models.JobFailed), "lost", "critical", "error", "failing", "not started", "terminated", "timed out":
		return toneBad
	case "retried", "retrying", "warning", "paused", "refused", "stale":
		return toneWarn
	case string(models.JobCompleted), "done", "ok", "running", "posted", "open":
		return toneGood
	case string(models.JobLeased), "working", "active":
		return toneBusy
	}
	return ""
}
