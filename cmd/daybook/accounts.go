package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/admin/books"
)

func accountsCommand(a *app) *cobra.Command {
	command := &cobra.Command{Use: "accounts", Short: "Import and list charts of accounts, and what was posted to an account"}
	command.AddCommand(accountsImportCommand(a), accountsListCommand(a), accountsLedgerCommand(a))
	return command
}

func accountsImportCommand(a *app) *cobra.Command {
	var orgs organizationFlags
	var changeTypes bool
	command := &cobra.Command{
		Use:   "import FILE|- --org ORG…|--all-orgs",
		Short: "Add accounts from a CSV file with the columns code, name, type and, optionally, currencies",
		Long: "Adds accounts from a CSV file whose first line is code,name,type, or changes their names and types. A type is asset,\n" +
			"liability, equity, income or expense. A fourth column, currencies, holds the currencies that may be posted to the\n" +
			"account, separated by spaces; an empty one: all. Jobs that had failed for an unknown account are pending again.\n" +
			"The type of an account with entries is only changed with --change-types: its balance moves to another part of\n" +
			"statements and exports, of closed periods as well.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := orgs.check(); err != nil {
				return err
			}
			data, err := a.readInput(args[0])
			if err != nil {
				return err
			}
			accounts, err := books.ParseAccounts(data)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			db, err := a.open(c.Context(), 2)
			if err != nil {
				return err
			}
			defer db.close()
			ids, err := orgs.resolve(c.Context(), db)
			if err != nil {
				return err
			}
			results := make([]books.Change, 0, len(ids))
			for _, id := range ids {
				result, err := books.PutAccounts(c.Context(), db.Pool, id, accounts, books.AccountsOptions{Create: true, ChangeTypes: changeTypes})
				if err != nil {
					return fmt.Errorf("organization %s: %w", id, err)
				}
				results = append(results, result)
			}
			return a.emit(map[string]any{"accounts": len(accounts), "organizations": results}, func(w io.Writer) error {
				t := newTable("ORGANIZATION", "", "JOBS RETURNED")
				t.right = []int{2}
				for _, r := range results {
					t.add(r.OrgID, changedText(r.Changed), strconv.Itoa(r.Returned))
				}
				if err := a.print(w, t); err != nil {
					return err
				}
				return a.printMoved(w, results)
			})
		},
	}
	orgs.add(command)
	command.Flags().BoolVar(&changeTypes, "change-types", false, "change the types of accounts with entries as well, which moves their balances in statements and exports of all years")
	return command
}

// printMoved shows which balances other types of their accounts have moved.
func (a *app) printMoved(w io.Writer, results []books.Change) error {
	t := newTable("ORGANIZATION", "ACCOUNT", "WAS", "IS", "BALANCE", "CURRENCY")
	t.right = []int{4}
	for _, r := range results {
		for _, m := range r.Moved {
			t.add(r.OrgID, m.Account, string(m.From), string(m.To), m.Balance, m.Currency)
		}
	}
	if len(t.rows) == 0 {
		return nil
	}
	return a.print(w, t)
}

func accountsListCommand(a *app) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:   "list --org ORG",
		Short: "List an organization's accounts",
		Args:  cobra.NoArgs,
		RunE: a.onDatabase(func(c *cobra.Command, db *database, _ []string) error {
			accounts, err := books.Accounts(c.Context(), db.Pool, org)
			if err != nil {
				return err
			}
			return a.emit(map[string]any{"accounts": accounts}, func(w io.Writer) error {
				t := newTable("CODE", "TYPE", "CURRENCIES", "NAME")
				for _, account := range accounts {
					t.add(account.Code, string(account.Type), strings.Join(account.Currencies, " "), account.Name)
				}
				return a.print(w, t)
			})
		}),
	}
	command.Flags().StringVar(&org, "org", "", "the organization")
	_ = command.MarkFlagRequired("org")
	return command
}
