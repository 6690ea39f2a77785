package books

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
)

func rulesCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{Use: "rules", Short: "Check, test, apply, activate, list and show posting rules"}
	command.AddCommand(rulesCheckCommand(a), rulesTestCommand(a), rulesApplyCommand(a), rulesActivateCommand(a),
		rulesListCommand(a), rulesShowCommand(a))
	return command
}

// compileFile reads and compiles a rule set. The error of one that does not compile names the file.
func compileFile(a *cli.App, path string) ([]byte, *posting.RuleSet, error) {
	source, err := a.ReadInput(path)
	if err != nil {
		return nil, nil, err
	}
	rules, err := posting.Compile(source)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return source, rules, nil
}

func rulesCheckCommand(a *cli.App) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:   "check FILE|-",
		Short: "Compile a rule set and say what is wrong with it; nothing is stored",
		Long: "Compiles a rule set and says what is wrong with it; nothing is stored. With --org it also says which of its accounts\n" +
			"the organization's chart lacks.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			_, rules, err := compileFile(a, args[0])
			result := struct {
				Valid           bool              `json:"valid"`
				Name            string            `json:"name,omitempty"`
				Accounts        []string          `json:"accounts,omitempty"`
				MissingAccounts []string          `json:"missing_accounts,omitempty"`
				Problems        []posting.Problem `json:"problems,omitempty"`
			}{Valid: err == nil}
			var wrong *posting.CompileError
			switch {
			case err == nil:
				result.Name, result.Accounts = rules.Name(), rules.Accounts()
			case a.JSON && errors.As(err, &wrong):
				result.Problems = wrong.Problems
				if err := a.Emit(result, nil); err != nil {
					return err
				}
				return err
			default:
				return err
			}
			if org != "" {
				if result.MissingAccounts, err = missingAccounts(c.Context(), a, org, rules); err != nil {
					return err
				}
			}
			return a.Emit(result, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s: rule set %q is in order; it posts to %s\n", args[0], result.Name,
					strings.Join(result.Accounts, ", "))
				sayMissing(a, org, result.MissingAccounts)
				return err
			})
		},
	}
	command.Flags().StringVar(&org, "org", "", "compare the accounts with the chart of this organization")
	return command
}

// missingAccounts returns the accounts that the rules can post to and the organization's chart
// lacks.
func missingAccounts(ctx context.Context, a *cli.App, org string, rules *posting.RuleSet) ([]string, error) {
	db, err := a.Open(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return books.MissingAccounts(ctx, db.Pool, org, rules)
}

// sayMissing warns of accounts that an organization's chart lacks.
func sayMissing(a *cli.App, org string, codes []string) {
	if len(codes) > 0 {
		a.Say("organization %s lacks accounts %s: documents that need them will fail with UNKNOWN_ACCOUNT; add them with "+
			"`daybook accounts import`",
			org, strings.Join(codes, ", "))
	}
}

func rulesApplyCommand(a *cli.App) *cobra.Command {
	var orgs cli.OrganizationFlags
	var storeOnly bool
	command := &cobra.Command{
		Use:   "apply FILE|- --org ORG…|--all-orgs",
		Short: "Compile a rule set, store it as an organization's next version and activate it",
		Long: "Compiles a rule set, stores it as each organization's next version and activates it. Jobs that had failed for the rules\n" +
			"before are pending again. The same rules applied again change nothing. With --no-activate the version is only stored;\n" +
			"`daybook rules activate` activates it.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := orgs.Check(); err != nil {
				return err
			}
			source, rules, err := compileFile(a, args[0])
			if err != nil {
				return err
			}
			db, err := a.Open(c.Context(), 2)
			if err != nil {
				return err
			}
			defer db.Close()
			ids, err := orgs.Resolve(c.Context(), db)
			if err != nil {
				return err
			}
			results := make([]books.Change, 0, len(ids))
			for _, id := range ids {
				result, err := books.ApplyRules(c.Context(), db.Pool, id, source,
					books.ApplyOptions{Create: true, StoreOnly: storeOnly})
				if err != nil {
					return fmt.Errorf("organization %s: %w", id, err)
				}
				results = append(results, result)
			}
			return showApplied(a, rules.Name(), results)
		},
	}
	orgs.Add(command)
	command.Flags().BoolVar(&storeOnly, "no-activate", false, "store the version only")
	return command
}

func showApplied(a *cli.App, name string, results []books.Change) error {
	return a.Emit(map[string]any{"name": name, "organizations": results}, func(w io.Writer) error {
		t := cli.NewTable("ORGANIZATION", "VERSION", "RESULT", "JOBS RETURNED")
		t.Right = []int{1, 3}
		for _, r := range results {
			t.Add(r.OrgID, strconv.FormatInt(r.Version, 10), cli.ChangedText(r.Changed), strconv.Itoa(r.Returned))
		}
		if err := a.Print(w, t); err != nil {
			return err
		}
		for _, r := range results {
			sayMissing(a, r.OrgID, r.MissingAccounts)
		}
		return nil
	})
}

func rulesShowCommand(a *cli.App) *cobra.Command {
	var org string
	var version int64
	command := &cobra.Command{
		Use:   "show --org ORG",
		Short: "Print the rule set that an organization posts by, or another version",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("version") && version < 1 {
				return cli.Usagef("--version is %d: want a number such as 3; `daybook rules list` shows them", version)
			}
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			set, err := books.RuleSet(c.Context(), db.Pool, org, version)
			if err != nil {
				return err
			}
			return a.Emit(set, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "# organization %s, version %d, applied %s\n%s", set.OrgID, set.Version,
					cli.FormatTime(set.CreatedAt), set.Source)
				return err
			})
		},
	}
	command.Flags().StringVar(&org, "org", "", "the organization")
	command.Flags().Int64Var(&version, "version", 0, "a version; default the active one")
	_ = command.MarkFlagRequired("org")
	return command
}
