package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/server"
)

const topicBooks = "Statements"

func init() {
	register(scenario{
		order: 210, name: "statements", topic: topicBooks, takes: "15 minutes",
		about: "10,000,000 entries of one organization over 50 months, of which the last, with 200,000, is open: invoices of " +
			"three entries with a cost centre and one of 40 projects. A client asks for one page of the console after the other; " +
			"the time is from the request to the last byte.",
		run: runBooks,
	})
}

// booksMonths is how many months are posted to; the last one is open.
const booksMonths = 50

// booksPages are what is asked for.
var booksPages = []struct {
	name, path string
	target     float64
}{
	{"balance sheet", "statements?kind=balance", 200},
	{"income statement of the open month", "statements?kind=income&period=2026-02", 200},
	{"income statement of a year", "statements?kind=income&period=2025&compare=year", 200},
	{"statement of cash", "statements?kind=cash", 200},
	{"VAT of the open month", "vat?period=2026-02", 200},
	{"VAT of a closed month", "vat?period=2025-06", 200},
	{"trial balance", "trial-balance?from=2026-02-01&to=2026-02-28", 200},
	{"income statement by cost centre", "statements?kind=income&by=cost_centre", 2000},
	{"income statement of a year by project", "statements?kind=income&period=2025&by=project&where=cost_centre=c1", 2000},
}

func runBooks(ctx context.Context, b *bench) (rows []report.Row, err error) {
	n, samples := b.sized(10_000_000, 15_000), b.sampled(20, 2)
	err = b.withDatabase(ctx, daybookTemplate, func(d *database) error {
		if err := fillBooks(ctx, d, n); err != nil {
			return err
		}
		slowest, err := closeBooks(ctx, d)
		if err != nil {
			return err
		}
		rows = append(rows, report.Row{
			Name: "closing a month, slowest", Daybook: slowest.Seconds(), Unit: "s", Runs: 1,
			Note: fmt.Sprintf("%d closings; each sums up its entries and the taxes of its documents.", booksMonths-1),
		})
		pages, err := server.New(ctx, server.Options{Pool: d.pool})
		if err != nil {
			return err
		}
		defer func() { _ = pages.Close() }()
		serving := httptest.NewServer(pages)
		defer serving.Close()
		client, err := signIn(ctx, d, serving.URL)
		if err != nil {
			return err
		}
		for _, page := range booksPages {
			delays, size, err := timePage(ctx, client, serving.URL+server.ConsoleRoot+page.path, samples)
			if err != nil {
				return err
			}
			b.sayDelays(page.name, delays)
			rows = append(rows, report.Row{
				Name: page.name + ", p95", Daybook: percentile(delays, 95), Unit: "ms", Runs: 1, Target: report.AtMost(page.target),
				Note: fmt.Sprintf("%s entries, %d requests, %d KB a page; p50 %s, slowest %s ms.", report.Figure(float64(n)),
					samples, size>>10, report.Figure(percentile(delays, 50)), report.Figure(percentile(delays, 100))),
			})
		}
		return nil
	})
	return rows, err
}

// fillBooks writes invoices and what is posted of them, in parts, in the order of their days. What
// the ledger checks when it posts is not checked here.
func fillBooks(ctx context.Context, d *database, entries int) error {
	const part = 100_000
	invoices := entries / 3
	const organization = `
INSERT INTO daybook.organizations (id) VALUES ('acme');
INSERT INTO daybook.accounts (org_id, code, name, type, role, section)
VALUES ('acme', '1000', 'Bank', 'asset', 'cash', 'Current assets'), ('acme', '1200', 'Receivables', 'asset', 'receivable', 'Current assets'),
       ('acme', '3800', 'Output tax', 'liability', 'tax', 'Current liabilities');
INSERT INTO daybook.accounts (org_id, code, name, type, section) SELECT 'acme', '4' || lpad(a::text, 3, '0'), 'Sales ' || a, 'income', 'Revenue' FROM generate_series(0, 36) a`
	const write = `
WITH s AS (
    SELECT i, ` + booksDay + ` AS day FROM generate_series($1::int, $2::int) i
), documents AS (
    INSERT INTO daybook.documents (org_id, id, type, direction, issue_date, currency, accounting_ready_at, accounting_ready_version, content)
    SELECT 'acme', 'inv-' || i, 'invoice', 'out', day, 'EUR', now(), 1,
           jsonb_build_object('number', 'inv-' || i, 'country', CASE WHEN i % 10 = 0 THEN 'FR' ELSE 'DE' END, 'total', 1190, 'payable', 1190,
               'taxes', jsonb_build_array(jsonb_build_object('category', 'VAT', 'rate', 19, 'base', 1000, 'amount', 190)))
      FROM s
), impacts AS (
    INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, document_date, posting_date, entry_count, job_id, attempt)
    SELECT i, 'acme', 'inv-' || i, 1, 1, 'post', day, day, 3, 'job', 1 FROM s
)
INSERT INTO daybook.entries (impact_id, line_no, org_id, account_code, side, amount_minor, currency, rule_line_id, dimensions)
SELECT i, l, 'acme', CASE l WHEN 1 THEN CASE i % 3 WHEN 0 THEN '1000' ELSE '1200' END WHEN 2 THEN '4' || lpad((i % 37)::text, 3, '0') ELSE '3800' END,
       CASE l WHEN 1 THEN 'debit' ELSE 'credit' END::daybook.entry_side, CASE l WHEN 1 THEN 1190 WHEN 2 THEN 1000 ELSE 190 END, 'EUR', 'line',
       CASE l WHEN 2 THEN jsonb_build_object('cost_centre', 'c' || i % 40 % 8, 'project', 'p' || i % 40) END
  FROM s CROSS JOIN generate_series(1, 3) l`
	if _, err := d.pool.Exec(ctx, organization); err != nil {
		return fmt.Errorf("write the organization: %w", err)
	}
	const triggers = `
ALTER TABLE daybook.documents %[1]s TRIGGER USER; ALTER TABLE daybook.impacts %[1]s TRIGGER USER; ALTER TABLE daybook.entries %[1]s TRIGGER USER`
	if _, err := d.pool.Exec(ctx, fmt.Sprintf(triggers, "DISABLE")); err != nil {
		return err
	}
	for first := 1; first <= invoices; first += part {
		if _, err := d.pool.Exec(ctx, write, first, min(first+part-1, invoices), invoices); err != nil {
			return fmt.Errorf("write invoices: %w", err)
		}
	}
	if _, err := d.pool.Exec(ctx, fmt.Sprintf(triggers, "ENABLE")); err != nil {
		return err
	}
	return d.quiesce(ctx)
}

// booksDay is the day of invoice i of $3: months of equal size, the last of which is February 2026.
const booksDay = `(date '2022-01-01' + make_interval(months => ((i - 1)::bigint * 50 / $3)::int) + make_interval(days => i % 28))::date`

// closeBooks closes all months but the last, one by one, and returns what the slowest took.
func closeBooks(ctx context.Context, d *database) (slowest time.Duration, err error) {
	const add = `
INSERT INTO daybook.periods (org_id, starts_on, ends_on)
SELECT 'acme', m::date, (m + interval '1 month' - interval '1 day')::date
  FROM generate_series(timestamp '2022-01-01', timestamp '2026-02-01', '1 month') m`
	const shut = `
UPDATE daybook.periods SET state = 'closed', closed_at = clock_timestamp()
 WHERE org_id = 'acme' AND starts_on = (date '2022-01-01' + make_interval(months => $1))::date`
	if _, err := d.pool.Exec(ctx, add); err != nil {
		return 0, fmt.Errorf("add periods: %w", err)
	}
	for month := range booksMonths - 1 {
		began := time.Now()
		if _, err := d.pool.Exec(ctx, shut, month); err != nil {
			return 0, fmt.Errorf("close a month: %w", err)
		}
		slowest = max(slowest, time.Since(began))
	}
	return slowest, d.quiesce(ctx)
}
