package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
)

// UseConfigurations takes, for as long as the transaction lasts, the shared lock on the configuration of each organization
// that no transaction is changing or waits to change, and returns those. It never waits, and takes a bounded number of locks,
// however many organizations there are.
func UseConfigurations(ctx context.Context, tx pgx.Tx, orgs []string) (map[string]bool, error) {
	const stmt = `SELECT daybook.try_use_configurations($1)`
	used := make(map[string]bool, len(orgs))
	var org string
	err := each(ctx, tx, []any{&org}, func() error {
		used[org] = true
		return nil
	}, stmt, orgs)
	return used, wrap("lock configurations", err)
}

// lockConfiguration waits until no transaction uses or changes the organization's configuration, and holds it until the transaction
// ends. Every change of rules, accounts and periods begins with it.
func lockConfiguration(ctx context.Context, tx pgx.Tx, org string) error {
	_, err := tx.Exec(ctx, `SELECT daybook.lock_configuration($1)`, org)
	return wrap("lock the configuration of "+org, err)
}

// AccountCodes reads the codes of an organization's chart of accounts.
func AccountCodes(ctx context.Context, q Querier, org string) ([]string, error) {
	codes, err := collect(ctx, q, pgx.RowTo[string], `SELECT code FROM daybook.accounts WHERE org_id = $1`, org)
	return codes, wrap("read accounts", err)
}

// PutOrganization makes an organization known, or renames it; an empty name leaves the name alone. It locks the row only
// when it changes it: a worker that holds a document may wait for its organization.
func PutOrganization(ctx context.Context, tx pgx.Tx, id, name string) error {
	const rename = `UPDATE daybook.organizations SET name = $2, updated_at = clock_timestamp() WHERE id = $1 AND $2 <> '' AND name <> $2`
	if _, err := addOrganization(ctx, tx, id, name); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, rename, id, name)
	return wrap("write organization "+id, err)
}

// addOrganization makes an organization known, and reports whether it was not.
func addOrganization(ctx context.Context, tx pgx.Tx, id, name string) (bool, error) {
	const stmt = `INSERT INTO daybook.organizations (id, name) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`
	tag, err := tx.Exec(ctx, stmt, id, name)
	return tag.RowsAffected() > 0, wrap("write organization "+id, err)
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

// PutAccounts adds accounts to an organization's chart, or changes their names and types, and returns the jobs that had
// failed for an unknown account to pending.
func PutAccounts(ctx context.Context, tx pgx.Tx, org string, accounts []models.Account) (Activated, error) {
	const put = `
INSERT INTO daybook.accounts AS a (org_id, code, name, type, currencies)
SELECT @org, code, name, type, currencies::text[]
  FROM unnest(@codes::text[], @names::text[], @types::daybook.account_type[], @currencies::text[]) AS n (code, name, type, currencies)
ON CONFLICT (org_id, code) DO UPDATE SET name = excluded.name, type = excluded.type, currencies = excluded.currencies
 WHERE (a.name, a.type, a.currencies) IS DISTINCT FROM (excluded.name, excluded.type, excluded.currencies)`

	if err := PutOrganization(ctx, tx, org, ""); err != nil {
		return Activated{}, err
	}
	if err := lockConfiguration(ctx, tx, org); err != nil {
		return Activated{}, err
	}
	n := len(accounts)
	codes, names, types, currencies := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	seen := make(map[string]bool, n)
	for i, a := range accounts {
		if seen[a.Code] {
			return Activated{}, fmt.Errorf("account %s is listed twice: %w", a.Code, ErrInvalid)
		}
		seen[a.Code] = true
		codes[i], names[i], types[i] = a.Code, a.Name, string(a.Type)
		currencies[i] = "{" + strings.Join(a.Currencies, ",") + "}"
	}
	tag, err := tx.Exec(ctx, put, args{"org": org, "codes": codes, "names": names, "types": types, "currencies": currencies})
	if err != nil {
		return Activated{}, wrap("write accounts", err)
	}
	if tag.RowsAffected() == 0 {
		return Activated{}, nil
	}
	a := Activated{Changed: true}
	a.Returned, err = returnFailed(ctx, tx, org, models.CodeUnknownAccount)
	return a, err
}

// returnFailed makes an organization's failed jobs with one of the codes pending again, their attempts reset. A row that
// another transaction is changing is left to it: it is not failed any more.
func returnFailed(ctx context.Context, tx pgx.Tx, org string, codes ...models.ErrorCode) (int, error) {
	const stmt = `
WITH failed AS (
    SELECT id FROM daybook.accounting_work_queue
     WHERE state = 'failed' AND org_id = $1 AND last_error_code = ANY ($2)
     ORDER BY org_id, document_id
       FOR NO KEY UPDATE SKIP LOCKED
), returned AS (
    UPDATE daybook.accounting_work_queue q
       SET state = 'pending', ready_at = clock_timestamp(), first_ready_at = clock_timestamp(), run_count = 0, not_ready_count = 0,
           generation = q.generation + 1, finished_at = NULL, updated_at = clock_timestamp()
      FROM failed
     WHERE q.id = failed.id
    RETURNING 1
)
SELECT count(*), CASE WHEN count(*) > 0 THEN daybook.wake_accounting_queue()::text END FROM returned`
	var n int
	var woken *string
	err := tx.QueryRow(ctx, stmt, org, texts(codes)).Scan(&n, &woken)
	return n, wrap("return failed jobs", err)
}
