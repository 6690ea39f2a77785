package top

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

const (
	// readTimeout bounds one read: a terminal that hangs says nothing.
	readTimeout = 10 * time.Second
	// standEvery is how often it is read how everything stands, which asks more of the servers than
	// the history does. share bounds which part of the time that takes.
	standEvery = 5 * time.Second
	share      = 20
)

// Reader reads pictures. One goroutine uses it.
type Reader struct {
	// Pool is the database's; it stays the caller's to close.
	Pool *pgxpool.Pool
	// Health says how Temporal is asked, if it is; its pool is Pool.
	Health health.Options

	stand  stand
	nextAt time.Time
}

// stand is how everything stood at one moment: all of it is read in one snapshot of the database,
// so that no row contradicts another one.
type stand struct {
	report        health.Report
	gauges        figures.Gauges
	organizations []Organization
	leases        []store.LeaseGroup
}

// Read reads how everything stands. What costs more than the history is up to five seconds old.
func (r *Reader) Read(ctx context.Context) (Picture, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if began := time.Now(); !began.Before(r.nextAt) {
		s, err := r.readStand(ctx)
		if err != nil {
			return Picture{}, err
		}
		r.stand, r.nextAt = s, began.Add(max(standEvery, share*time.Since(began)))
	}
	now, err := store.Now(ctx, r.Pool)
	if err != nil {
		return Picture{}, err
	}
	filter := figures.Filter{Since: now.Add(-lately), Step: time.Minute, ByType: true, ByCode: true}
	bars, err := figures.History(ctx, r.Pool, filter)
	if err != nil {
		return Picture{}, err
	}
	s := r.stand
	p := Picture{
		At: now, Summary: s.report.Summary, Working: s.report.Working, Findings: s.report.Findings,
		Workflows: s.report.Workflows,
		SampledAt: s.report.At, Failures: failuresOf(s.gauges, bars), Organizations: s.organizations, Leases: s.leases,
	}
	p.Queues, p.Types = rowsOf(s.gauges, bars, now)
	return p, nil
}

// readStand reads how everything stands at one moment.
func (r *Reader) readStand(ctx context.Context) (s stand, err error) {
	o := r.Health
	o.Pool = r.Pool
	s.report, err = health.CheckAndRead(ctx, o, func(ctx context.Context, tx pgx.Tx, report health.Report) (err error) {
		s.gauges.SampledAt = report.At
		if s.gauges.Kinds, err = figures.CountKinds(ctx, tx, r.stand.gauges, false); err != nil {
			return err
		}
		all, err := store.ListOrganizations(ctx, store.Joined(tx), "", 0)
		if err != nil {
			return err
		}
		s.organizations = organizationsOf(all)
		s.leases, err = store.Leases(ctx, tx)
		return err
	})
	slices.SortStableFunc(s.leases, func(x, y store.LeaseGroup) int { return x.Renewed.Compare(y.Renewed) })
	return s, err
}
