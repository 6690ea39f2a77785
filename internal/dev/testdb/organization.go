package testdb

import (
	"cmp"
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/internal/moving/sample"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// Organization is what AddOrganization makes; daybooktest.Organization says what each field means.
type Organization struct {
	ID       string
	Accounts []models.Account
	Rules    []byte
	Source   string
	Hooks    []string
}

// AddOrganization makes an organization whose documents can be posted. It fails the test if the
// accounts or the rules are wrong.
func AddOrganization(tb testing.TB, pool *pgxpool.Pool, o Organization) {
	tb.Helper()
	if o.Accounts == nil {
		o.Accounts = sample.Chart()
	}
	name := "test"
	if o.Rules == nil {
		name, o.Rules = "sample", sample.Rules()
	} else if _, err := posting.Compile(o.Rules); err != nil {
		tb.Fatalf("daybooktest: organization %s: rules: %v", o.ID, err)
	}
	ctx := tb.Context()
	if err := store.Begin(ctx, pool, func(tx pgx.Tx) error { return o.write(ctx, tx, name) }); err != nil {
		tb.Fatalf("daybooktest: organization %s: %v", cmp.Or(o.ID, "without an id"), err)
	}
}

func (o Organization) write(ctx context.Context, tx pgx.Tx, ruleSet string) error {
	if err := store.PutOrganization(ctx, tx, o.ID, o.ID); err != nil {
		return err
	}
	if _, err := ledgerdb.PutAccounts(ctx, tx, o.ID, o.Accounts, nil); err != nil {
		return fmt.Errorf("accounts: %w", err)
	}
	if _, err := ledgerdb.ApplyRuleSet(ctx, tx, o.ID, ruleSet, string(o.Rules)); err != nil {
		return fmt.Errorf("rules: %w", err)
	}
	if o.Source != "" {
		if _, err := store.SetSource(ctx, tx, o.ID, o.Source); err != nil {
			return fmt.Errorf("source: %w", err)
		}
	}
	if o.Hooks != nil {
		if _, err := store.SetHooks(ctx, tx, o.ID, o.Hooks); err != nil {
			return fmt.Errorf("hooks: %w", err)
		}
	}
	return nil
}
