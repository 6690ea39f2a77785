package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/queue"
)

func init() {
	register(scenario{
		order: 40, name: "jobs", topic: topicJobs, takes: "12 minutes",
		about: "50,000 jobs of ten organizations wait; an embedded worker works them with default settings, " +
			"from the start of the workflow, or of the peer's client, until the last one is completed. They do " +
			"nothing, or write three ledger rows: by a bulk handler, in the transaction that completes " +
			"the job, or in one that jobs share. DBOS writes them with the step's record in one transaction, the workflow's own in " +
			"another; pg-boss in the transaction of a batch: two jobs, because it pauses after batches of one, " +
			"as many as share a transaction, with a statement a job or a batch, or 500. graphile-worker and " +
			"pg-boss run in two processes. The peers' best settings are looked for first.",
		run: runJobs,
	})
}

func runJobs(ctx context.Context, b *bench) ([]report.Row, error) {
	n, runs := b.sized(50_000, 1_000), b.repeated(3)
	if b.part == partBeside {
		return b.besideRows(ctx, max(1, n/5), runs)
	}
	var rows []report.Row
	if b.wanted("that do nothing") {
		noop, err := b.noopRows(ctx, n, runs)
		if err != nil {
			return nil, err
		}
		rows = noop
	}
	if b.wanted("transactions") {
		post, err := b.ledgerRows(ctx, n, max(1, n/5), runs)
		if err != nil {
			return nil, err
		}
		rows = append(rows, post...)
	}
	sizes := map[int]float64{max(1, n/5): 1.5, max(1, n*3/5): 2}
	if b.smoke {
		sizes = map[int]float64{n: 2}
	}
	for _, size := range slices.Sorted(maps.Keys(sizes)) {
		if !b.wanted("bulk") {
			continue
		}
		bulk, err := b.bulkRows(ctx, size, runs, sizes[size])
		if err != nil {
			return nil, err
		}
		rows = append(rows, bulk...)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("no part is called %q", b.part)
	}
	if _, none := b.useNode(ctx); none != "" {
		rows[0].Note += fmt.Sprintf(" %s, %s: %s.", graphileName, pgbossName, none)
	}
	return rows, nil
}

// noopRows are those of n jobs that do nothing.
func (b *bench) noopRows(ctx context.Context, n, runs int) ([]report.Row, error) {
	sides, err := b.noopSides(ctx, n, max(1, n/5))
	if err != nil {
		return nil, err
	}
	rates, _, err := contest(ctx, runs, sides)
	if err != nil {
		return nil, err
	}
	return beside(report.Row{Name: "that do nothing", Unit: "jobs/s", Runs: runs}, sides, rates, map[string]report.Target{
		riverName: report.TimesPeer(1.6), graphileName: report.TimesPeer(1),
	}), nil
}

// noopSides are Daybook and its peers with n jobs that do nothing; fewer is how many DBOS works,
// which takes longer.
func (b *bench) noopSides(ctx context.Context, n, fewer int) ([]side, error) {
	sides := []side{{n: n, drain: func(ctx context.Context) (drained, error) {
		return b.drainJobs(ctx, "jobs that do nothing", organizations(), n, 0,
			func(i int) queue.Payload { return noopJob{newBenchJob(i)} })
	}}}
	if b.alone {
		return sides, nil
	}
	add := func(s side, err error) error {
		sides = append(sides, s)
		return err
	}
	if err := add(tuned(ctx, b, riverName, n, riverNoopVariants, b.drainRiverNoop)); err != nil {
		return nil, err
	}
	if err := add(tuned(ctx, b, dbosName, fewer, dbosVariants,
		func(ctx context.Context, s dbosSettings, n int) (drained, error) {
			return b.drainDBOS(ctx, s, n, dbosNothing)
		})); err != nil {
		return nil, err
	}
	node, _ := b.useNode(ctx)
	if node == nil {
		return sides, nil
	}
	if err := add(tuned(ctx, b, graphileName, n, graphileVariants,
		func(ctx context.Context, s graphileSettings, n int) (drained, error) {
			return b.graphileNoop(ctx, node, s, n)
		})); err != nil {
		return nil, err
	}
	return sides, add(tuned(ctx, b, pgbossName, n, pgbossNoopVariants,
		func(ctx context.Context, s pgbossSettings, n int) (drained, error) {
			return b.drainPgboss(ctx, node, s, "noop", n)
		}))
}

// ledgerRows are those of jobs that write three rows: single of them in a transaction of their own,
// and n in bulk beside a transaction a job of River.
func (b *bench) ledgerRows(ctx context.Context, n, single, runs int) ([]report.Row, error) {
	bulk := side{n: n, drain: func(ctx context.Context) (drained, error) {
		return b.drainJobs(ctx, "bulk handler", organizations(), n, 3,
			func(i int) queue.Payload { return bulkJob{newBenchJob(i)} })
	}}
	own := side{n: single, drain: func(ctx context.Context) (drained, error) {
		return b.drainJobs(ctx, "handler with its own transaction", organizations(), single, 3,
			func(i int) queue.Payload { return singleJob{newBenchJob(i)} })
	}}
	shared := side{n: single, drain: func(ctx context.Context) (drained, error) {
		return b.drainJobs(ctx, "handler with a shared transaction", organizations(), single, 3,
			func(i int) queue.Payload { return sharedJob{newBenchJob(i)} })
	}}
	peers, err := b.ownPeers(ctx, single)
	if err != nil {
		return nil, err
	}
	batches, err := b.sharedPeers(ctx, single)
	if err != nil {
		return nil, err
	}
	sides := slices.Concat([]side{bulk, own, shared}, peers, batches)
	rates, _, err := contest(ctx, runs, sides)
	if err != nil {
		return nil, err
	}
	// of are the places of a row's sides; those of peers that are not here are left out.
	row := func(name string, of []int, targets map[string]report.Target) []report.Row {
		var chosen []side
		var figures []float64
		for _, i := range of {
			if i < len(sides) {
				chosen, figures = append(chosen, sides[i]), append(figures, rates[i])
			}
		}
		return beside(report.Row{Name: name + ", three rows each", Unit: "jobs/s", Runs: runs}, chosen, figures, targets)
	}
	// Beside the transaction a job of its first peer, River, a bulk handler is another contract.
	many := row("bulk handler", []int{0, 3}, map[string]report.Target{riverName: report.TimesPeer(8)})
	many[0].Name += ", River: a transaction a job"
	return slices.Concat(many,
		row("own transaction", []int{1, 3, 4, 5}, map[string]report.Target{
			riverName: report.TimesPeer(1.2), dbosName: report.TimesPeer(1.2), pgbossName: report.TimesPeer(1.2),
		}),
		row("shared transactions", []int{2, 3, 4, 6, 7}, map[string]report.Target{
			riverName: report.TimesPeer(2.5), dbosName: report.TimesPeer(2.5), pgbossName: report.TimesPeer(2),
		})), nil
}

// ownPeers are the peers with n jobs that write three rows in a transaction of their own.
func (b *bench) ownPeers(ctx context.Context, n int) ([]side, error) {
	if b.alone {
		return nil, nil
	}
	post, err := tuned(ctx, b, riverName, n, riverVariants,
		func(ctx context.Context, s riverSettings, n int) (drained, error) {
			took, err := b.drainRiver(ctx, s, n)
			b.say("  River, %s: %s jobs/s", s, report.Figure(perSecond(n, took)))
			return drained{took: took}, err
		})
	if err != nil {
		return nil, err
	}
	steps, err := tuned(ctx, b, dbosName, n, dbosVariants,
		func(ctx context.Context, s dbosSettings, n int) (drained, error) {
			return b.drainDBOS(ctx, s, n, dbosPosts)
		})
	if err != nil {
		return nil, err
	}
	peers := []side{post, steps}
	if node, _ := b.useNode(ctx); node != nil {
		pairs, err := tuned(ctx, b, pgbossName, n, pgbossOwnVariants, b.pgbossPost(node, "post"))
		if err != nil {
			return nil, err
		}
		peers = append(peers, pairs)
	}
	return peers, nil
}

// pgbossPost drains jobs of pg-boss that write three rows in the transaction that completes their
// batch, by a statement a batch (post) or a job (postEach).
func (b *bench) pgbossPost(node *nodePeers, handler string,
) func(context.Context, pgbossSettings, int) (drained, error) {
	return func(ctx context.Context, s pgbossSettings, n int) (drained, error) {
		return b.drainPgboss(ctx, node, s, handler, n)
	}
}

// pgbossBatch is the name of pg-boss with a statement a batch, as a bulk handler has.
const pgbossBatch = pgbossName + " with a statement a batch"

// sharedPeers are pg-boss with n jobs in transactions of as many as Daybook's jobs share: with a
// statement a job, as they have, and with one a batch.
func (b *bench) sharedPeers(ctx context.Context, n int) ([]side, error) {
	node, _ := b.useNode(ctx)
	if b.alone || node == nil {
		return nil, nil
	}
	each, err := tuned(ctx, b, pgbossName, n, pgbossSharedVariants, b.pgbossPost(node, "postEach"))
	if err != nil {
		return nil, err
	}
	batch, err := tuned(ctx, b, pgbossBatch, n, pgbossSharedVariants, b.pgbossPost(node, "post"))
	return []side{each, batch}, err
}

// bulkRows is that of n jobs in bulk beside pg-boss's transactional batches.
func (b *bench) bulkRows(ctx context.Context, n, runs int, target float64) ([]report.Row, error) {
	node, _ := b.useNode(ctx)
	if node == nil {
		return nil, nil
	}
	batches, err := tuned(ctx, b, pgbossName, n, pgbossBulkVariants, b.pgbossPost(node, "post"))
	if err != nil {
		return nil, err
	}
	sides := []side{{n: n, drain: func(ctx context.Context) (drained, error) {
		return b.drainJobs(ctx, "bulk handler", organizations(), n, 3,
			func(i int) queue.Payload { return bulkJob{newBenchJob(i)} })
	}}, batches}
	rates, _, err := contest(ctx, runs, sides)
	if err != nil {
		return nil, err
	}
	row := report.Row{
		Name: fmt.Sprintf("bulk handler, three rows each, %s jobs", report.Count(n)), Unit: "jobs/s", Runs: runs,
	}
	return beside(row, sides, rates, map[string]report.Target{pgbossName: report.TimesPeer(target)}), nil
}
