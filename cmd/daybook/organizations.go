package main

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/text/cursor"
)

func organizationsCommand(a *app) *cobra.Command {
	command := &cobra.Command{Use: "organizations", Short: "List organizations, pause, resume and cap them, and name the source of their documents and their hooks"}
	command.AddCommand(
		organizationsListCommand(a), organizationsPauseCommand(a), organizationsResumeCommand(a), organizationsCapCommand(a),
		organizationsSourceCommand(a), organizationsHooksCommand(a),
	)
	return command
}

func organizationsListCommand(a *app) *cobra.Command {
	var page pageFlags
	command := &cobra.Command{
		Use:   "list",
		Short: "List the organizations, with what holds their jobs back and how many are open",
		Long: "Lists the organizations that Daybook knows or has a pending, leased or failed job of, with the version of the rule set\n" +
			"that posts, since when they are paused, how many of their jobs may be leased at a time, and how many jobs are pending,\n" +
			"leased and failed in each queue.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var last string
			if err := page.read(&last); err != nil {
				return err
			}
			db, err := a.open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.close()
			list, err := store.ListOrganizations(c.Context(), db.Pool, last, page.limit+1)
			if err != nil {
				return err
			}
			shown := organizationsPage{}
			shown.Organizations, shown.Next = cursor.Page(page.limit, list, func(o store.OrganizationSummary) any { return o.OrgID })
			return a.emit(shown, func(w io.Writer) error {
				header := []string{"ORGANIZATION", "RULE SET", "PAUSED SINCE", "CAP"}
				for _, q := range store.OrganizationQueues() {
					header = append(header, strings.ToUpper(q.Name))
				}
				t := newTable(append(header, "SOURCE", "HOOKS", "NAME")...)
				t.right = []int{1, 3}
				for _, o := range shown.Organizations {
					rules := ""
					if o.ActiveRuleSet != nil {
						rules = strconv.FormatInt(*o.ActiveRuleSet, 10)
					}
					row := []string{o.OrgID, rules, optionalTime(o.PausedAt), capText(o.MaxInFlight)}
					for _, jobs := range o.Queues {
						row = append(row, openText(jobs))
					}
					t.add(append(row, foreignSource(o.Source), strings.Join(o.Hooks, ", "), o.Name)...)
				}
				defer a.more(shown.Next)
				return a.print(w, t)
			})
		},
	}
	page.add(command, "organizations", store.DefaultLimit)
	return command
}

// organizationsPage is a page of organizations, for programs.
type organizationsPage struct {
	Organizations []store.OrganizationSummary `json:"organizations"`
	Next          string                      `json:"next_cursor,omitempty"`
}

// openText says how many jobs an organization has in a queue, those states left out in which it has none.
func openText(jobs store.OpenJobs) string {
	var parts []string
	for _, state := range []struct {
		n    int64
		name string
	}{{jobs.Pending, "pending"}, {jobs.Leased, "leased"}, {jobs.Failed, "failed"}} {
		if state.n > 0 {
			parts = append(parts, strconv.FormatInt(state.n, 10)+" "+state.name)
		}
	}
	return strings.Join(parts, ", ")
}

// foreignSource is the name of a source that daybook's own worker does not read.
func foreignSource(name string) string {
	if name == store.SourceDaybook {
		return ""
	}
	return name
}

// organizationFlags name the organizations that a command changes.
type organizationFlags struct {
	ids []string
	all bool
	// create: those that Daybook does not know are not taken for a mistake.
	create bool
}

func (o *organizationFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&o.ids, "org", nil, "an organization; may be repeated")
	c.Flags().BoolVar(&o.all, "all-orgs", false, "every organization that Daybook knows")
	c.Flags().BoolVar(&o.create, "create", false, "make organizations known that have neither configuration, document nor job yet")
}

func (o *organizationFlags) check() error {
	if (len(o.ids) == 0) != o.all {
		return usagef("give either --org, once or more, or --all-orgs")
	}
	if o.create && o.all {
		return usagef("--create is for organizations that --org names")
	}
	if slices.Contains(o.ids, "") {
		return usagef("--org is empty: give an organization's id")
	}
	return nil
}

// resolve returns the organizations' ids, of which Daybook may not know one, with --create.
func (o *organizationFlags) resolve(ctx context.Context, db *database) ([]string, error) {
	if !o.all {
		if o.create {
			return o.ids, nil
		}
		unknown, err := store.UnknownOrganizations(ctx, db.Pool, o.ids)
		if err == nil && len(unknown) > 0 {
			err = unknownOrganization(ctx, db.Pool, true, unknown...)
		}
		return o.ids, err
	}
	orgs, err := db.Organizations(ctx)
	if err != nil {
		return nil, err
	}
	if len(orgs) == 0 {
		return nil, tagged(store.ErrOrganizationNotFound, "there is no organization yet: import a document, or name one with --org and --create")
	}
	ids := make([]string, len(orgs))
	for i, org := range orgs {
		ids[i] = org.ID
	}
	return ids, nil
}

func changedText(changed bool) string {
	if changed {
		return "changed"
	}
	return "unchanged"
}
