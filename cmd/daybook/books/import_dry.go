package books

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math/big"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/minor"
	"github.com/daybook-dev/daybook/models"
)

// importTrial is what an import would cause, by what its organizations post by now.
type importTrial struct {
	// Accounts are the sums of the entries, by organization, currency and account.
	Accounts []accountSum `json:"accounts"`
	// Failing are the documents whose jobs would fail.
	Failing []ImportProblem `json:"failing"`
	sums    map[accountKey]*accountSum
}

type accountKey struct{ org, currency, account string }

// accountSum is what would be posted to an account, in minor units.
type accountSum struct {
	OrgID    string   `json:"org_id"`
	Currency string   `json:"currency"`
	Account  string   `json:"account"`
	Debit    *big.Int `json:"debit_minor"`
	Credit   *big.Int `json:"credit_minor"`
}

// try writes documents as an import does, evaluates those that would be posted anew, and takes all
// of it back.
func (i *Importer) try(ctx context.Context, items []ImportItem, docs []ledgerdb.NewDocument) (puts []ledgerdb.Put, err error) {
	trials := map[string]ledger.Trial{}
	err = store.Begin(ctx, i.pool, func(tx pgx.Tx) (err error) {
		for n, item := range items {
			if i.Create && (n == 0 || items[n-1].Document.OrgID != item.Document.OrgID) {
				if err = store.PutOrganization(ctx, tx, item.Document.OrgID, item.name); err != nil {
					return err
				}
			}
		}
		if puts, err = ledgerdb.PutDocuments(ctx, tx, docs, true); err != nil {
			return err
		}
		for n, item := range items {
			org := item.Document.OrgID
			if _, ok := trials[org]; !ok && puts[n].Result != ledgerdb.PutUnchanged {
				if trials[org], err = ledger.NewTrial(ctx, tx, org); err != nil {
					return err
				}
			}
		}
		return errDryRun
	})
	if !errors.Is(err, errDryRun) {
		return nil, err
	}
	for n, item := range items {
		if puts[n].Result != ledgerdb.PutUnchanged {
			impact, _, wrong := trials[item.Document.OrgID].Evaluate(&item.Document)
			i.mu.Lock()
			i.Result.Trial.add(&item, impact, wrong)
			i.mu.Unlock()
		}
	}
	return puts, nil
}

// add counts what became of a document.
func (t *importTrial) add(item *ImportItem, impact *posting.Impact, wrong *models.JobError) {
	if wrong != nil {
		t.Failing = append(t.Failing, ImportProblem{
			Source: item.Source, Code: wrong.Code, Reason: string(wrong.Code) + ": " + wrong.Message,
		})
		return
	}
	for _, e := range impact.Entries {
		key := accountKey{item.Document.OrgID, e.Currency, e.Account}
		sum := t.sums[key]
		if sum == nil {
			sum = &accountSum{key.org, key.currency, key.account, new(big.Int), new(big.Int)}
			t.sums[key] = sum
		}
		side := sum.Debit
		if e.Side == models.Credit {
			side = sum.Credit
		}
		side.Add(side, big.NewInt(e.Amount))
	}
}

// finish puts the sums in order.
func (t *importTrial) finish() {
	for _, s := range t.sums {
		t.Accounts = append(t.Accounts, *s)
	}
	slices.SortFunc(t.Accounts, func(a, b accountSum) int {
		return cmp.Or(cmp.Compare(a.OrgID, b.OrgID), cmp.Compare(a.Currency, b.Currency), cmp.Compare(a.Account, b.Account))
	})
}

func (t *importTrial) print(a *cli.App, w io.Writer) error {
	if err := printProblems(w, "would fail", t.Failing); err != nil {
		return err
	}
	table := cli.NewTable("ORGANIZATION", "CURRENCY", "ACCOUNT", "DEBIT", "CREDIT")
	table.Right = []int{3, 4}
	for _, s := range t.Accounts {
		table.Add(s.OrgID, s.Currency, s.Account, minor.Decimal(s.Debit, s.Currency), minor.Decimal(s.Credit, s.Currency))
	}
	return a.Print(w, table)
}
