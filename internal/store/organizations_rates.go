package store

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store/due"
	"github.com/daybook-dev/daybook/models/locks"
)

// countedOrgs are the organizations with a cap or a rate that one transaction leases from.
type countedOrgs struct {
	// locked are those whose lock it holds, in an array that is never nil.
	locked []string
	// rates are those of them with a rate. left is how many attempts may begin.
	rates map[string]*orgRoom
}

// orgRoom is how many attempts of an organization may begin, and for how long it is passed over if
// that is none.
type orgRoom struct {
	left int
	wait time.Duration
}

// withinOrganizations locks the organizations of the shares that have a cap or a rate, and bounds
// the shares by what is left of the rates. What is left of the caps is counted by the lease. It
// leaves out those of which nothing is left, or that another worker is leasing from: these are
// parked until the next scan, or, with a rate, held for a moment.
func (s *Store) withinOrganizations(ctx context.Context, tx pgx.Tx, shares []due.Share) ([]due.Share, countedOrgs,
	error,
) {
	orgs, contended, err := s.lockOrganizations(ctx, tx, shares)
	if err != nil {
		return nil, orgs, err
	}
	open := shares[:0]
	for _, sh := range shares {
		room := orgs.rates[sh.Org]
		switch {
		case !sh.Capped:
		case slices.Contains(contended, sh.Org):
			s.due.HoldFor(sh.Org, contendedQueue)
			continue
		case !slices.Contains(orgs.locked, sh.Org):
			s.due.Took([]due.Share{sh}, make([]due.Got, 1))
			continue
		case room != nil:
			sh.Quota = min(sh.Quota, room.left)
		}
		if sh.Quota > 0 {
			open = append(open, sh)
		}
	}
	return open, orgs, nil
}

// lockOrganizations takes the locks of the organizations of the shares that have a cap or a rate, as
// far as no other transaction has them, and reads what is left of the rates, by a snapshot that is
// younger than the locks. contended are those with a rate that another transaction has locked.
func (s *Store) lockOrganizations(ctx context.Context, tx pgx.Tx, shares []due.Share) (orgs countedOrgs,
	contended []string, err error,
) {
	const lock = `
SELECT n, pg_try_advisory_xact_lock($1, hashtext(n)), /* jobs */EXISTS (SELECT FROM daybook.organizations o WHERE o.id = n AND o.rate IS NOT NULL)/* accounting: false */
  FROM unnest($2::text[]) AS n`
	orgs = countedOrgs{locked: []string{}, rates: map[string]*orgRoom{}}
	var names []string
	for _, sh := range shares {
		if sh.Capped {
			names = append(names, sh.Org)
		}
	}
	if len(names) == 0 {
		return orgs, nil, nil
	}
	slices.Sort(names)
	var org string
	var locked, rated bool
	if _, err = byKey(ctx, tx, eachRow([]any{&org, &locked, &rated}, func() {
		switch {
		case locked:
			orgs.locked = append(orgs.locked, org)
			if rated {
				orgs.rates[org] = &orgRoom{}
			}
		case rated:
			contended = append(contended, org)
		}
	}), s.kind.sql(lock), locks.OrganizationLeases, names); err != nil || len(orgs.rates) == 0 {
		return orgs, contended, err
	}
	return orgs, contended, orgs.read(ctx, tx)
}

// rated are the organizations with a rate, in an array that is never nil.
func (o countedOrgs) rated() []string { return slices.AppendSeq([]string{}, maps.Keys(o.rates)) }

// read reads what is left of the rates.
func (o countedOrgs) read(ctx context.Context, tx pgx.Tx) error {
	const stmt = `
SELECT o.id, floor(x.starts)::integer, ((1 - x.starts) * o.rate_seconds / o.rate)::float8
  FROM daybook.organizations o
 CROSS JOIN LATERAL (SELECT daybook.organization_starts(o) AS starts OFFSET 0) x
 WHERE o.id = ANY ($1) AND o.rate IS NOT NULL`
	var org string
	var left int
	var wait float64
	_, err := byKey(ctx, tx, eachRow([]any{&org, &left, &wait}, func() {
		*o.rates[org] = orgRoom{left: max(left, 0), wait: seconds(wait)}
	}), stmt, o.rated())
	return err
}

// take counts the attempts that begin towards the rates, and notes of which nothing is left.
func (o countedOrgs) take(ctx context.Context, tx pgx.Tx, jobs []Job) error {
	const stmt = `
SELECT b.org_id, coalesce(daybook.count_organization_starts(b.org_id, b.began), 0)::float8 FROM unnest($1::text[], $2::integer[]) AS b (org_id, began)`
	began := map[string]int32{}
	for _, j := range jobs {
		if o.rates[j.OrgID] != nil {
			began[j.OrgID]++
		}
	}
	if len(began) == 0 {
		return nil
	}
	var names []string
	var counts []int32
	for org, n := range began {
		names, counts = append(names, org), append(counts, n)
	}
	var org string
	var wait float64
	_, err := byKey(ctx, tx, eachRow([]any{&org, &wait}, func() {
		room := o.rates[org]
		if room.left, room.wait = 1, seconds(wait); room.wait > 0 {
			room.left = 0
		}
	}), stmt, names, counts)
	return err
}

// hold has the organizations passed over of whose rates nothing is left.
func (o countedOrgs) hold(partitions *due.Partitions) {
	for org, room := range o.rates {
		if room.left <= 0 {
			partitions.HoldFor(org, max(room.wait, time.Millisecond))
		}
	}
}
