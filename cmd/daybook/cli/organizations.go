package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/store"
)

// OrganizationFlags name the organizations that a command changes.
type OrganizationFlags struct {
	IDs []string
	// All: every organization that Daybook knows.
	All bool
	// create: those that Daybook does not know are not taken for a mistake.
	create bool
}

// Add adds the flags to a command.
func (o *OrganizationFlags) Add(c *cobra.Command) {
	c.Flags().StringArrayVar(&o.IDs, "org", nil, "an organization; may be repeated")
	c.Flags().BoolVar(&o.All, "all-orgs", false, "every organization that Daybook knows")
	c.Flags().BoolVar(&o.create, "create", false,
		"make organizations known that have neither configuration, document nor job yet")
}

// Check refuses flags that contradict one another, or name no organization.
func (o *OrganizationFlags) Check() error {
	if (len(o.IDs) == 0) != o.All {
		return Usagef("give either --org, once or more, or --all-orgs")
	}
	if o.create && o.All {
		return Usagef("--create is for organizations that --org names")
	}
	if slices.Contains(o.IDs, "") {
		return Usagef("--org is empty: give an organization's id")
	}
	return nil
}

// Resolve returns the organizations' ids, of which Daybook may not know one, with --create.
func (o *OrganizationFlags) Resolve(ctx context.Context, db *Database) ([]string, error) {
	if !o.All {
		if o.create {
			return o.IDs, nil
		}
		unknown, err := store.UnknownOrganizations(ctx, db.Pool, o.IDs)
		if err == nil && len(unknown) > 0 {
			err = UnknownOrganization(ctx, db.Pool, true, unknown...)
		}
		return o.IDs, err
	}
	orgs, err := db.Organizations(ctx)
	if err != nil {
		return nil, err
	}
	if len(orgs) == 0 {
		return nil, Tagged(store.ErrOrganizationNotFound,
			"there is no organization yet: import a document, or name one with --org and --create")
	}
	ids := make([]string, len(orgs))
	for i, org := range orgs {
		ids[i] = org.ID
	}
	return ids, nil
}
