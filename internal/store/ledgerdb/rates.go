package ledgerdb

import (
	"context"
	"math/big"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// RatePlace is where a list of rates goes on.
type RatePlace struct {
	ValidOn  models.Date
	Currency string
}

// PlaceOfRate is the place behind a rate.
func PlaceOfRate(r *models.CurrencyRate) RatePlace {
	return RatePlace{ValidOn: r.ValidOn, Currency: r.Currency}
}

// Rate is a rate at the place; nil: it is that before the first.
func (p RatePlace) Rate() *models.CurrencyRate {
	if p == (RatePlace{}) {
		return nil
	}
	return &models.CurrencyRate{ValidOn: p.ValidOn, Currency: p.Currency}
}

// Rates lists an organization's rates, the latest day first, of one currency or of all (empty), at
// most limit, behind a place; the zero value: from the first on.
func Rates(ctx context.Context, q store.Querier, org, currency string, after RatePlace, limit int) ([]models.CurrencyRate, error) {
	const stmt = `
SELECT currency, valid_on, trim_scale(rate)::text, source, actor
  FROM daybook.rates
 WHERE org_id = @org AND (@currency = '' OR currency = @currency)
   AND (@day::date IS NULL OR valid_on < @day OR valid_on = @day AND currency > @after_currency)
 ORDER BY valid_on DESC, currency
 LIMIT @most`
	list, err := store.Collect(ctx, q, func(row pgx.CollectableRow) (r models.CurrencyRate, err error) {
		return r, row.Scan(&r.Currency, &r.ValidOn, &r.Rate, &r.Source, &r.Actor)
	}, stmt, store.Args{
		"org": org, "currency": currency, "day": timeOf(after.ValidOn), "after_currency": after.Currency, "most": limit,
	})
	return list, store.Wrap("list the rates", err)
}

// PutRates writes rates, and returns how many it made or changed.
func PutRates(ctx context.Context, tx pgx.Tx, org string, rates []models.CurrencyRate, actor string) (changed int64, err error) {
	const stmt = `
WITH put AS (
    INSERT INTO daybook.rates AS r (org_id, currency, valid_on, rate, source, actor)
    SELECT @org, k.currency, k.valid_on, k.rate::numeric, k.source, @actor
      FROM unnest(@currencies::text[], @days::date[], @rates::text[], @sources::text[]) AS k (currency, valid_on, rate, source)
        ON CONFLICT ON CONSTRAINT rates_pkey DO UPDATE SET rate = excluded.rate, source = excluded.source, actor = excluded.actor, created_at = clock_timestamp()
     WHERE (r.rate, r.source) <> (excluded.rate, excluded.source)
    RETURNING 1
)
SELECT count(*) FROM put`
	currencies, values, sources := make([]string, len(rates)), make([]string, len(rates)), make([]string, len(rates))
	days := make([]models.Date, len(rates))
	for i, r := range rates {
		currencies[i], days[i], values[i], sources[i] = r.Currency, r.ValidOn, r.Rate, r.Source
	}
	err = tx.QueryRow(ctx, stmt, store.Args{
		"org": org, "currencies": currencies, "days": dates(days), "rates": values, "sources": sources, "actor": actor,
	}).Scan(&changed)
	return changed, store.Wrap("write the rates", err)
}

// OwnCurrency reads an organization's own currency, empty: none; and the accounts by which exchange
// differences were booked last.
func OwnCurrency(ctx context.Context, q store.Querier, org string) (currency string, accounts []string, err error) {
	const stmt = `
SELECT coalesce(min(currency), ''), coalesce((SELECT o.exchange_accounts FROM daybook.organizations o WHERE o.id = $1), '{}')
  FROM daybook.organizations WHERE id = $1`
	err = q.QueryRow(ctx, stmt, org).Scan(&currency, &accounts)
	return currency, accounts, store.Wrap("read the organization's own currency", err)
}

// SetOwnCurrency sets it, and says whether it was another.
func SetOwnCurrency(ctx context.Context, tx pgx.Tx, org, currency string) (changed bool, err error) {
	const stmt = `
WITH put AS (
    INSERT INTO daybook.organizations AS o (id, currency) VALUES ($1, $2)
        ON CONFLICT ON CONSTRAINT organizations_pkey DO UPDATE SET currency = excluded.currency, updated_at = clock_timestamp()
     WHERE o.currency IS DISTINCT FROM excluded.currency
    RETURNING 1
)
SELECT EXISTS (SELECT FROM put)`
	err = tx.QueryRow(ctx, stmt, org, currency).Scan(&changed)
	return changed, store.Wrap("set the organization's own currency", err)
}

// KeepExchangeAccounts keeps the accounts by which exchange differences were booked, for the next
// time.
func KeepExchangeAccounts(ctx context.Context, tx pgx.Tx, org string, accounts []string) error {
	const stmt = `
UPDATE daybook.organizations SET exchange_accounts = $2, updated_at = clock_timestamp() WHERE id = $1 RETURNING id`
	return store.Wrap("keep the accounts of exchange differences", tx.QueryRow(ctx, stmt, org, accounts).Scan(&org))
}

// ExchangeDifferences lists what was won or lost by rates until a day (none: by all that is
// posted), by group.
func ExchangeDifferences(ctx context.Context, q store.Querier, org string, until models.Date,
) ([]models.ExchangeDifference, error) {
	const stmt = `
SELECT group_id, account_code, currency, debit_document, credit_document, debit_day, credit_day, amount::text,
       coalesce(trim_scale(debit_rate)::text, ''), coalesce(trim_scale(credit_rate)::text, ''), difference::text
  FROM daybook.exchange_differences($1, $2)
 ORDER BY group_id, account_code, currency, debit_day, credit_day, debit_document, credit_document`
	list, err := store.Collect(ctx, q, func(row pgx.CollectableRow) (d models.ExchangeDifference, err error) {
		var amount string
		var difference *string
		err = row.Scan(&d.GroupID, &d.Account, &d.Currency, &d.DebitDocument, &d.CreditDocument, &d.DebitDay, &d.CreditDay,
			&amount, &d.DebitRate, &d.CreditRate, &difference)
		if err != nil {
			return d, err
		}
		if difference != nil {
			if d.Difference, err = WholeNumber(*difference); err != nil {
				return d, err
			}
		}
		d.Amount, err = WholeNumber(amount)
		return d, err
	}, stmt, org, timeOf(until))
	return list, store.Wrap("read the exchange differences", err)
}

// ExchangeBooked is what stands on the adjustment account until a day, with journals that are not
// posted yet, and the id of the next journal of that day. No id comes twice, also after a document
// was removed: it is numbered behind all of that day that there are, or of which something is posted.
func ExchangeBooked(ctx context.Context, q store.Querier, org, adjustment string, until models.Date,
) (*big.Int, string, error) {
	const stmt = `
SELECT daybook.exchange_booked(@org, @adjustment, @until)::text, (
           SELECT coalesce(max(substr(x.id, length(@day) + 1)::numeric), 0) + 1
             FROM (SELECT d.id FROM daybook.documents d WHERE d.org_id = @org AND d.id > @day AND d.id < @end
                    UNION ALL
                   SELECT i.document_id FROM daybook.impacts i WHERE i.org_id = @org AND i.document_id > @day AND i.document_id < @end) x
            WHERE substr(x.id, length(@day) + 1) ~ '^[0-9]+$')::text`
	// "0" is the character behind "/".
	day, end := "exchange:"+until.String()+"/", "exchange:"+until.String()+"0"
	var text, number string
	args := pgx.NamedArgs{"org": org, "adjustment": adjustment, "until": timeOf(until), "day": day, "end": end}
	if err := q.QueryRow(ctx, stmt, args).Scan(&text, &number); err != nil {
		return nil, "", store.Wrap("read what is booked of exchange differences", err)
	}
	booked, err := WholeNumber(text)
	return booked, day + number, err
}

// PostedByOthers reads whether an account has entries of documents that are no journals of exchange
// differences.
func PostedByOthers(ctx context.Context, q store.Querier, org, account string) (used bool, err error) {
	const stmt = `
SELECT EXISTS (SELECT FROM daybook.entries e JOIN daybook.impacts i ON i.id = e.impact_id
                WHERE e.org_id = $1 AND e.account_code = $2 AND i.document_id NOT LIKE 'exchange:%')`
	err = q.QueryRow(ctx, stmt, org, account).Scan(&used)
	return used, store.Wrap("look for entries of the adjustment account", err)
}
