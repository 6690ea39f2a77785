package books

import (
	"context"
	"fmt"
	"math/big"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// ExchangeOptions says which exchange differences are meant. The zero value means all of them.
type ExchangeOptions struct {
	// Until is the day: what was posted until then counts; none: all.
	Until models.Date
}

// ExchangeDifferences reads what was won and lost by rates until a day, where items in other
// currencies than the organization's own pay each other in a group: the amount times what the rate
// of the credit's day is above that of the debit's, the oldest items first.
//
// Errors: ErrInvalid (it has no currency of its own), ErrOrganizationNotFound.
func ExchangeDifferences(ctx context.Context, db DB, org string, o ExchangeOptions) (e models.Exchange, err error) {
	if err = readable(ctx, db, org); err != nil {
		return e, err
	}
	err = store.ReadSnapshot(ctx, db, func(tx pgx.Tx) error {
		e, err = readExchange(ctx, tx, org, o.Until)
		if err == nil && e.Accounts != nil {
			e.Booked, _, err = ledgerdb.ExchangeBooked(ctx, tx, org, e.Accounts[0], lastDay(o.Until))
			if err == nil {
				e.ToBook = new(big.Int).Sub(e.Realised, e.Booked)
			}
		}
		return err
	})
	return e, err
}

// lastDay is the day, or the last one of all where there is none.
func lastDay(d models.Date) models.Date {
	if d.IsZero() {
		return models.NewDate(models.LastYear, 12, 31)
	}
	return d
}

func readExchange(ctx context.Context, q store.Querier, org string, until models.Date) (e models.Exchange, err error) {
	if e.Currency, e.Accounts, err = ledgerdb.OwnCurrency(ctx, q, org); err != nil {
		return e, err
	}
	if e.Currency == "" {
		return e, noOwnCurrency(org)
	}
	if len(e.Accounts) == 0 {
		e.Accounts = nil
	}
	if e.Differences, err = ledgerdb.ExchangeDifferences(ctx, q, org, until); err != nil {
		return e, err
	}
	e.Realised = new(big.Int)
	for _, d := range e.Differences {
		if d.Difference == nil {
			e.Missing++
			continue
		}
		e.Realised.Add(e.Realised, d.Difference)
	}
	return e, nil
}

// ExchangeBooking says how exchange differences are booked.
type ExchangeBooking struct {
	// Until is the day until which they are booked, and the journal's date; required.
	Until models.Date
	// Adjustment is the account that takes what receivables and payables are worth more or less, Gain
	// and Loss are those of the result; empty: those of the booking before.
	Adjustment, Gain, Loss string
}

// ExchangeBooked is what a booking of exchange differences did.
type ExchangeBooked struct {
	models.Exchange
	// DocumentID is the journal that was written; empty: nothing was left to book.
	DocumentID string
}

// BookExchangeDifferences writes a journal for what was won or lost until a day and does not stand
// on the adjustment account yet. A worker posts it. Booked again it writes nothing, and after
// documents were taken apart it writes what they are less. The accounts are kept for the next time.
//
// The adjustment account is for these journals alone: one with a role, or with entries of others, is
// refused, and so is another one than before while differences stand on that.
//
// Errors: ErrInvalid (an account is missing or in use, or a rate is missing), ErrJournal (it could not
// be posted), ErrOrganizationNotFound.
func BookExchangeDifferences(ctx context.Context, db DB, org string, o ExchangeBooking) (b ExchangeBooked, err error) {
	if o.Until.IsZero() {
		return b, store.Invalid("name the day until which they are booked")
	}
	err = change(ctx, db, org, false, func(tx pgx.Tx) error {
		// No period is closed between the look at it and the commit.
		if err := ledgerdb.UseConfiguration(ctx, tx, org); err != nil {
			return err
		}
		// One after the other: a journal that another booking has just written counts.
		if _, err := tx.Exec(ctx, `SELECT 1 FROM daybook.organizations WHERE id = $1 FOR NO KEY UPDATE`, org); err != nil {
			return store.Wrap("lock the organization", err)
		}
		if b.Exchange, err = readExchange(ctx, tx, org, o.Until); err != nil {
			return err
		}
		if b.Missing > 0 {
			return missingRate(org, b.Differences)
		}
		if err = b.useAccounts(ctx, tx, org, o); err != nil {
			return err
		}
		var id string
		if b.Booked, id, err = ledgerdb.ExchangeBooked(ctx, tx, org, b.Accounts[0], o.Until); err != nil {
			return err
		}
		b.ToBook = new(big.Int).Sub(b.Realised, b.Booked)
		if !b.ToBook.IsInt64() {
			return store.Invalid("the difference of %s is more than a document can state", b.ToBook)
		}
		if b.ToBook.Sign() != 0 {
			if err = writeJournal(ctx, tx, b.journal(ctx, org, id, o.Until)); err != nil {
				return err
			}
			b.DocumentID = id
		}
		if err = ledgerdb.KeepExchangeAccounts(ctx, tx, org, b.Accounts); err != nil {
			return err
		}
		return actions.Note(ctx, tx, org, b.DocumentID, map[string]any{
			"until": o.Until, "accounts": b.Accounts, "booked": b.ToBook.String(),
		})
	})
	return b, err
}

// missingRate names the first currency and day without a rate.
func missingRate(org string, list []models.ExchangeDifference) error {
	for _, d := range list {
		if d.Difference == nil {
			day := d.DebitDay
			if d.DebitRate != "" {
				day = d.CreditDay
			}
			return store.Refuse(ErrInvalid, fmt.Sprintf("there is no rate of %s on %s or before", d.Currency, day),
				"set it: `daybook rates set "+d.Currency+" --on "+day.String()+" --rate RATE --org "+org+"`")
		}
	}
	return nil
}

// useAccounts takes the accounts of the booking, or those of the one before. They must be in the
// chart.
func (b *ExchangeBooked) useAccounts(ctx context.Context, tx pgx.Tx, org string, o ExchangeBooking) error {
	given := []string{o.Adjustment, o.Gain, o.Loss}
	for i, account := range given {
		if account == "" && b.Accounts != nil {
			given[i] = b.Accounts[i]
		}
	}
	if slices.Contains(given, "") {
		return store.Invalid("name the accounts: adjustment, gain and loss")
	}
	chart, err := ledgerdb.Accounts(ctx, tx, org)
	if err != nil {
		return err
	}
	for i, account := range given {
		at := slices.IndexFunc(chart, func(a models.Account) bool { return a.Code == account })
		if at < 0 {
			return store.Refuse(ErrInvalid, fmt.Sprintf("organization %s has no account %s", org, account),
				"add it to the chart: `daybook accounts import`")
		}
		if i == 0 && chart[at].Role != "" {
			return store.Refuse(ErrInvalid, fmt.Sprintf("account %s has the role %s, and takes no adjustments", account, chart[at].Role),
				"name an account that is used for nothing else")
		}
	}
	before := b.Accounts
	b.Accounts = given
	return adjustmentFits(ctx, tx, org, given[0], before)
}

// adjustmentFits refuses an adjustment account on which others post, and another one than before while
// differences stand on that: they would be booked a second time.
func adjustmentFits(ctx context.Context, tx pgx.Tx, org, account string, before []string) error {
	if before != nil && before[0] != account {
		stands, _, err := ledgerdb.ExchangeBooked(ctx, tx, org, before[0], lastDay(models.Date{}))
		if err != nil {
			return err
		}
		if stands.Sign() != 0 {
			return store.Refuse(ErrInvalid, fmt.Sprintf("differences stand on account %s: they would be booked a second time", before[0]),
				"go on with that account, or delete its journals first (`daybook journal delete`)")
		}
	}
	used, err := ledgerdb.PostedByOthers(ctx, tx, org, account)
	if err == nil && used {
		err = store.Refuse(ErrInvalid, fmt.Sprintf("account %s has entries that are no exchange differences", account),
			"name an account that is used for nothing else")
	}
	return err
}

// journal is what books the rest.
func (b *ExchangeBooked) journal(ctx context.Context, org, id string, on models.Date) *models.Document {
	result := b.Accounts[1]
	if b.ToBook.Sign() < 0 {
		result = b.Accounts[2]
	}
	amount := b.ToBook.Int64()
	return &models.Document{
		OrgID: org, ID: id, Type: models.DocumentJournal, Direction: models.DirectionOut, Currency: b.Currency, IssueDate: on,
		Content: models.Content{Journal: &models.Journal{
			Reason: "exchange differences until " + on.String(), By: actions.By(ctx),
			Entries: []models.JournalEntry{{Account: b.Accounts[0], Amount: amount}, {Account: result, Amount: -amount}},
		}},
	}
}

// writeJournal writes a document that posts its own entries, and asks for it to be posted. One that
// could not be posted is refused.
func writeJournal(ctx context.Context, tx pgx.Tx, d *models.Document) error {
	if err := ownDocuments(ctx, tx, d.OrgID); err != nil {
		return err
	}
	if _, err := dayOf(ctx, tx, d); err != nil {
		return err
	}
	if _, err := ledgerdb.PutDocument(ctx, tx, d); err != nil {
		return err
	}
	_, err := store.MarkDocumentReady(ctx, tx, d.OrgID, d.ID, models.PriorityNormal)
	return err
}
