package main

import (
	"context"
	"fmt"

	"github.com/daybook-dev/daybook/bench/report"
)

// graphileName is the peer's name in the table.
const graphileName = "graphile-worker"

// graphileSettings are how the processes of graphile-worker work.
type graphileSettings struct {
	// concurrency is how many jobs a process works side by side.
	concurrency int
	// localQueue is how many jobs a process fetches at a time.
	localQueue int
	// completeDelay is how long completions gather, in milliseconds.
	completeDelay int
}

// graphileVariants are what graphile-worker's best settings are looked for among. Its documentation
// measures with the first.
var graphileVariants = []graphileSettings{{24, 500, 0}, {24, 1_000, 0}, {24, 500, 5}, {24, 100, 0}, {100, 2_000, 5}}

func (s graphileSettings) String() string {
	return fmt.Sprintf("two processes, concurrency %d, localQueue.size %d, completeJobBatchDelay %d", s.concurrency,
		s.localQueue, s.completeDelay)
}

// graphileNoop drains n jobs that do nothing, on a database of its own. graphile-worker deletes
// what is completed.
func (b *bench) graphileNoop(ctx context.Context, peers *nodePeers, s graphileSettings,
	n int,
) (took drained, err error) {
	err = b.withDatabase(ctx, graphileTemplate, func(d *database) error {
		const add = `
SELECT count(*) FROM graphile_worker.add_jobs(ARRAY(
    SELECT ROW('noop', json_build_object('number', i), NULL, NULL, NULL, NULL, NULL, NULL)::graphile_worker.job_spec FROM generate_series($1::bigint, $2::bigint) i))`
		for begin := 0; begin < n; begin += fillBatch {
			if _, err := d.pool.Exec(ctx, add, begin, min(begin+fillBatch, n)-1); err != nil {
				return fmt.Errorf("add jobs: %w", err)
			}
		}
		if err := d.quiesce(ctx); err != nil {
			return err
		}
		took, err = b.drainNode(ctx, d, peers, "graphile.mjs", nodeConfig{
			Concurrency: s.concurrency, LocalQueue: s.localQueue, CompleteDelay: s.completeDelay,
		}, n, `SELECT EXISTS (SELECT FROM graphile_worker._private_jobs)`)
		return err
	})
	if err != nil {
		return took, fmt.Errorf("%s, %s: %w", graphileName, s, err)
	}
	b.say("  %s, jobs that do nothing, %s: %s jobs/s", graphileName, s, report.Figure(perSecond(n, took.took)))
	return took, nil
}
