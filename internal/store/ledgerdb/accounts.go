package ledgerdb

import (
	"context"
	"math/big"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// UseConfigurations takes, for as long as the transaction lasts, the shared lock on the
// configuration of each organization that no transaction is changing or waits to change, and
// returns those. It never waits, and takes a bounded number of locks, however many organizations
// there are.
func UseConfigurations(ctx context.Context, tx pgx.Tx, orgs []string) (map[string]bool, error) {
	const stmt = `SELECT daybook.try_use_configurations($1)`
	used := make(map[string]bool, len(orgs))
	var org string
	err := store.Each(ctx, tx, []any{&org}, func() error {
		used[org] = true
		return nil
	}, stmt, orgs)
	return used, store.Wrap("lock configurations", err)
}

// UseConfiguration waits until no transaction changes the organization's configuration, and keeps it
// as it is until the transaction ends. Other organizations are not waited for, nor do they wait. Rows
// of documents are locked before it, those of organizations and jobs after it.
func UseConfiguration(ctx context.Context, tx pgx.Tx, org string) error {
	_, err := tx.Exec(ctx, `SELECT daybook.use_configuration($1)`, org)
	return store.Wrap("lock the configuration of "+org, err)
}

// lockConfiguration waits until no transaction uses or changes the organization's configuration,
// and holds it until the transaction ends. Every change of rules, accounts and periods begins with
// it.
func lockConfiguration(ctx context.Context, tx pgx.Tx, org string) error {
	_, err := tx.Exec(ctx, `SELECT daybook.lock_configuration($1)`, org)
	return store.Wrap("lock the configuration of "+org, err)
}

// AccountCodes reads the codes of an organization's chart of accounts.
func AccountCodes(ctx context.Context, q store.Querier, org string) ([]string, error) {
	codes, err := store.Collect(ctx, q, pgx.RowTo[string], `SELECT code FROM daybook.accounts WHERE org_id = $1`, org)
	return codes, store.Wrap("read accounts", err)
}

// AccountNames reads the names of accounts by their codes. Those that the chart lacks are left out.
func AccountNames(ctx context.Context, q store.Querier, org string, codes []string) (map[string]string, error) {
	const stmt = `SELECT code, name FROM daybook.accounts WHERE org_id = $1 AND code = ANY ($2)`
	names := make(map[string]string, len(codes))
	var code, name string
	err := store.Each(ctx, q, []any{&code, &name}, func() error {
		names[code] = name
		return nil
	}, stmt, org, codes)
	return names, store.Wrap("read the names of accounts", err)
}

// Accounts reads an organization's chart of accounts in the order of the codes.
func Accounts(ctx context.Context, q store.Querier, org string) ([]models.Account, error) {
	const stmt = `
SELECT code, name, type, created_at, currencies, role, section FROM daybook.accounts WHERE org_id = $1 ORDER BY code`
	accounts, err := store.Collect(ctx, q, func(row pgx.CollectableRow) (models.Account, error) {
		a := models.Account{OrgID: org}
		err := row.Scan(&a.Code, &a.Name, &a.Type, &a.CreatedAt, (*[]string)(&a.Currencies), &a.Role, &a.Section)
		return a, err
	}, stmt, org)
	if accounts == nil {
		accounts = []models.Account{}
	}
	return accounts, store.Wrap("list accounts", err)
}

// Activated is the result of a change of an organization's configuration.
type Activated struct {
	// Version is the rule set's; 0 for a change of accounts.
	Version int64
	// Changed is false when the organization posts by the same already.
	Changed bool
	// Returned counts the failed jobs that are pending again because of it.
	Returned int
}

// PutAccounts adds accounts to an organization's chart, or changes them, and returns the jobs that had failed for an unknown account to pending. allow is asked before the
// types of accounts with entries are changed; its error refuses the change. nil allows it.
func PutAccounts(ctx context.Context, tx pgx.Tx, org string, accounts []models.Account,
	allow func([]Retyped) error,
) (Activated, error) {
	const put = `
INSERT INTO daybook.accounts AS a (org_id, code, name, type, currencies, role, section)
SELECT @org, n.code, n.name, n.type, n.currencies::text[],
       CASE n.role WHEN '' THEN coalesce(was.role, '') WHEN 'none' THEN '' ELSE n.role END,
       CASE n.section WHEN '' THEN coalesce(was.section, '') WHEN 'none' THEN '' ELSE n.section END
  FROM unnest(@codes::text[], @names::text[], @types::daybook.account_type[], @currencies::text[], @roles::text[], @sections::text[])
       AS n (code, name, type, currencies, role, section)
  LEFT JOIN daybook.accounts was ON was.org_id = @org AND was.code = n.code
ON CONFLICT (org_id, code) DO UPDATE
   SET name = excluded.name, type = excluded.type, currencies = excluded.currencies, role = excluded.role, section = excluded.section
 WHERE (a.name, a.type, a.currencies, a.role, a.section)
       IS DISTINCT FROM (excluded.name, excluded.type, excluded.currencies, excluded.role, excluded.section)`

	if err := store.PutOrganization(ctx, tx, org, ""); err != nil {
		return Activated{}, err
	}
	if err := lockConfiguration(ctx, tx, org); err != nil {
		return Activated{}, err
	}
	n := len(accounts)
	codes, names, types, currencies := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	roles, sections := make([]string, n), make([]string, n)
	seen := make(map[string]bool, n)
	for i, a := range accounts {
		if seen[a.Code] {
			return Activated{}, store.Invalid("account %s is listed twice", a.Code)
		}
		seen[a.Code] = true
		codes[i], names[i], types[i] = a.Code, a.Name, string(a.Type)
		roles[i], sections[i] = string(a.Role), a.Section
		currencies[i] = "{" + strings.Join(a.Currencies, ",") + "}"
	}
	if allow != nil {
		moved, err := retyped(ctx, tx, org, codes, types)
		if err == nil && len(moved) > 0 {
			err = allow(moved)
		}
		if err != nil {
			return Activated{}, err
		}
	}
	tag, err := tx.Exec(ctx, put,
		store.Args{
			"org": org, "codes": codes, "names": names, "types": types, "currencies": currencies,
			"roles": roles, "sections": sections,
		})
	if err != nil {
		return Activated{}, store.Wrap("write accounts", err)
	}
	if tag.RowsAffected() == 0 {
		return Activated{}, nil
	}
	a := Activated{Changed: true}
	a.Returned, err = store.ReturnFailed(ctx, tx, org, models.CodeUnknownAccount)
	return a, err
}

// Retyped is the balance in one currency of an account with entries whose type changes.
type Retyped struct {
	Account  string
	From, To models.AccountType
	Currency string
	// Balance is debits less credits in minor units, of all entries.
	Balance *big.Int
}

// retyped reads what moves to another type with the accounts.
func retyped(ctx context.Context, q store.Querier, org string, codes, types []string) ([]Retyped, error) {
	const stmt = `
SELECT a.code, a.type, n.type, e.currency, sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END)::text
  FROM unnest(@codes::text[], @types::daybook.account_type[]) AS n (code, type)
  JOIN daybook.accounts a ON a.org_id = @org AND a.code = n.code AND a.type <> n.type
  JOIN daybook.entries e ON e.org_id = @org AND e.account_code = a.code
 GROUP BY a.code, a.type, n.type, e.currency
 ORDER BY a.code, e.currency`
	moved, err := store.Collect(ctx, q, func(row pgx.CollectableRow) (Retyped, error) {
		var r Retyped
		var balance string
		if err := row.Scan(&r.Account, &r.From, &r.To, &r.Currency, &balance); err != nil {
			return r, err
		}
		r.Balance, _ = new(big.Int).SetString(balance, 10)
		return r, nil
	}, stmt, store.Args{"org": org, "codes": codes, "types": types})
	return moved, store.Wrap("look for entries of accounts whose type changes", err)
}

// AccountExists reads whether Daybook knows an organization, and whether its chart has an account.
func AccountExists(ctx context.Context, q store.Querier, org,
	account string,
) (orgExists, accountExists bool, err error) {
	const stmt = `
SELECT EXISTS (SELECT 1 FROM daybook.organizations WHERE id = $1), EXISTS (SELECT 1 FROM daybook.accounts WHERE org_id = $1 AND code = $2)`
	err = q.QueryRow(ctx, stmt, org, account).Scan(&orgExists, &accountExists)
	return orgExists, accountExists, store.Wrap("look for the account", err)
}
