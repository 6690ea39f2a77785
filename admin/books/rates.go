package books

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/bom"
	"github.com/daybook-dev/daybook/models"
)

// decimalRate is how a rate is written.
var decimalRate = regexp.MustCompile(`^\d{1,11}(\.\d{1,18})?$`)

// maxSourceBytes is how long the source of a rate may be.
const maxSourceBytes = 255

// RatesOptions says which rates to list; the zero value lists the latest 100.
type RatesOptions struct {
	// Currency is that of the rates; empty: all.
	Currency string
	// After is the last rate of the page before; nil: from the first on.
	After *models.CurrencyRate
	// Limit is how many are listed at most; default 100.
	Limit int
}

// Rates lists an organization's rates, the latest day first, and those of a day by currency. Errors:
// ErrOrganizationNotFound.
func Rates(ctx context.Context, db DB, org string, o RatesOptions) ([]models.CurrencyRate, error) {
	if err := readable(ctx, db, org); err != nil {
		return nil, err
	}
	limit := o.Limit
	if limit <= 0 {
		limit = store.DefaultLimit
	}
	var after ledgerdb.RatePlace
	if o.After != nil {
		after = ledgerdb.PlaceOfRate(o.After)
	}
	return ledgerdb.Rates(ctx, db, org, o.Currency, after, limit)
}

// PutRatesOptions says how to set rates. It has no field yet.
type PutRatesOptions struct{}

// PutRates sets rates of currencies, each from a day on until the next rate, and returns how many
// are new or another. Their Actor is not looked at.
//
// Errors: ErrInvalid, ErrOrganizationNotFound.
func PutRates(ctx context.Context, db DB, org string, rates []models.CurrencyRate, _ PutRatesOptions) (changed int64, err error) {
	seen := make(map[string]bool, len(rates))
	for i := range rates {
		if wrong := wrongRate(&rates[i]); wrong != "" {
			return 0, store.Invalid("rate %d: %s", i+1, wrong)
		}
		key := rates[i].Currency + " on " + rates[i].ValidOn.String()
		if seen[key] {
			return 0, store.Invalid("rate %d: the rate of %s is there twice", i+1, key)
		}
		seen[key] = true
	}
	err = change(ctx, db, org, false, func(tx pgx.Tx) error {
		// SetOwnCurrency looks for rates: it waits for these.
		if _, err := tx.Exec(ctx, `SELECT 1 FROM daybook.organizations WHERE id = $1 FOR SHARE`, org); err != nil {
			return store.Wrap("lock the organization", err)
		}
		own, _, err := ledgerdb.OwnCurrency(ctx, tx, org)
		if err != nil {
			return err
		}
		if own == "" {
			return noOwnCurrency(org)
		}
		if slices.ContainsFunc(rates, func(r models.CurrencyRate) bool { return r.Currency == own }) {
			return store.Invalid("%s is the organization's own currency, whose rate is 1", own)
		}
		if changed, err = ledgerdb.PutRates(ctx, tx, org, rates, actions.By(ctx)); err != nil {
			return err
		}
		return actions.Note(ctx, tx, org, "", map[string]any{"rates": len(rates), "changed": changed})
	})
	return changed, err
}

// noOwnCurrency says what to do.
func noOwnCurrency(org string) error {
	return store.Refuse(ErrInvalid, fmt.Sprintf("organization %s has no currency of its own", org),
		"set it: `daybook rates own EUR --org "+org+"`")
}

// wrongRate says what is wrong with a rate; empty: nothing.
func wrongRate(r *models.CurrencyRate) string {
	if err := models.CheckCurrency(r.Currency, r.ValidOn); err != nil {
		return err.Error()
	}
	switch err := r.ValidOn.Check(); {
	case r.ValidOn.IsZero():
		return "the day is missing"
	case err != nil:
		return err.Error()
	case !decimalRate.MatchString(r.Rate) || !bytes.ContainsAny([]byte(r.Rate), "123456789"):
		return fmt.Sprintf("the rate is %.40q: want a decimal number above zero, such as 0.92", r.Rate)
	case len(r.Source) > maxSourceBytes || !store.ValidText(r.Source):
		return fmt.Sprintf("the source must be a text of at most %d bytes", maxSourceBytes)
	}
	return ""
}

// rateColumns are the columns of a file of rates, in any order; the first three are required.
var rateColumns = []string{"currency", "valid_on", "rate", "source"}

// ParseRates reads rates from CSV whose first line names its columns: currency, valid_on, rate and
// optionally source. The error of a line that is wrong names it. Errors: ErrInvalid.
func ParseRates(data []byte) ([]models.CurrencyRate, error) {
	data, err := bom.Trim(data)
	if err != nil {
		return nil, store.Refuse(ErrInvalid, err.Error(), "")
	}
	reader := csv.NewReader(bytes.NewReader(data))
	reader.TrimLeadingSpace = true
	head, err := reader.Read()
	for i, column := range head {
		if !slices.Contains(rateColumns, column) || slices.Contains(head[:i], column) {
			err = errors.Join(err, fmt.Errorf("column %.40q", column))
		}
	}
	if err != nil || slices.ContainsFunc(rateColumns[:3], func(c string) bool { return !slices.Contains(head, c) }) {
		return nil, store.Refuse(ErrInvalid, "the first line must name the columns currency, valid_on and rate, and may name source", "")
	}
	var rates []models.CurrencyRate
	for {
		row, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return rates, nil
		}
		if err != nil {
			return nil, store.Refuse(ErrInvalid, err.Error(), "")
		}
		var r models.CurrencyRate
		for i, column := range head {
			switch column {
			case "currency":
				r.Currency = row[i]
			case "valid_on":
				r.ValidOn, err = models.ParseDate(row[i])
			case "rate":
				r.Rate = row[i]
			case "source":
				r.Source = row[i]
			}
		}
		wrong := wrongRate(&r)
		if err != nil {
			wrong = err.Error()
		}
		if wrong != "" {
			line, _ := reader.FieldPos(0)
			return nil, store.Refuse(ErrInvalid, fmt.Sprintf("line %d: %s", line, wrong), "")
		}
		rates = append(rates, r)
	}
}

// OwnCurrency reads an organization's own currency; empty: none. Errors: ErrOrganizationNotFound.
func OwnCurrency(ctx context.Context, db DB, org string) (string, error) {
	if err := readable(ctx, db, org); err != nil {
		return "", err
	}
	own, _, err := ledgerdb.OwnCurrency(ctx, db, org)
	return own, err
}

// SetOwnCurrency sets the currency into which exchange differences of an organization are computed.
// It has to be set before there are rates: they are in it.
//
// Errors: ErrInvalid, ErrOrganizationNotFound.
func SetOwnCurrency(ctx context.Context, db DB, org, currency string) (Change, error) {
	c := Change{OrgID: org}
	if err := models.CheckCurrency(currency, models.Date{}); err != nil {
		return c, store.Invalid("the currency %v; want a code such as EUR", err)
	}
	err := change(ctx, db, org, false, func(tx pgx.Tx) error {
		changed, err := ledgerdb.SetOwnCurrency(ctx, tx, org, currency)
		if err != nil {
			return err
		}
		if changed {
			rates, err := ledgerdb.Rates(ctx, tx, org, "", ledgerdb.RatePlace{}, 1)
			if err != nil {
				return err
			}
			if len(rates) > 0 {
				return store.Refuse(ErrInvalid, "there are rates in the currency that the organization has now",
					"delete them first (daybook.rates)")
			}
		}
		c.Changed = changed
		return actions.Note(ctx, tx, org, currency, map[string]any{"changed": changed})
	})
	return c, err
}
