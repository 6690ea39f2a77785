package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/store"
)

// organizationFlags name the organizations that a command changes.
type organizationFlags struct {
	ids []string
	all bool
}

func (o *organizationFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&o.ids, "org", nil, "an organization; may be repeated")
	c.Flags().BoolVar(&o.all, "all-orgs", false, "every organization that Daybook knows")
}

func (o *organizationFlags) check() error {
	if (len(o.ids) == 0) != o.all {
		return usagef("give either --org, once or more, or --all-orgs")
	}
	return nil
}

// resolve returns the organizations' ids.
func (o *organizationFlags) resolve(ctx context.Context, db *database) ([]string, error) {
	if !o.all {
		return o.ids, nil
	}
	orgs, err := db.Organizations(ctx)
	if err != nil {
		return nil, err
	}
	if len(orgs) == 0 {
		return nil, tagged(store.ErrOrganizationNotFound, "there is no organization yet: import a document, or name one with --org")
	}
	ids := make([]string, len(orgs))
	for i, org := range orgs {
		ids[i] = org.ID
	}
	return ids, nil
}

// activated is what a change of an organization's configuration led to, for programs.
type activated struct {
	OrgID   string `json:"org_id"`
	Version int64  `json:"version,omitempty"`
	// Changed is false when everything was so already.
	Changed bool `json:"changed"`
	// Returned counts the failed jobs that are pending again.
	Returned int `json:"returned"`
	// MissingAccounts are those that the rules can post to and the chart lacks.
	MissingAccounts []string `json:"missing_accounts,omitempty"`
}

func changedText(changed bool) string {
	if changed {
		return "changed"
	}
	return "unchanged"
}
