package figures

import (
	"context"
	"slices"

	"github.com/daybook-dev/daybook/internal/store"
)

// sampledPages is how many pages are read to learn which share of the pending jobs is due.
const sampledPages = 300

// estimate replaces the counts that reached their bound by what the indexes' statistics say, and
// scales those of the types.
func (c counting) estimate(ctx context.Context, q store.Querier, k *Kind) error {
	for _, state := range States() {
		if k.Of(state) > CountMost {
			k.Estimated = append(k.Estimated, state)
		}
	}
	if len(k.Estimated) == 0 {
		return nil
	}
	known, err := c.statistics(ctx, q)
	if err != nil {
		return err
	}
	before := k.Counts
	due, waiting := slices.Contains(k.Estimated, Due), slices.Contains(k.Estimated, Waiting)
	switch {
	case due && waiting:
		share, err := c.dueShare(ctx, q, known.pages)
		if err != nil {
			return err
		}
		k.Due, k.Waiting = max(k.Due, int64(share*known.pending)), max(k.Waiting, int64((1-share)*known.pending))
	case due:
		k.Due = max(k.Due, int64(known.pending)-k.Waiting)
	case waiting:
		k.Waiting = max(k.Waiting, int64(known.pending)-k.Due)
	}
	if slices.Contains(k.Estimated, Leased) {
		k.Leased = max(k.Leased, int64(known.leased))
	}
	if slices.Contains(k.Estimated, Failed) {
		k.Failed = max(k.Failed, int64(known.failed))
	}
	for _, state := range k.Estimated {
		factor := float64(k.Of(state)) / float64(before.Of(state))
		for i := range k.Types {
			n := k.Types[i].Of(state)
			k.Types[i].Add(state, int64(float64(n)*factor)-n)
		}
		if state == Failed {
			for i := range k.DeadLetters {
				k.DeadLetters[i].Count = int64(float64(k.DeadLetters[i].Count) * factor)
			}
		}
	}
	return nil
}

// statistics are rows of partial indexes, and pages of the table, as of the last vacuum or analyze.
type statistics struct{ pending, leased, failed, pages float64 }

func (c counting) statistics(ctx context.Context, q store.Querier) (s statistics, err error) {
	const stmt = `
SELECT (SELECT greatest(reltuples, 0)::float8 FROM pg_catalog.pg_class WHERE oid = $1::regclass), (SELECT greatest(reltuples, 0)::float8 FROM pg_catalog.pg_class WHERE oid = $2::regclass),
       (SELECT greatest(reltuples, 0)::float8 FROM pg_catalog.pg_class WHERE oid = $3::regclass), pg_catalog.pg_relation_size($4::regclass)::float8 / current_setting('block_size')::float8`
	err = q.QueryRow(ctx, stmt, c.pending, c.leased, c.failed, c.table).Scan(&s.pending, &s.leased, &s.failed, &s.pages)
	return s, store.Wrap("read the statistics of the queues' indexes", err)
}

// dueShare estimates which share of the pending jobs is due.
func (c counting) dueShare(ctx context.Context, q store.Querier, pages float64) (float64, error) {
	var due, all float64
	if err := q.QueryRow(ctx, c.shares, min(100, 100*sampledPages/max(pages, 1))).Scan(&due, &all); err != nil {
		return 0, store.Wrap("sample the pending jobs", err)
	}
	if all == 0 {
		return 0.5, nil
	}
	return due / all, nil
}

// EstimateAll is Count by the indexes' statistics alone, for when counting takes too long: all
// pending jobs are taken to be due, and nothing is known by type.
func EstimateAll(ctx context.Context, q store.Querier, kind string) (Kind, error) {
	k := Kind{Kind: kind, Estimated: States()}
	known, err := countings[kind].statistics(ctx, q)
	k.Due, k.Leased, k.Failed = int64(known.pending), int64(known.leased), int64(known.failed)
	return k, err
}
