package books_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/models"
)

func TestNoDB(t *testing.T) {
	t.Parallel()
	const org = "acme"
	for name, db := range map[string]books.DB{"nil": nil, "nil pool": (*pgxpool.Pool)(nil), "in nil": books.In(nil)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, said := t.Context(), map[string]error{}
			_, said["PutAccounts"] = books.PutAccounts(ctx, db, org,
				[]models.Account{{Code: "1200", Name: "Receivables", Type: models.AccountAsset}}, books.AccountsOptions{})
			_, said["Accounts"] = books.Accounts(ctx, db, org)
			_, said["Periods"] = books.Periods(ctx, db, org)
			_, said["AddPeriods"] = books.AddPeriods(ctx, db, org, []models.Period{books.Month(2026, 1)}, books.AddPeriodsOptions{})
			_, said["ClosePeriod"] = books.ClosePeriod(ctx, db, org, books.Month(2026, 1), books.CloseOptions{})
			_, said["OpenPeriod"] = books.OpenPeriod(ctx, db, org, books.Month(2026, 1), books.OpenOptions{})
			_, said["ClosedPeriodPolicy"] = books.ClosedPeriodPolicy(ctx, db, org)
			_, said["SetClosedPeriodPolicy"] = books.SetClosedPeriodPolicy(ctx, db, org, models.PolicyFail)
			_, said["ActivateRules"] = books.ActivateRules(ctx, db, org, 1, books.ActivateOptions{})
			_, said["MissingAccounts"] = books.MissingAccounts(ctx, db, org, nil)
			_, said["Imports"] = books.Imports(ctx, db, books.ImportsOptions{})
			_, said["UndoImport"] = books.UndoImport(ctx, db, 1, books.UndoOptions{})
			_, said["RuleSets"] = books.RuleSets(ctx, db, org)
			_, said["RuleSet"] = books.RuleSet(ctx, db, org, 1)
			_, said["PreviewRules"] = books.PreviewRules(ctx, db, org, nil, books.PreviewOptions{})
			for function, err := range said {
				require.ErrorIs(t, err, books.ErrNoDB, function)
			}
		})
	}
}
