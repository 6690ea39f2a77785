package console

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/failure"
)

var errFormTooLarge = failure.New(failure.BodyTooLarge,
	"the form is too large: apply the rules with `daybook rules apply`")

// unreadableForm is the error of a form that could not be read.
func unreadableForm(err error) error {
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return errFormTooLarge
	}
	return wrongParameter("%v", err)
}

// rulesRequest reads what an action on rules is about: the organization, and the version that was
// active when the caller looked.
func (c *console) rulesRequest(ctx context.Context, r *request) (org string, active *int64, err error) {
	if org, err = r.org(); err != nil {
		return org, nil, err
	}
	if _, err := c.Listing.Organization(ctx, org); err != nil {
		return org, nil, err
	}
	base, err := strconv.ParseInt(r.PostFormValue("base"), 10, 64)
	if err != nil {
		return org, nil, wrongParameter("the version that is active is missing: preview the change again")
	}
	return org, &base, nil
}

// applyRules stores a source as the next version, and activates it unless it is only to be stored:
// as `daybook rules apply` does.
func (c *console) applyRules(ctx context.Context, r *request) (done, error) {
	org, active, err := c.rulesRequest(ctx, r)
	if err != nil {
		return done{}, err
	}
	options := books.ApplyOptions{StoreOnly: r.PostFormValue("store") == "only", Expected: active}
	change, err := books.ApplyRules(ctx, c.Pool, org, []byte(formText(r, "source")), options)
	if err != nil {
		return done{Org: org}, err
	}
	return rulesDone(r, change, !options.StoreOnly), nil
}

// activateRules makes a stored version the active one: as `daybook rules activate` does.
func (c *console) activateRules(ctx context.Context, r *request) (done, error) {
	org, active, err := c.rulesRequest(ctx, r)
	if err != nil {
		return done{}, err
	}
	version, err := strconv.ParseInt(r.PostFormValue("version"), 10, 64)
	if err != nil {
		return done{}, wrongParameter("version is %q: want the number of a version", r.PostFormValue("version"))
	}
	change, err := books.ActivateRules(ctx, c.Pool, org, version, books.ActivateOptions{Expected: active})
	if err != nil {
		return done{Org: org}, err
	}
	return rulesDone(r, change, true), nil
}

func rulesDone(r *request, c books.Change, activated bool) done {
	version := strconv.FormatInt(c.Version, 10)
	text := "Version " + version + " is active."
	switch {
	case !c.Changed:
		text = "Nothing changed: version " + version + " has these rules already."
	case !activated:
		text = "Version " + version + " is stored. It is not active."
	case c.Returned > 0:
		text += " " + plural(c.Returned, "failed job is", "failed jobs are") + " pending again."
	}
	if len(c.MissingAccounts) > 0 {
		text += " The chart lacks the accounts " + strings.Join(c.MissingAccounts, ", ") +
			": documents that need them fail with UNKNOWN_ACCOUNT."
	}
	return done{
		To: r.link("rules"), Text: text, Org: c.OrgID, Subject: "version " + version,
		Details: map[string]any{
			"version": c.Version, "name": c.Name, "activated": activated, "changed": c.Changed,
			"returned": c.Returned,
		},
	}
}
