package diagnosis

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// LateSequence is a sequence whose turn a job has that is due only much later, while others could
// be worked now.
type LateSequence struct {
	OrgID, Sequence string
	// ID is the job that has the turn, of the type Type, due in Seconds.
	ID, Type string
	Seconds  float64
	// Waiting counts the jobs that would be due if they had their turn, HeldMost at most.
	Waiting int64
	// All counts such sequences, those beyond the limit as well.
	All int64
}

// lateSequences reads up to Most jobs that wait, which have an index, and of each of their
// sequences which job has the turn. One that waits for other jobs, or for a callback, is not late.
// A job is late from @late seconds on.
const lateSequences = `
WITH waiting AS MATERIALIZED (
    SELECT q.org_id, q.sequence, q.first_ready_at
      FROM daybook.jobs q
     WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.fleet = ANY (ARRAY(SELECT f.id FROM daybook.fleets f) || '{-1}'::smallint[])
       AND q.ready_at >= '9999-12-31 00:00:00+00' AND (@org = '' OR q.org_id = @org)
     LIMIT @most
), late AS MATERIALIZED (
    SELECT h.org_id, h.sequence, h.id, h.type, h.ready_at
      FROM (SELECT DISTINCT w.org_id, w.sequence
              FROM waiting w
             WHERE w.sequence IS NOT NULL AND w.first_ready_at <= statement_timestamp()) w
      JOIN daybook.job_sequences s ON s.org_id = w.org_id AND s.key = w.sequence
      JOIN daybook.jobs h ON h.id = s.holder
     WHERE h.state = 'pending' AND h.last_error_code IS DISTINCT FROM 'AWAITING_CALLBACK'
       AND h.ready_at > statement_timestamp() + make_interval(secs => @late) AND h.ready_at < '9999-12-31 00:00:00+00'
), first AS MATERIALIZED (
    SELECT l.*, count(*) OVER () AS all FROM late l ORDER BY l.ready_at DESC, l.id LIMIT @limit
)
SELECT f.org_id, f.sequence, f.id, f.type, extract(epoch FROM f.ready_at - statement_timestamp())::float8,
       (SELECT count(*)
          FROM (SELECT FROM daybook.jobs w
                 WHERE w.org_id = f.org_id AND w.sequence = f.sequence AND w.state IN ('pending', 'leased', 'failed')
                   AND w.state = 'pending' AND w.id <> f.id AND w.first_ready_at <= statement_timestamp()
                 LIMIT @held) x), f.all
  FROM first f
 ORDER BY f.ready_at DESC, f.id`

// LateSequences returns the sequences whose turn a job has that is due in more than late seconds
// while others could be worked, the latest first: of one organization, or, with the empty id, of
// all.
func LateSequences(ctx context.Context, q store.Querier, org string, limit int, late float64) ([]LateSequence, error) {
	list, err := store.Collect(ctx, q, pgx.RowToStructByPos[LateSequence], lateSequences,
		pgx.NamedArgs{"org": org, "most": Most, "limit": limit, "held": HeldMost, "late": late})
	return list, store.Wrap("read which sequences wait for a late job", err)
}
