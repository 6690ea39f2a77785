package report

import (
	"context"
	"errors"
	"maps"
	"math/big"
	"slices"

	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// ErrTooLong: a report has more rows than may be held in memory.
var ErrTooLong = errors.New("the report is too long")

// Journal fills in the entries that the reader selects, with the sums of each currency below. It
// fails with ErrTooLong when there are more than limit.
func (r *Report) Journal(ctx context.Context, read *ledgerdb.ExportReader, limit int) error {
	r.Title = "Journal"
	accounts, err := read.Accounts(ctx)
	if err != nil {
		return err
	}
	names := make(map[string]string, len(accounts))
	for i := range accounts {
		names[accounts[i].Code] = accounts[i].Name
	}
	t := Table{Columns: []Column{
		{ID: "date", Title: "Date"},
		{ID: "document", Title: "Document"},
		{ID: "party", Title: "Counterparty"},
		{ID: "account", Title: "Account"},
		{ID: "account_name", Title: "Name"},
		{ID: "debit", Title: "Debit", Number: true},
		{ID: "credit", Title: "Credit", Number: true},
		{ID: "currency", Title: "Currency"},
	}}
	sums := map[string]*[2]big.Int{}
	err = read.Impacts(ctx, func(m *ledgerdb.ExportImpact) error {
		if len(t.Rows)+len(m.Entries) > limit {
			return ErrTooLong
		}
		for i := range m.Entries {
			e := &m.Entries[i]
			debit, credit := sides(e.Side, e.Amount, e.Currency)
			t.add("", m.PostingDate.String(), m.DocumentID, m.Counterparty, e.Account, names[e.Account], debit, credit,
				e.Currency)
			sum := sums[e.Currency]
			if sum == nil {
				sum = &[2]big.Int{}
				sums[e.Currency] = sum
			}
			side := &sum[0]
			if e.Side == models.Credit {
				side = &sum[1]
			}
			side.Add(side, big.NewInt(e.Amount))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, currency := range slices.Sorted(maps.Keys(sums)) {
		t.add(Total, "Total", "", "", "", "", decimal(&sums[currency][0], currency), decimal(&sums[currency][1], currency),
			currency)
	}
	r.Tables = []Table{t}
	return nil
}
