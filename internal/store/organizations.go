package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
)

// Config is what an organization posts by.
type Config struct {
	OrgID string
	// RuleSetVersion is nil when no rule set is active.
	RuleSetVersion *int64
	// RuleSetSHA256 is the hash of the active rule set's source.
	RuleSetSHA256 string
	// ConfigVersion grows with each activated rule set and added account.
	ConfigVersion int64
}

// Configs reads what each organization posts by; one that Daybook does not know is missing from the answer.
func Configs(ctx context.Context, tx pgx.Tx, orgs []string) (map[string]Config, error) {
	const stmt = `
SELECT o.id, o.active_rule_set, coalesce(r.sha256, ''), o.config_version
  FROM daybook.organizations o
  LEFT JOIN daybook.rule_sets r ON r.org_id = o.id AND r.version = o.active_rule_set
 WHERE o.id = ANY ($1)`
	rows, err := tx.Query(ctx, stmt, orgs)
	if err != nil {
		return nil, wrap("read organizations", err)
	}
	configs := make(map[string]Config, len(orgs))
	var c Config
	_, err = pgx.ForEachRow(rows, []any{&c.OrgID, &c.RuleSetVersion, &c.RuleSetSHA256, &c.ConfigVersion}, func() error {
		configs[c.OrgID] = c
		return nil
	})
	return configs, wrap("read organizations", err)
}

// HoldConfigs keeps the organizations' configuration from changing until the transaction ends, and returns its versions.
// A job that fails for its configuration fails under this lock, so that either it sees the change or the change finds it
// failed. An organization that Daybook does not know yet is made known.
func HoldConfigs(ctx context.Context, tx pgx.Tx, orgs []string) (map[string]int64, error) {
	const add = `INSERT INTO daybook.organizations (id) SELECT unnest($1::text[]) ORDER BY 1 ON CONFLICT (id) DO NOTHING`
	const hold = `SELECT id, config_version FROM daybook.organizations WHERE id = ANY ($1) ORDER BY id FOR SHARE`
	if _, err := tx.Exec(ctx, add, orgs); err != nil {
		return nil, wrap("add organizations", err)
	}
	rows, err := tx.Query(ctx, hold, orgs)
	if err != nil {
		return nil, wrap("hold organizations", err)
	}
	versions := make(map[string]int64, len(orgs))
	var id string
	var version int64
	_, err = pgx.ForEachRow(rows, []any{&id, &version}, func() error {
		versions[id] = version
		return nil
	})
	return versions, wrap("hold organizations", err)
}

// RuleSetSource reads one version of an organization's rules.
func RuleSetSource(ctx context.Context, q Querier, org string, version int64) (string, error) {
	var source string
	err := q.QueryRow(ctx, `SELECT source FROM daybook.rule_sets WHERE org_id = $1 AND version = $2`, org, version).Scan(&source)
	return source, wrap("read the rule set", err)
}

// AccountCodes reads an organization's chart of accounts.
func AccountCodes(ctx context.Context, q Querier, org string) ([]string, error) {
	rows, err := q.Query(ctx, `SELECT code FROM daybook.accounts WHERE org_id = $1`, org)
	if err != nil {
		return nil, wrap("read accounts", err)
	}
	codes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return codes, wrap("read accounts", err)
}

// PutOrganization makes an organization known, or renames it; an empty name leaves the name alone. It locks the row only
// when it changes it: a worker that holds a document may wait for its organization.
func PutOrganization(ctx context.Context, tx pgx.Tx, id, name string) error {
	const add = `INSERT INTO daybook.organizations (id, name) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`
	const rename = `UPDATE daybook.organizations SET name = $2, updated_at = clock_timestamp() WHERE id = $1 AND $2 <> '' AND name <> $2`
	for _, stmt := range []string{add, rename} {
		if _, err := tx.Exec(ctx, stmt, id, name); err != nil {
			return wrap("write organization "+id, err)
		}
	}
	return nil
}

// Activated is what a change of an organization's configuration led to.
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
	const hold = `SELECT 1 FROM daybook.organizations WHERE id = $1 FOR NO KEY UPDATE`
	const put = `
INSERT INTO daybook.accounts AS a (org_id, code, name, type)
SELECT $1, code, name, type FROM unnest($2::text[], $3::text[], $4::daybook.account_type[]) AS n (code, name, type)
ON CONFLICT (org_id, code) DO UPDATE SET name = excluded.name, type = excluded.type
 WHERE (a.name, a.type) IS DISTINCT FROM (excluded.name, excluded.type)`
	const bump = `UPDATE daybook.organizations SET config_version = config_version + 1, updated_at = clock_timestamp() WHERE id = $1`

	if err := PutOrganization(ctx, tx, org, ""); err != nil {
		return Activated{}, err
	}
	if _, err := tx.Exec(ctx, hold, org); err != nil {
		return Activated{}, wrap("hold organization "+org, err)
	}
	n := len(accounts)
	codes, names, types := make([]string, n), make([]string, n), make([]string, n)
	seen := make(map[string]bool, n)
	for i, a := range accounts {
		if seen[a.Code] {
			return Activated{}, fmt.Errorf("account %s is listed twice: %w", a.Code, ErrInvalid)
		}
		seen[a.Code] = true
		codes[i], names[i], types[i] = a.Code, a.Name, string(a.Type)
	}
	tag, err := tx.Exec(ctx, put, org, codes, names, types)
	if err != nil {
		return Activated{}, wrap("write accounts", err)
	}
	if tag.RowsAffected() == 0 {
		return Activated{}, nil
	}
	if _, err := tx.Exec(ctx, bump, org); err != nil {
		return Activated{}, wrap("write organization "+org, err)
	}
	a := Activated{Changed: true}
	a.Returned, err = returnFailed(ctx, tx, org, models.CodeUnknownAccount)
	return a, err
}

// returnFailed makes an organization's failed jobs with one of the codes pending again, their attempts reset. A row that
// somebody else is changing is left to them: it is not failed any more.
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
	names := make([]string, len(codes))
	for i, c := range codes {
		names[i] = string(c)
	}
	var n int
	var woken *string
	err := tx.QueryRow(ctx, stmt, org, names).Scan(&n, &woken)
	return n, wrap("return failed jobs", err)
}
