package top

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/health"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/figures"
)

const (
	// readTimeout bounds one read: a terminal that hangs says nothing.
	readTimeout = 10 * time.Second
	// heavyEvery is how often health and organizations are read, which ask more of the servers than the figures do.
	heavyEvery = 5 * time.Second
)

// Reader reads pictures. One goroutine uses it.
type Reader struct {
	// Pool is the database's; it stays the caller's to close.
	Pool *pgxpool.Pool
	// Health says how Temporal is asked, if it is; its pool is Pool.
	Health health.Options

	report        health.Report
	organizations []Organization
	heavyAt       time.Time
}

// Read reads how everything stands. Parts that cost more are up to five seconds old.
func (r *Reader) Read(ctx context.Context) (Picture, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	gauges, err := figures.ReadGauges(ctx, r.Pool)
	if err != nil {
		return Picture{}, err
	}
	now, err := store.Now(ctx, r.Pool)
	if err != nil {
		return Picture{}, err
	}
	bars, err := figures.History(ctx, r.Pool, figures.Filter{Since: now.Add(-lately), Step: time.Minute, ByType: true, ByCode: true})
	if err != nil {
		return Picture{}, err
	}
	leases, err := store.Leases(ctx, r.Pool)
	if err != nil {
		return Picture{}, err
	}
	if time.Since(r.heavyAt) >= heavyEvery {
		if err := r.readHeavy(ctx); err != nil {
			return Picture{}, err
		}
	}
	p := Picture{
		At: now, Summary: r.report.Summary, Working: r.report.Working, Findings: r.report.Findings, Workflows: r.report.Workflows,
		SampledAt: gauges.SampledAt, Stale: !gauges.Fresh(), Failures: failuresOf(gauges, bars), Organizations: r.organizations, Leases: leases,
	}
	p.Queues, p.Types = rowsOf(gauges, bars, now)
	if p.Leases == nil {
		p.Leases = []store.LeaseGroup{}
	}
	slices.SortStableFunc(p.Leases, func(x, y store.LeaseGroup) int { return x.Renewed.Compare(y.Renewed) })
	return p, nil
}

func (r *Reader) readHeavy(ctx context.Context) error {
	o := r.Health
	o.Pool = r.Pool
	r.report = health.Check(ctx, o)
	all, err := store.ListOrganizations(ctx, r.Pool, "", 0)
	if err != nil {
		return err
	}
	r.organizations, r.heavyAt = organizationsOf(all), time.Now()
	return nil
}
