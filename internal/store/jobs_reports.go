package store

import "context"

// AccountExists reads whether Daybook knows an organization, and whether its chart has an account.
func AccountExists(ctx context.Context, q Querier, org, account string) (orgExists, accountExists bool, err error) {
	const stmt = `
SELECT EXISTS (SELECT 1 FROM daybook.organizations WHERE id = $1), EXISTS (SELECT 1 FROM daybook.accounts WHERE org_id = $1 AND code = $2)`
	err = q.QueryRow(ctx, stmt, org, account).Scan(&orgExists, &accountExists)
	return orgExists, accountExists, wrap("look for the account", err)
}
