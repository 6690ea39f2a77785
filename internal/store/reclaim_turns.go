package store

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store/due"
	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/models"
)

// ReclaimedTurns is the result of reclaiming turns.
type ReclaimedTurns struct {
	// Jobs are leased by the turn now, under its fence.
	Jobs []Job
	// Lost counts the jobs whose attempt was logged as lost.
	Lost int
	// Failed counts those of them that had no attempt left and failed with WORKER_LOST.
	Failed int

	// changes are told of when they are committed.
	changes []Change
}

// ReclaimTurns implements engine.Leases. A job that was requested anew while it was leased is due
// when the request said, or cancelled if it was a Cancel.
func (s *Store) ReclaimTurns(ctx context.Context, turn Turn, from []string, crashed bool) (ReclaimedTurns, error) {
	const held = `
SELECT q.id, c.charged,
       q.generation <> q.leased_generation
       OR c.charged AND q.run_count >= /* jobs */coalesce(q.max_attempts, greatest(@max_attempts::integer, 1000))/* accounting: @max_attempts */ AS ends,
       q.org_id, /* jobs */q.type, ''/* accounting: '', q.document_id */, q.run_count, coalesce(q.worker, ''), coalesce(q.turn_id, '')
  FROM daybook.jobs q
 CROSS JOIN LATERAL (SELECT q.working AND @crashed AND q.fence < @first_fence) AS c (charged)
 WHERE q.turn_id = ANY (@from) AND num_nulls(nullif(q.state, 'leased')) = 1 AND q.fence < @fence
 ORDER BY q.org_id, q.id
   FOR NO KEY UPDATE OF q SKIP LOCKED`
	var t ReclaimedTurns
	var back []due.Found
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	var going, ending locked
	attempt := func(tx pgx.Tx) error {
		t, back, going, ending = ReclaimedTurns{}, nil, locked{}, locked{}
		var ends bool
		var c Change
		fields := []any{
			&c.Job.ID, &c.Counted, &ends, &c.Job.OrgID, &c.Job.Type, &c.Job.DocumentID, &c.Job.Attempt,
			&c.Worker, &c.Turn,
		}
		_, err := byKey(ctx, tx, eachRow(fields, func() {
			if ends {
				ending.add(c)
			} else {
				going.add(c)
			}
		}), s.kind.sql(held), Args{
			"from": from, "fence": turn.Fence, "crashed": crashed, "first_fence": cmp.Or(turn.FirstFence, turn.Fence),
			"max_attempts": models.MaxAttempts,
		})
		if err == nil && len(ending.ids) > 0 {
			var ended Reclaimed
			ended, back, t.changes, err = s.endLeases(ctx, tx, ending, events.GivenBack)
			t.Lost, t.Failed = ended.Lost, ended.Failed
		}
		if err == nil && len(going.ids) > 0 {
			err = s.takeRows(ctx, tx, turn, crashed, going, &t)
		}
		return err
	}
	err := s.weeding(ctx, func() error { return s.InTx(ctx, attempt) },
		func() { s.doubt(nil, slices.Concat(going.ids, ending.ids)...) })
	s.weed(ctx)
	if err == nil {
		s.due.FoundDue(back, nil)
		s.changed(t.changes)
	}
	return t, Wrap("reclaim turns", err)
}

func (s *Store) takeRows(ctx context.Context, tx pgx.Tx, turn Turn, crashed bool, rows locked,
	t *ReclaimedTurns,
) error {
	// A background job that is reclaimed is begun at once; a document is worked later, and one that
	// is worked alone is marked then.
	const lease = `
UPDATE daybook.jobs q
   SET turn_id = @turn, detached = @detached, fence = @fence, worker = @worker,
       run_count = q.run_count + CASE WHEN held.charged THEN 1 ELSE 0 END, working = /* jobs */true/* accounting: false */,
       reclaims = least(q.reclaims, 999999) + CASE WHEN @crashed THEN 1 ELSE 0 END,
       last_error      = CASE WHEN held.charged THEN 'the worker ended while it worked on this job' ELSE q.last_error END,
       last_error_code = CASE WHEN held.charged THEN @lost_code ELSE q.last_error_code END,
       attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp(), updated_at = clock_timestamp()
  FROM unnest(@ids::text[], @charged::boolean[]) AS held (id, charged)
 WHERE q.id = held.id
RETURNING q.priority, q.ready_at, q.id, q.org_id, q.run_count, q.attempt_started_at, q.reclaims, q.cancel_requested, q.leased_generation,
          /* jobs */q.type, q.payload, coalesce(q.max_attempts, 0), coalesce(q.idempotency_key, ''), q.created_at
          /* accounting: q.document_id, q.version_hint, q.not_ready_count, q.epoch */,
          coalesce(q.traceparent, '')/* jobs */, coalesce(q.queue, ''), coalesce(q.min_version, 0), q.awaited/* accounting: */`
	const others = `
SELECT q.id
  FROM daybook.accounting_work_queue q
  LEFT JOIN daybook.organizations o ON o.id = q.org_id
 WHERE q.turn_id = @turn AND q.fence = @fence AND num_nulls(nullif(q.state, 'leased')) = 1
   AND NOT (coalesce(o.source, (SELECT source FROM daybook.defaults WHERE one)) = ANY (@sources)
            AND coalesce(o.hooks, (SELECT hooks FROM daybook.defaults WHERE one)) <@ @hooks)`
	lost, err := s.logLost(ctx, tx, rows)
	if err != nil {
		return err
	}
	t.Lost += lost
	t.changes = append(t.changes, rows.lost(models.ErrorCode(s.kind.lostCode))...)
	a := s.kind.able(turn.args(Args{
		"worker": turn.Worker, "detached": turn.Detached, "crashed": crashed, "lost_code": s.kind.lostCode, "ids": rows.ids,
		"charged": rows.charged,
	}))
	batch := &pgx.Batch{}
	batch.Queue(s.kind.sql(lease), a)
	unreadable, err := s.eachJob(ctx, tx, batch, func(r *jobRow) {
		r.job.Charged = rows.were[r.job.ID].Counted
		t.Jobs = append(t.Jobs, r.job)
	}, s.kind.fields)
	if err != nil {
		return err
	}
	t.Jobs = s.readable(t.Jobs, unreadable)
	if len(t.Jobs) == 0 || s.kind.abilities == nil {
		return nil
	}
	// Another worker leased what this one may not work: it is given back, uncounted. What counts
	// reclaims stays, so that a document that ends its workers is found among those that can read
	// it.
	notMine, err := byKey(ctx, tx, pgx.RowTo[string], others, a)
	if err != nil || len(notMine) == 0 {
		return err
	}
	a["ids"], a["delay"], a["cancelled"] = notMine, 0.0, false
	back, err := byKey(ctx, tx, backFrom(turn), s.kind.sql(giveBackStmt), a)
	if err != nil {
		return err
	}
	t.changes = append(t.changes, back...)
	t.Jobs = slices.DeleteFunc(t.Jobs, func(j Job) bool { return slices.Contains(notMine, j.ID) })
	return nil
}
