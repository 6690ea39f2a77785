package console

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/daybook-dev/daybook/internal/failure"
	"github.com/daybook-dev/daybook/internal/ledger"
)

var errFormTooLarge = failure.New(failure.BodyTooLarge, "the form is too large: apply the rules with `daybook rules apply`")

// unreadableForm is the error of a form that could not be read.
func unreadableForm(err error) error {
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return errFormTooLarge
	}
	return wrongParameter("%v", err)
}

// rulesRequest reads what an action on rules is about: the organization, and the version that was active when the caller looked.
func (c *console) rulesRequest(ctx context.Context, r *request) (ledger.RulesRequest, error) {
	org, err := r.org()
	if err != nil {
		return ledger.RulesRequest{}, err
	}
	if _, err := c.Listing.Organization(ctx, org); err != nil {
		return ledger.RulesRequest{}, err
	}
	base, err := strconv.ParseInt(r.PostFormValue("base"), 10, 64)
	if err != nil {
		return ledger.RulesRequest{}, wrongParameter("the version that is active is missing: preview the change again")
	}
	return ledger.RulesRequest{OrgID: org, Expected: &base}, nil
}

// applyRules stores a source as the next version, and activates it unless it is only to be stored: as `daybook rules apply` does.
func (c *console) applyRules(ctx context.Context, r *request) (done, error) {
	request, err := c.rulesRequest(ctx, r)
	if err != nil {
		return done{}, err
	}
	request.StoreOnly = r.PostFormValue("store") == "only"
	change, rules, err := ledger.ApplyRules(ctx, c.Pool, request, []byte(formText(r, "source")))
	if err != nil {
		return done{Org: request.OrgID}, err
	}
	return rulesDone(r, change, rules.Name(), !request.StoreOnly), nil
}

// activateRules makes a stored version the active one: as `daybook rules activate` does.
func (c *console) activateRules(ctx context.Context, r *request) (done, error) {
	request, err := c.rulesRequest(ctx, r)
	if err != nil {
		return done{}, err
	}
	version, err := strconv.ParseInt(r.PostFormValue("version"), 10, 64)
	if err != nil {
		return done{}, wrongParameter("version is %q: want the number of a version", r.PostFormValue("version"))
	}
	set, err := c.Listing.RuleSet(ctx, request.OrgID, version)
	if err != nil {
		return done{}, err
	}
	change, rules, err := ledger.ActivateRules(ctx, c.Pool, request, set)
	if err != nil {
		return done{Org: request.OrgID}, err
	}
	return rulesDone(r, change, rules.Name(), true), nil
}

func rulesDone(r *request, c ledger.Change, name string, activated bool) done {
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
		text += " The chart lacks the accounts " + strings.Join(c.MissingAccounts, ", ") + ": documents that need them fail with UNKNOWN_ACCOUNT."
	}
	return done{
		To: r.link("rules"), Text: text, Org: c.OrgID, Subject: "version " + version,
		Details: map[string]any{"version": c.Version, "name": name, "activated": activated, "changed": c.Changed, "returned": c.Returned},
	}
}
