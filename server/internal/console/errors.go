package console

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
)

var (
	errNoPage    = failure.New(failure.NotFound, "there is no page under this address")
	errScope     = failure.New(failure.Forbidden, "the token that you signed in with lacks a scope")
	errOtherSite = failure.New(failure.Forbidden,
		"the browser does not say that a page of this console sent the form, so nothing was done")
	errTooMany   = failure.New(failure.RateLimited, "the token that you signed in with has no more requests this minute")
	errThrottled = failure.New(failure.RateLimited, "too many attempts to sign in came from this address")
	// errNoTemporal: the console was started without a connection to Temporal.
	errNoTemporal = failure.New(failure.TemporalUnavailable,
		"this server has no connection to Temporal: start `daybook serve` with TEMPORAL_ADDRESS")
)

// advice is what a person can do about an error, by its code.
var advice = map[string]string{
	failure.Forbidden.Code: "Sign out and sign in with a token that has the scope: `daybook tokens create " +
		"--name me --scope read,operate --all-orgs` makes one.",
	failure.NotFound.Code: "Check the address, or search above by the id of a job, a document or a key.",
	failure.OrganizationNotFound.Code: "Check the organization's id in the address. A token of one organization sees " +
		"that one alone.",
	failure.JobNotFound.Code: "It may be cleaned up already, or belong to an organization that your token does " +
		"not reach.",
	failure.DocumentNotFound.Code: "Check the document's id and the organization.",
	failure.DatabaseUnavailable.Code: "Reload the page in a moment. If it stays so, check that PostgreSQL runs; " +
		"`daybook doctor` says what is wrong.",
	failure.SplitBrain.Code: store.SplitAdvice + " `daybook doctor` names the servers.",
	failure.TemporalUnavailable.Code: "Pages that need no Temporal go on working. Check TEMPORAL_ADDRESS of the " +
		"server; `daybook doctor` says what is wrong.",
	failure.SchemaOld.Code:   "Run `daybook migrate up`, then reload the page.",
	failure.Internal.Code:    "The server's log has the cause.",
	failure.RateLimited.Code: "Wait a minute, then try again.",
}

// fail shows an error: what went wrong and what to do, with its code.
func (c *console) fail(w http.ResponseWriter, r *request, err error) {
	if refused := refusalOf(r.Context()); refused != nil {
		err = refused.err // the page that its form is on cannot be shown
	}
	class := cmp.Or(store.Failure(err), failure.Internal)
	if class.Status >= http.StatusInternalServerError {
		c.log.LogAttrs(r.Context(), slog.LevelError, "a page of the console failed", slog.String("path", r.URL.Path),
			slog.String("code", class.Code), slog.String("error", err.Error()))
	}
	back := ""
	if r.Method == http.MethodPost && r.Token.ID != "" {
		back = localPath(r.PostFormValue("next"))
	}
	v := c.failedFilter(r, class)
	if v == nil {
		v = &view{Title: class.Title}
		r.filters = nil
	}
	v.Template, v.Status = "error", class.Status
	v.Data = map[string]any{
		"Code": class.Code, "Detail": detailOf(class, err), "Advice": advice[class.Code], "Back": back, "Filters": r.filters,
	}
	c.render(w, r, v)
}

// detailOf says what went wrong, as far as it is for the reader.
func detailOf(class *failure.Class, err error) string { return cmp.Or(class.Instead, err.Error()) }

// unknownPage is the page of an address that no other page has.
func (c *console) unknownPage(context.Context, *request) (*view, error) { return nil, errNoPage }
