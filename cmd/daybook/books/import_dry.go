package books

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// trialDocuments is how many documents a dry run shows the entries of.
const trialDocuments = 20

// importTrial is what an import would cause, by what its organizations post by now.
type importTrial struct {
	// Accounts are the sums of the entries, by organization, currency and account.
	Accounts []accountSum `json:"accounts"`
	// Documents are the first of those of which something would be posted, with their entries.
	Documents []trialDocument `json:"documents"`
	// Failing are the documents whose jobs would fail.
	Failing []ImportProblem `json:"failing"`
	sums    map[accountKey]*sides
}

// trialDocument is what would be posted of a document.
type trialDocument struct {
	OrgID   string       `json:"org_id"`
	ID      string       `json:"id"`
	Entries []trialEntry `json:"entries"`
}

// trialEntry is an entry that would be posted, or that reverses one.
type trialEntry struct {
	Kind        models.ImpactKind `json:"kind"`
	PostingDate models.Date       `json:"posting_date"`
	Account     string            `json:"account"`
	Side        models.Side       `json:"side"`
	AmountMinor answers.Minor     `json:"amount_minor"`
	Amount      answers.Decimal   `json:"amount"`
	Currency    string            `json:"currency"`
	amount      *big.Int
}

func newTrialEntry(kind models.ImpactKind, day models.Date, account string, side models.Side, amount int64, currency string,
) trialEntry {
	e := trialEntry{
		Kind: kind, PostingDate: day, Account: account, Side: side, Currency: currency, amount: big.NewInt(amount),
	}
	e.AmountMinor, e.Amount = answers.Amount(e.amount, currency)
	return e
}

type accountKey struct{ org, currency, account string }

// sides are what would be debited and credited to an account.
type sides struct{ debit, credit big.Int }

// accountSum is what would be posted to an account.
type accountSum struct {
	OrgID       string          `json:"org_id"`
	Currency    string          `json:"currency"`
	Account     string          `json:"account"`
	DebitMinor  answers.Minor   `json:"debit_minor"`
	CreditMinor answers.Minor   `json:"credit_minor"`
	Debit       answers.Decimal `json:"debit"`
	Credit      answers.Decimal `json:"credit"`
}

// try writes documents as an import does, evaluates those that would be posted anew, and takes all
// of it back.
func (i *Importer) try(ctx context.Context, items []ImportItem, docs []ledgerdb.NewDocument) (puts []ledgerdb.Put, err error) {
	trials := map[string]ledger.Trial{}
	var posted trialPosted
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
		if err = standFor(ctx, tx, items); err != nil {
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
		if posted, err = readPosted(ctx, tx, docs, puts); err != nil {
			return err
		}
		return errDryRun
	})
	if !errors.Is(err, errDryRun) {
		return nil, err
	}
	for n, item := range items {
		if puts[n].Result == ledgerdb.PutUnchanged {
			continue
		}
		entries, wrong := posted.entries(trials[item.Document.OrgID], &item.Document)
		i.mu.Lock()
		i.Result.Trial.add(&item, entries, wrong)
		i.mu.Unlock()
	}
	return puts, nil
}

// trialPosted is what is posted of documents that an import would change.
type trialPosted struct {
	last  map[ledgerdb.DocumentKey]*ledgerdb.LastImpact
	lines map[int64][]models.Entry
}

// readPosted reads what is posted of the documents that were changed.
func readPosted(ctx context.Context, tx pgx.Tx, docs []ledgerdb.NewDocument, puts []ledgerdb.Put) (p trialPosted, err error) {
	var keys []ledgerdb.ImpactKey
	for n, d := range docs {
		if puts[n].Result == ledgerdb.PutChanged {
			keys = append(keys, ledgerdb.ImpactKey{DocumentKey: ledgerdb.DocumentKey{OrgID: d.OrgID, ID: d.ID}})
		}
	}
	if len(keys) == 0 {
		return p, nil
	}
	last, err := ledgerdb.LastImpacts(ctx, tx, keys)
	if err != nil {
		return p, err
	}
	p.last = map[ledgerdb.DocumentKey]*ledgerdb.LastImpact{}
	var impacts []int64
	for n, l := range last {
		if l.Live() {
			p.last[keys[n].DocumentKey] = l
			impacts = append(impacts, l.ID)
		}
	}
	p.lines, err = ledgerdb.EntriesOf(ctx, tx, impacts)
	return p, err
}

// entries are those that a document would cause, or why its job would fail.
func (p trialPosted) entries(t ledger.Trial, d *models.Document) (entries []trialEntry, wrong *models.JobError) {
	last := p.last[ledgerdb.DocumentKey{OrgID: d.OrgID, ID: d.ID}]
	impact, day, wrong := t.Evaluate(d)
	if wrong != nil || ledger.Stands(last, impact) {
		return nil, wrong
	}
	if last != nil {
		reversed, wrong := t.ReversalDate(last.PostingDate)
		if wrong != nil {
			return nil, wrong
		}
		for _, e := range p.lines[last.ID] {
			entries = append(entries, newTrialEntry(models.ImpactReverse, reversed, e.Account, e.Side.Opposite(), e.Amount, e.Currency))
		}
	}
	for _, e := range impact.Entries {
		entries = append(entries, newTrialEntry(models.ImpactPost, day, e.Account, e.Side, e.Amount, e.Currency))
	}
	return entries, nil
}

// add counts what became of a document.
func (t *importTrial) add(item *ImportItem, entries []trialEntry, wrong *models.JobError) {
	if wrong != nil {
		t.Failing = append(t.Failing, ImportProblem{
			Source: item.Source, Code: wrong.Code, Reason: string(wrong.Code) + ": " + wrong.Message,
		})
		return
	}
	for _, e := range entries {
		key := accountKey{item.Document.OrgID, e.Currency, e.Account}
		sum := t.sums[key]
		if sum == nil {
			sum = new(sides)
			t.sums[key] = sum
		}
		side := &sum.debit
		if e.Side == models.Credit {
			side = &sum.credit
		}
		side.Add(side, e.amount)
	}
	if len(entries) > 0 {
		t.show(trialDocument{item.Document.OrgID, item.Document.ID, entries})
	}
}

// show keeps a document, if it is one of the first by organization and id: writers come in any
// order.
func (t *importTrial) show(d trialDocument) {
	at, _ := slices.BinarySearchFunc(t.Documents, d, func(a, b trialDocument) int {
		return cmp.Or(cmp.Compare(a.OrgID, b.OrgID), cmp.Compare(a.ID, b.ID))
	})
	if at < trialDocuments {
		t.Documents = slices.Insert(t.Documents, at, d)
		t.Documents = t.Documents[:min(len(t.Documents), trialDocuments)]
	}
}

// finish puts the sums in order.
func (t *importTrial) finish() {
	for key, s := range t.sums {
		sum := accountSum{OrgID: key.org, Currency: key.currency, Account: key.account}
		sum.DebitMinor, sum.Debit = answers.Amount(&s.debit, key.currency)
		sum.CreditMinor, sum.Credit = answers.Amount(&s.credit, key.currency)
		t.Accounts = append(t.Accounts, sum)
	}
	slices.SortFunc(t.Accounts, func(a, b accountSum) int {
		return cmp.Or(cmp.Compare(a.OrgID, b.OrgID), cmp.Compare(a.Currency, b.Currency), cmp.Compare(a.Account, b.Account))
	})
}

func (t *importTrial) print(a *cli.App, w io.Writer) error {
	if err := printProblems(w, "would fail", t.Failing); err != nil {
		return err
	}
	shown := cli.NewTable("DOCUMENT", "DATE", "ACCOUNT", "CURRENCY", "DEBIT", "CREDIT")
	shown.Right = []int{4, 5}
	for _, d := range t.Documents {
		for _, e := range d.Entries {
			debit, credit := cli.Sides(e.Side, string(e.Amount))
			shown.Add(d.ID, e.PostingDate.String(), e.Account, e.Currency, debit, credit)
		}
	}
	if len(t.Documents) > 0 {
		if err := a.Print(w, shown); err != nil {
			return err
		}
		if len(t.Documents) == trialDocuments {
			if _, err := fmt.Fprintf(w, "These are the entries of %d documents; the sums are of all.\n", trialDocuments); err != nil {
				return err
			}
		}
	}
	table := cli.NewTable("ORGANIZATION", "CURRENCY", "ACCOUNT", "DEBIT", "CREDIT")
	table.Right = []int{3, 4}
	for _, s := range t.Accounts {
		table.Add(s.OrgID, s.Currency, s.Account, string(s.Debit), string(s.Credit))
	}
	return a.Print(w, table)
}
