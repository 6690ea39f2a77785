package diagnosis

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// HeldMost is how many jobs of one sequence are counted at most.
const HeldMost = 1000

// HeldSequence is a sequence that a dead letter holds up.
type HeldSequence struct {
	OrgID, Sequence string
	// ID is the dead letter, of the type Type, which failed with Code at the time Since.
	ID, Type, Code string
	Since          time.Time
	// Waiting counts the jobs that wait for their turn, HeldMost at most.
	Waiting int64
	// All counts the sequences that are held up, those beyond the limit as well.
	All int64
}

// heldSequences reads the Most newest dead letters, which have an index, and of each that is in a
// sequence whether it has the turn and others wait. $1 is the organization, or empty; $2 is Most,
// $3 the limit, $4 HeldMost.
const heldSequences = `
WITH newest AS MATERIALIZED (
    SELECT q.id, q.org_id, q.sequence, q.type, q.last_error_code AS code, q.finished_at AS at
      FROM daybook.jobs q
     WHERE q.state = 'failed' AND ($1 = '' OR q.org_id = $1)
     ORDER BY q.finished_at DESC
     LIMIT $2
), held AS MATERIALIZED (
    SELECT n.*
      FROM newest n
     WHERE n.sequence IS NOT NULL
       AND EXISTS (SELECT FROM daybook.job_sequences s WHERE s.org_id = n.org_id AND s.key = n.sequence AND s.holder = n.id)
       AND EXISTS (SELECT FROM daybook.jobs w
                    WHERE w.org_id = n.org_id AND w.sequence = n.sequence AND w.state IN ('pending', 'leased', 'failed') AND w.state = 'pending' AND w.id <> n.id)
), first AS MATERIALIZED (
    SELECT h.*, count(*) OVER () AS all FROM held h ORDER BY h.at, h.id LIMIT $3
)
SELECT f.org_id, f.sequence, f.id, f.type, coalesce(f.code, ''), f.at,
       (SELECT count(*)
          FROM (SELECT FROM daybook.jobs w
                 WHERE w.org_id = f.org_id AND w.sequence = f.sequence AND w.state IN ('pending', 'leased', 'failed') AND w.state = 'pending' AND w.id <> f.id
                 LIMIT $4) x), f.all
  FROM first f
 ORDER BY f.at, f.id`

// HeldSequences returns the sequences that one of the Most newest dead letters holds up while
// others wait, the one that has been held longest first: of one organization, or, with the empty
// id, of all.
func HeldSequences(ctx context.Context, q store.Querier, org string, limit int) ([]HeldSequence, error) {
	list, err := store.Collect(ctx, q, pgx.RowToStructByPos[HeldSequence], heldSequences, org, Most, limit, HeldMost)
	return list, store.Wrap("read which sequences are held up", err)
}
