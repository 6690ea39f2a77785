package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/internal/moving/sample"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workflows"
)

// configuration is what an organization posts by.
type configuration struct {
	chart []models.Account
	rules []byte
}

// sampleConfiguration is the one that the other scenarios post by.
var sampleConfiguration = configuration{sample.Chart(), sample.Rules()}

// smallConfiguration posts the same invoices, and is small enough to be copied a hundred thousand
// times.
var smallConfiguration = configuration{
	chart: []models.Account{
		{Code: "1200", Name: "Receivables", Type: models.AccountAsset},
		{Code: "3800", Name: "Output tax", Type: models.AccountLiability},
		{Code: "4400", Name: "Revenue", Type: models.AccountIncome},
	},
	rules: []byte(`ruleset: small
rules:
  - id: sale
    when: doc.type == "invoice" && doc.direction == "out"
    lines:
      - {id: receivable, side: debit, account: "1200", amount: doc.payable}
      - {id: revenue, side: credit, account: "4400", each: doc.lines, amount: line.net}
      - {id: tax, side: credit, account: "3800", each: doc.taxes, amount: tax.amount}
`),
}

// setUpMany makes organizations of one configuration: the first as an operator does, the others as
// copies of its rows.
func setUpMany(ctx context.Context, pool *pgxpool.Pool, orgs []string, c configuration) error {
	if err := setUp(ctx, pool, orgs[:1], c.chart, c.rules); err != nil {
		return err
	}
	// The rule set is named last, when it is there.
	copies := []string{
		`INSERT INTO daybook.organizations
SELECT r.* FROM daybook.organizations t, unnest($2::text[]) o, LATERAL jsonb_populate_record(t, jsonb_build_object('id', o, 'name', o, 'active_rule_set', NULL)) r WHERE t.id = $1`,
		`INSERT INTO daybook.accounts
SELECT r.* FROM daybook.accounts t, unnest($2::text[]) o, LATERAL jsonb_populate_record(t, jsonb_build_object('org_id', o)) r WHERE t.org_id = $1`,
		`INSERT INTO daybook.rule_sets
SELECT r.* FROM daybook.rule_sets t, unnest($2::text[]) o, LATERAL jsonb_populate_record(t, jsonb_build_object('org_id', o)) r WHERE t.org_id = $1`,
		`UPDATE daybook.organizations o SET active_rule_set = t.active_rule_set FROM daybook.organizations t WHERE t.id = $1 AND o.id = ANY ($2)`,
	}
	for some := range slices.Chunk(orgs[1:], fillBatch) {
		err := inTx(ctx, pool, func(tx pgx.Tx) error {
			for _, statement := range copies {
				if _, err := tx.Exec(ctx, statement, orgs[0], some); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("copy organization %s: %w", orgs[0], err)
		}
	}
	return nil
}

// fillEach writes each organization that many documents, whose ids are numbered from first on.
func fillEach(ctx context.Context, pool *pgxpool.Pool, orgs []string, first, each int) error {
	for some := range slices.Chunk(orgs, max(1, fillBatch/each)) {
		if err := fill(ctx, pool, some, first, len(some)*each); err != nil {
			return err
		}
		first += len(some) * each
	}
	return nil
}

// manyParts measure the drain of many organizations.
func (b *bench) manyParts(s organizationsSizes) []organizationsPart {
	rate := func(name string, figures []float64, target report.Target, note string) []report.Row {
		return []report.Row{
			{Name: name, Daybook: figures[0], Unit: "documents/s", Note: note},
			{Name: "longest gap", Daybook: figures[1], Unit: "s", Target: target, Note: note},
		}
	}
	const drained = "drained"
	gap := report.AtMost(1)
	return []organizationsPart{
		{
			name: "with one large",
			measure: func(ctx context.Context) ([]float64, error) {
				return b.manyOrganizations(ctx, s.small, 1, s.large, sampleConfiguration, false)
			},
			rows: func(figures []float64) []report.Row {
				return rate(drained, figures, gap,
					fmt.Sprintf("%s organizations with one document each, one with %s.", report.Count(s.small),
						report.Count(s.large)))
			},
		},
		{
			name: "one document each",
			measure: func(ctx context.Context) ([]float64, error) {
				return b.manyOrganizations(ctx, s.single, 1, 0, smallConfiguration, true)
			},
			rows: func(figures []float64) []report.Row {
				note := fmt.Sprintf("%s organizations.", report.Count(s.single))
				return append(rate(drained, figures, gap, note),
					report.Row{
						Name: "idle afterwards", Daybook: figures[2], Unit: "ms of PostgreSQL/s",
						Target: report.AtMost(50), Note: note,
					})
			},
		},
		{
			name:    "one job each",
			measure: func(ctx context.Context) ([]float64, error) { return b.jobOfEach(ctx, s.single) },
			rows: func(figures []float64) []report.Row {
				return []report.Row{{
					Name: drained, Daybook: figures[0], Unit: "jobs/s",
					Note: fmt.Sprintf("%s organizations with a job each, which a handler of single jobs works; as many jobs of "+
						"ten organizations: %s jobs/s.", report.Count(s.single), report.Figure(figures[1])),
				}, {
					Name: "beside ten organizations", Daybook: figures[0] / figures[1], Unit: "with / without",
					Target: report.AtLeast(0.7),
				}}
			},
		},
		{
			name: "three documents each",
			measure: func(ctx context.Context) ([]float64, error) {
				return b.manyOrganizations(ctx, s.several, documentsEach, 0, sampleConfiguration, false)
			},
			rows: func(figures []float64) []report.Row {
				return rate(drained, figures, gap,
					fmt.Sprintf("%s organizations with the sample chart and rules.", report.Count(s.several)))
			},
		},
	}
}

// numbered are n organizations.
func numbered(n int) []string {
	orgs := make([]string, n)
	for i := range orgs {
		orgs[i] = fmt.Sprintf("org-%d", i)
	}
	return orgs
}

// jobOfEach drains a background job of each of n organizations, and as many of ten. It returns
// jobs/s of both.
func (b *bench) jobOfEach(ctx context.Context, n int) ([]float64, error) {
	figures := make([]float64, 2)
	for i, orgs := range [][]string{numbered(n), organizations()} {
		name := fmt.Sprintf("%s jobs of %s organizations", report.Count(n), report.Count(len(orgs)))
		took, err := b.drainJobs(ctx, name, orgs, n, 0,
			func(i int) queue.Payload { return defaultJob{newBenchJob(i)} })
		if err != nil {
			return nil, err
		}
		figures[i] = perSecond(n, took.took)
	}
	return figures, nil
}

// manyOrganizations drains each documents of n organizations, and large of another one. It returns
// documents/s, the longest gap in seconds and, if idle, what PostgreSQL does afterwards, in
// milliseconds a second.
func (b *bench) manyOrganizations(ctx context.Context, n, each, large int, c configuration,
	idle bool,
) (figures []float64, err error) {
	orgs := numbered(n)
	documents := n*each + large
	figures = make([]float64, 3)
	err = b.withDatabase(ctx, daybookTemplate, func(d *database) error {
		if err := setUpMany(ctx, d.pool, append(orgs, "large"), c); err != nil {
			return err
		}
		if err := fillEach(ctx, d.pool, orgs, 1, each); err != nil {
			return err
		}
		if err := fill(ctx, d.pool, []string{"large"}, n*each+1, large); err != nil {
			return err
		}
		if err := d.quiesce(ctx); err != nil {
			return err
		}
		err := b.withWorker(ctx, d, func(ctx context.Context, _ *worker) error {
			began := time.Now()
			run, err := b.startWorkflow(ctx, workflows.AccountingWorkflow, workflows.AccountingTaskQueue, settings{})
			if err != nil {
				return err
			}
			ended, err := awaitEnds(ctx, d.pool, documents)
			if err != nil {
				return err
			}
			figures[0] = perSecond(documents, ended.Sub(began))
			if figures[1], err = longestGap(ctx, d.pool, began); err != nil {
				return err
			}
			if idle {
				if figures[2], err = d.activeTime(ctx, b.lasting(5*time.Second, time.Second),
					b.lasting(15*time.Second, 2*time.Second)); err != nil {
					return err
				}
			}
			return b.endWorkflow(ctx, run)
		})
		if err != nil {
			return err
		}
		b.say("  %s organizations: %s documents/s, longest gap %s s, idle %s ms/s", report.Count(n),
			report.Figure(figures[0]), report.Figure(figures[1]), report.Figure(figures[2]))
		return verify(ctx, d.pool, documents, 3)
	})
	return figures, err
}

// longestGap is the longest time, in seconds, in which nothing was completed, from a moment on
// until the last completion.
func longestGap(ctx context.Context, pool *pgxpool.Pool, from time.Time) (float64, error) {
	gap, err := one[float64](ctx, pool, `
SELECT coalesce(max(extract(epoch FROM gap)), 0)::float8
  FROM (SELECT ended_at - lag(ended_at, 1, $1) OVER (ORDER BY ended_at) AS gap FROM daybook.attempts WHERE outcome = 'completed') g`, from)
	if err != nil {
		return 0, fmt.Errorf("look for the longest gap: %w", err)
	}
	return gap, nil
}

// activeTime is how many milliseconds a second the database works on statements, for a while, after
// another while.
func (d *database) activeTime(ctx context.Context, resting, counting time.Duration) (float64, error) {
	// Idle connections of ours would report late what they did before.
	d.pool.Reset()
	const active = `SELECT active_time FROM pg_stat_database WHERE datname = $1`
	pause(ctx, resting)
	before, err := one[float64](ctx, d.b.admin, active, d.name)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	pause(ctx, counting)
	after, err := one[float64](ctx, d.b.admin, active, d.name)
	if err != nil {
		return 0, err
	}
	return (after - before) / time.Since(began).Seconds(), nil
}

// keys are the keys of a set, in their order.
func keys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
