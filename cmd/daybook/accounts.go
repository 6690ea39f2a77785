package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

func accountsCommand(a *app) *cobra.Command {
	command := &cobra.Command{Use: "accounts", Short: "Import and list charts of accounts, and what was posted to an account"}
	command.AddCommand(accountsImportCommand(a), accountsListCommand(a), accountsLedgerCommand(a))
	return command
}

func accountsImportCommand(a *app) *cobra.Command {
	var orgs organizationFlags
	command := &cobra.Command{
		Use:   "import FILE|- --org ORG…|--all-orgs",
		Short: "Add accounts from a CSV file with the columns code, name, type and, optionally, currencies",
		Long: "Adds accounts from a CSV file whose first line is code,name,type, or changes their names and types. A type is asset,\n" +
			"liability, equity, income or expense. A fourth column, currencies, holds the currencies that may be posted to the\n" +
			"account, separated by spaces; an empty one: all. Jobs that had failed for an unknown account are pending again.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := orgs.check(); err != nil {
				return err
			}
			data, err := a.readInput(args[0])
			if err != nil {
				return err
			}
			accounts, err := parseAccounts(data)
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
			results := make([]activated, 0, len(ids))
			for _, id := range ids {
				result, err := putAccounts(c.Context(), db, id, accounts)
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
				return a.print(w, t)
			})
		},
	}
	orgs.add(command)
	return command
}

func putAccounts(ctx context.Context, db *database, org string, accounts []models.Account) (activated, error) {
	var done ledgerdb.Activated
	err := store.Begin(ctx, db.Pool, func(tx pgx.Tx) error {
		var err error
		if done, err = ledgerdb.PutAccounts(ctx, tx, org, accounts); err != nil {
			return err
		}
		return actions.Note(ctx, tx, org, "", map[string]any{"accounts": len(accounts), "changed": done.Changed, "returned": done.Returned})
	})
	return activated{OrgID: org, Changed: done.Changed, Returned: done.Returned}, err
}

var accountTypes = []models.AccountType{
	models.AccountAsset, models.AccountLiability, models.AccountEquity, models.AccountIncome, models.AccountExpense,
}

// accountColumns are the columns of a chart; the last one may be missing.
var accountColumns = []string{"code", "name", "type", "currencies"}

// parseAccounts reads a chart of accounts.
func parseAccounts(data []byte) ([]models.Account, error) {
	reader := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))))
	reader.TrimLeadingSpace = true
	// Each line must have as many fields as the first.
	head, err := reader.Read()
	if err != nil || (!slices.Equal(head, accountColumns[:3]) && !slices.Equal(head, accountColumns)) {
		return nil, usagef("the first line must be code,name,type or code,name,type,currencies")
	}
	var accounts []models.Account
	for {
		row, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, usagef("%v", err)
		}
		line, _ := reader.FieldPos(0)
		account := models.Account{Code: row[0], Name: row[1], Type: models.AccountType(row[2])}
		if account.Code == "" || len(account.Code) > 64 {
			return nil, usagef("line %d: the code must have 1 to 64 bytes", line)
		}
		if !slices.Contains(accountTypes, account.Type) {
			return nil, usagef("line %d: the type is %q: want one of %v", line, account.Type, accountTypes)
		}
		if len(row) == len(accountColumns) {
			account.Currencies = strings.Fields(row[3])
		}
		for _, currency := range account.Currencies {
			if _, ok := models.MinorDigits(currency); !ok {
				return nil, usagef("line %d: ISO 4217 lists no currency %q: want codes such as EUR, separated by spaces", line, currency)
			}
		}
		accounts = append(accounts, account)
	}
	if len(accounts) == 0 {
		return nil, usagef("there is no account in it")
	}
	return accounts, nil
}

func accountsListCommand(a *app) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:   "list --org ORG",
		Short: "List an organization's accounts",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			db, err := a.open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.close()
			if _, err := db.Organization(c.Context(), org); err != nil {
				return err
			}
			accounts, err := db.Accounts(c.Context(), org)
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
		},
	}
	command.Flags().StringVar(&org, "org", "", "the organization")
	_ = command.MarkFlagRequired("org")
	return command
}
