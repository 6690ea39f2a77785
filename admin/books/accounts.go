package books

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/bom"
	"github.com/daybook-dev/daybook/internal/text/minor"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

// The longest code of an account, and the longest section.
const (
	maxCodeBytes    = 64
	maxSectionBytes = 255
)

// AccountsOptions say how accounts become part of an organization's chart.
type AccountsOptions struct {
	// Create makes an organization known of which Daybook has neither configuration, document nor
	// job. Without it such an id is taken for a mistake: ErrOrganizationNotFound.
	Create bool
	// ChangeTypes changes the types of accounts with entries as well. It moves what was posted to
	// them, in closed periods too, to other parts of statements and exports: income that becomes a
	// liability. Without it such a change is refused: ErrAccountInUse.
	ChangeTypes bool
	// DryRun changes nothing, and says what would be done.
	DryRun bool
}

// MovedBalance is the balance in one currency of an account whose type was changed.
type MovedBalance struct {
	Account string             `json:"account"`
	From    models.AccountType `json:"from"`
	To      models.AccountType `json:"to"`
	// BalanceMinor is debits less credits, in minor units; Balance is the same with the decimals of the
	// currency.
	BalanceMinor string `json:"balance_minor"`
	Balance      string `json:"balance"`
	Currency     string `json:"currency"`
}

// PutAccounts adds accounts to an organization's chart, or changes their names, types, currencies,
// roles and sections; accounts that are not named stay. An empty role or section stays as it is, and
// models.NoRoleOrSection takes it away. Their OrgID is not looked at. Jobs that had failed
// for an unknown account are pending again. The same accounts again change nothing.
//
// Errors: ErrInvalid, ErrOrganizationNotFound, ErrAccountInUse.
func PutAccounts(ctx context.Context, db DB, org string, accounts []models.Account, o AccountsOptions) (Change, error) {
	c := Change{OrgID: org}
	for i := range accounts {
		if wrong := wrongAccount(&accounts[i]); wrong != "" {
			return c, store.Invalid("account %d: %s", i+1, wrong)
		}
	}
	err := change(ctx, db, org, o.Create, func(tx pgx.Tx) error {
		var moved []MovedBalance
		done, err := ledgerdb.PutAccounts(ctx, tx, org, accounts, func(r []ledgerdb.Retyped) error {
			moved = movedBalances(r)
			if !o.ChangeTypes {
				return typesRefused(moved)
			}
			return nil
		})
		if err != nil {
			return err
		}
		c.Changed, c.Returned, c.Moved = done.Changed, done.Returned, moved
		note := map[string]any{"accounts": len(accounts), "changed": done.Changed, "returned": done.Returned}
		if len(moved) > 0 {
			note["moved"] = moved
		}
		if o.DryRun {
			return errDryRun
		}
		return actions.Note(ctx, tx, org, "", note)
	})
	if o.DryRun && errors.Is(err, errDryRun) {
		err = nil
	}
	return c, err
}

func movedBalances(retyped []ledgerdb.Retyped) []MovedBalance {
	moved := make([]MovedBalance, len(retyped))
	for i, r := range retyped {
		moved[i] = MovedBalance{
			Account: r.Account, From: r.From, To: r.To, BalanceMinor: r.Balance.String(),
			Balance: minor.Decimal(r.Balance, r.Currency), Currency: r.Currency,
		}
	}
	return moved
}

// typesRefused says what the change of types would move.
func typesRefused(moved []MovedBalance) error {
	const most = 10
	var parts []string
	for _, m := range moved[:min(len(moved), most)] {
		parts = append(parts, fmt.Sprintf("account %s from %s to %s, with a balance of %s %s", m.Account, m.From, m.To,
			m.Balance, m.Currency))
	}
	if more := len(moved) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return store.Refuse(ErrAccountInUse,
		"accounts with entries would change their type, and with it all statements and exports, of closed periods too: "+
			strings.Join(parts, "; "),
		"add --change-types if that is meant, or give the new type to an account with another code")
}

// Accounts lists an organization's chart of accounts in the order of the codes. Errors:
// ErrOrganizationNotFound.
func Accounts(ctx context.Context, db DB, org string) ([]models.Account, error) {
	if err := readable(ctx, db, org); err != nil {
		return nil, err
	}
	return ledgerdb.Accounts(ctx, db, org)
}

var accountTypes = []models.AccountType{
	models.AccountAsset, models.AccountLiability, models.AccountEquity, models.AccountIncome, models.AccountExpense,
}

// wrongAccount says what is wrong with an account; empty: nothing.
func wrongAccount(a *models.Account) string {
	switch {
	case a.Code == "" || len(a.Code) > maxCodeBytes:
		return fmt.Sprintf("the code must have 1 to %d bytes", maxCodeBytes)
	case !slices.Contains(accountTypes, a.Type):
		return fmt.Sprintf("the type is %q: want %s", a.Type, phrase.Or(accountTypes))
	case a.Role != "" && a.Role != models.NoRoleOrSection && !slices.Contains(models.AccountRoles, a.Role):
		return fmt.Sprintf("the role is %q: want %s; empty leaves it as it is, %s takes it away", a.Role,
			phrase.Or(models.AccountRoles), models.NoRoleOrSection)
	case len(a.Section) > maxSectionBytes:
		return fmt.Sprintf("the section must have at most %d bytes", maxSectionBytes)
	}
	for _, currency := range a.Currencies {
		if err := models.CheckCurrency(currency, models.Date{}); err != nil {
			return fmt.Sprintf("the currency %v; want codes such as EUR", err)
		}
	}
	return ""
}

// accountColumns are the columns of a chart, in any order; the first three are required.
var accountColumns = []string{"code", "name", "type", "currencies", "role", "section"}

// ParseAccounts reads a chart of accounts from CSV whose first line names its columns: code, name
// and type, and optionally currencies, role and section. A type is asset, liability, equity, income
// or expense; currencies are those that may be posted to the account, separated by spaces, an empty
// field: all. Roles are models.AccountRoles, a section is a heading in statements; PutAccounts says
// what an empty one means. The error of a line that is wrong names it.
//
// Errors: ErrInvalid.
func ParseAccounts(data []byte) ([]models.Account, error) {
	data, err := bom.Trim(data)
	if err != nil {
		return nil, store.Refuse(ErrInvalid, err.Error(), "")
	}
	reader := csv.NewReader(bytes.NewReader(data))
	reader.TrimLeadingSpace = true
	if first, _, _ := bytes.Cut(data, []byte("\n")); bytes.Contains(first, []byte(";")) {
		reader.Comma = ';' // as Excel writes it where the comma is the decimal sign
	}
	// Each line must have as many fields as the first.
	head, err := reader.Read()
	if err != nil || !isChartHead(head) {
		return nil, store.Refuse(ErrInvalid,
			"the first line must name the columns code, name and type, and may name currencies, role and section", "")
	}
	var accounts []models.Account
	for {
		row, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, store.Refuse(ErrInvalid, err.Error(), "")
		}
		line, _ := reader.FieldPos(0)
		account := accountOf(head, row)
		if wrong := wrongAccount(&account); wrong != "" {
			return nil, store.Refuse(ErrInvalid, fmt.Sprintf("line %d: %s", line, wrong), "")
		}
		accounts = append(accounts, account)
	}
	if len(accounts) == 0 {
		return nil, store.Refuse(ErrInvalid, "there is no account in it", "")
	}
	return accounts, nil
}

// isChartHead says whether the columns are those of a chart, each once.
func isChartHead(head []string) bool {
	for i, column := range head {
		if !slices.Contains(accountColumns, column) || slices.Contains(head[:i], column) {
			return false
		}
	}
	return !slices.ContainsFunc(accountColumns[:3], func(c string) bool { return !slices.Contains(head, c) })
}

// accountOf reads one line of a chart.
func accountOf(head, row []string) (a models.Account) {
	for i, column := range head {
		switch value := row[i]; column {
		case "code":
			a.Code = value
		case "name":
			a.Name = value
		case "type":
			a.Type = models.AccountType(value)
		case "currencies":
			a.Currencies = strings.Fields(value)
		case "role":
			a.Role = models.AccountRole(strings.TrimSpace(value))
		case "section":
			a.Section = strings.TrimSpace(value)
		}
	}
	return a
}
