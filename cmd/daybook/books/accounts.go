package books

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
)

func accountsCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{
		Use:   "accounts",
		Short: "Import and list charts of accounts, and what was posted to an account",
	}
	command.AddCommand(accountsImportCommand(a), accountsListCommand(a), accountsLedgerCommand(a))
	return command
}

func accountsImportCommand(a *cli.App) *cobra.Command {
	var orgs cli.OrganizationFlags
	var changeTypes bool
	command := &cobra.Command{
		Use:   "import FILE|- --org ORG…|--all-orgs",
		Short: "Add accounts from a CSV file with the columns code, name, type and, optionally, currencies, role, section",
		Long: "Adds accounts from a CSV file whose first line names its columns, or changes them: code, name and type, which is\n" +
			"asset, liability, equity, income or expense. Further columns: currencies, which may be posted to the account,\n" +
			"separated by spaces, an empty one: all; role, which is receivable, payable, advance, cash, tax, suspense, rounding or\n" +
			"exchange; section, its heading in statements. An empty role or section stays as it is, none takes it away.\n" +
			"Jobs that had failed for an unknown account are pending again.\n" +
			"The type of an account with entries is only changed with --change-types: its balance moves to another part of\n" +
			"statements and exports, of closed periods as well.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := orgs.Check(); err != nil {
				return err
			}
			data, err := a.ReadInput(args[0])
			if err != nil {
				return err
			}
			accounts, err := books.ParseAccounts(data)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
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
				result, err := books.PutAccounts(c.Context(), db.Pool, id, accounts,
					books.AccountsOptions{Create: true, ChangeTypes: changeTypes})
				if err != nil {
					return fmt.Errorf("organization %s: %w", id, err)
				}
				results = append(results, result)
			}
			return a.Emit(map[string]any{"accounts": len(accounts), "organizations": results}, func(w io.Writer) error {
				t := cli.NewTable("ORGANIZATION", "RESULT", "JOBS RETURNED")
				t.Right = []int{2}
				for _, r := range results {
					t.Add(r.OrgID, cli.ChangedText(r.Changed), strconv.Itoa(r.Returned))
				}
				if err := a.Print(w, t); err != nil {
					return err
				}
				return printMoved(a, w, results)
			})
		},
	}
	orgs.Add(command)
	command.Flags().BoolVar(&changeTypes, "change-types", false,
		"change the types of accounts with entries as well, which moves their balances in statements and exports of all "+
			"years")
	return command
}

// printMoved shows which balances other types of their accounts have moved.
func printMoved(a *cli.App, w io.Writer, results []books.Change) error {
	t := cli.NewTable("ORGANIZATION", "ACCOUNT", "WAS", "IS", "BALANCE", "CURRENCY")
	t.Right = []int{4}
	for _, r := range results {
		for _, m := range r.Moved {
			t.Add(r.OrgID, m.Account, string(m.From), string(m.To), m.Balance, m.Currency)
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return a.Print(w, t)
}

func accountsListCommand(a *cli.App) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:   "list --org ORG",
		Short: "List an organization's accounts",
		Args:  cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) error {
			accounts, err := books.Accounts(c.Context(), db.Pool, org)
			if err != nil {
				return err
			}
			return a.Emit(map[string]any{"accounts": accounts}, func(w io.Writer) error {
				t := cli.NewTable("CODE", "TYPE", "ROLE", "CURRENCIES", "SECTION", "NAME")
				for _, account := range accounts {
					t.Add(account.Code, string(account.Type), string(account.Role), strings.Join(account.Currencies, " "),
						account.Section, account.Name)
				}
				return a.Print(w, t)
			})
		}),
	}
	command.Flags().StringVar(&org, "org", "", "the organization")
	_ = command.MarkFlagRequired("org")
	return command
}
