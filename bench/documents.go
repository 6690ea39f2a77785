package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/moving/sample"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// drainOrgs is how many organizations the documents are spread over.
const drainOrgs = 10

// fillBatch is how many documents one transaction of fill writes.
const fillBatch = 10_000

// organizations returns the ids of the organizations that documents are spread over.
func organizations() []string {
	ids := make([]string, drainOrgs)
	for i := range ids {
		ids[i] = fmt.Sprintf("org-%02d", i+1)
	}
	return ids
}

// setUp makes organizations with a chart of accounts and a rule set.
func setUp(ctx context.Context, pool *pgxpool.Pool, orgs []string, chart []models.Account, rules []byte) error {
	return inTx(ctx, pool, func(tx pgx.Tx) error {
		for _, org := range orgs {
			if err := store.PutOrganization(ctx, tx, org, org); err != nil {
				return err
			}
			if _, err := ledgerdb.PutAccounts(ctx, tx, org, chart, nil); err != nil {
				return err
			}
			if _, err := ledgerdb.ApplyRuleSet(ctx, tx, org, "bench", string(rules)); err != nil {
				return err
			}
		}
		return nil
	})
}

// setUpSample makes organizations that post by the sample rules.
func setUpSample(ctx context.Context, pool *pgxpool.Pool, orgs []string) error {
	return setUp(ctx, pool, orgs, sample.Chart(), sample.Rules())
}

// fill writes n invoices of net, tax and gross, which the sample rules post as three entries each,
// marks them ready and enqueues them, spread evenly over the organizations. Their ids are numbered
// from first on.
func fill(ctx context.Context, pool *pgxpool.Pool, orgs []string, first, n int) error {
	const write = `
INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content, accounting_ready_at, accounting_ready_version)
SELECT ($1::text[])[1 + i % cardinality($1::text[])], 'invoice-' || i, 'invoice', 'out', 'EUR', '2026-03-14',
       jsonb_build_object('number', 'R-' || i,
           'lines', jsonb_build_array(jsonb_build_object('kind', 'item', 'net', net, 'rate', 19, 'category', 'VAT')),
           'taxes', jsonb_build_array(jsonb_build_object('category', 'VAT', 'rate', 19, 'base', net, 'amount', net * 19 / 100)),
           'total', net + net * 19 / 100, 'payable', net + net * 19 / 100),
       clock_timestamp(), 1
  FROM (SELECT i, 1000 + i % 100000 AS net FROM generate_series($2::bigint, $3::bigint) i) n`
	const enqueue = `
SELECT count(*) FROM daybook.enqueue_accounting_jobs(
    (SELECT array_agg(($1::text[])[1 + i % cardinality($1::text[])] ORDER BY i) FROM generate_series($2::bigint, $3::bigint) i),
    (SELECT array_agg('invoice-' || i ORDER BY i) FROM generate_series($2::bigint, $3::bigint) i),
    (SELECT array_agg(1::bigint) FROM generate_series($2::bigint, $3::bigint)))`
	for begin := first; begin < first+n; begin += fillBatch {
		end := min(begin+fillBatch, first+n) - 1
		err := inTx(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, write, orgs, begin, end); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, enqueue, orgs, begin, end)
			return err
		})
		if err != nil {
			return fmt.Errorf("write documents: %w", err)
		}
	}
	return nil
}

// invoice is one document of the same kind, for domain code's way of writing it.
func invoice(org, id string) *models.Document {
	const net, tax = 10_000, 1_900
	return &models.Document{
		OrgID: org, ID: id, Type: models.DocumentInvoice, Direction: models.DirectionOut, Currency: "EUR",
		IssueDate: models.NewDate(2026, 3, 14),
		Content: models.Content{
			Number:  id,
			Lines:   []models.Line{{Kind: "item", Net: net, Rate: models.MustRate("19"), Category: "VAT"}},
			Taxes:   []models.Tax{{Category: "VAT", Rate: models.MustRate("19"), Base: net, Amount: tax}},
			Total:   net + tax,
			Payable: net + tax,
		},
	}
}

// ready fills an empty database with n invoices that wait to be posted, of organizations that post
// by the sample rules.
func (d *database) ready(ctx context.Context, orgs []string, n int) error {
	if err := setUpSample(ctx, d.pool, orgs); err != nil {
		return err
	}
	if err := fill(ctx, d.pool, orgs, 1, n); err != nil {
		return err
	}
	return d.quiesce(ctx)
}

// keepFull adds part documents at a time to the total that are there, whenever fewer than floor
// wait, until ctx ends. It returns how many there are then.
func keepFull(ctx context.Context, d *database, orgs []string, total, floor, part int) (int, error) {
	for {
		done, err := drawn(ctx, d.pool)
		switch {
		case ctx.Err() != nil:
			return total, nil //nolint:nilerr // that is how it ends
		case err != nil:
			return total, err
		case total-int(done) >= floor:
			pause(ctx, 2*time.Millisecond)
		default:
			// What is begun is finished, so that the number is right.
			if err := fill(context.WithoutCancel(ctx), d.pool, orgs, total+1, part); err != nil {
				return total, err
			}
			total += part
		}
	}
}

// pause returns after d, or when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
