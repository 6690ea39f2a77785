package adopt

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// Verify implements Adopter: it compares the rows that were adopted, as the legacy table has them,
// with Daybook's jobs: their number, and the checksum of ids, types and payloads.
func (a *Operations) Verify(ctx context.Context) (Verification, error) {
	v := Verification{Table: a.table.Name}
	plan, err := a.Look(ctx)
	if err != nil {
		return v, err
	}
	v.Left = plan.Take
	stmt := `
SELECT h.org_id, h.taken_state, t.id IS NOT NULL, coalesce(` + operationHash("t.id", "t.operation_type", a.payload()) +
		`, 0), j.id IS NOT NULL,
       coalesce(` + operationHash("h.legacy_id", "j.type", "j.payload") +
		`, 0), coalesce(t.status::text IN ('pending', 'failed', 'processing'), false), h.legacy_id
  FROM daybook.adopted_rows h
  LEFT JOIN daybook.jobs j ON j.id = h.job_id
  LEFT JOIN ` + a.table.Name + ` t ON t.id = h.legacy_id::` + a.table.Column("id").Type + `
 WHERE h.legacy_table = $1`
	var legacy, held Groups
	var org, state, id string
	var there, here, open bool
	var theirs, ours int64
	err = store.ReadSnapshot(ctx, a.pool, func(tx pgx.Tx) error {
		return store.Each(ctx, tx, []any{&org, &state, &there, &theirs, &here, &ours, &open, &id}, func() error {
			if there {
				legacy.Add(org, state, theirs)
			}
			if here {
				held.Add(org, state, ours)
			}
			if open {
				v.Problems.Add("HELD_BY_BOTH", "the row can be worked by the legacy worker although Daybook holds it: the "+
					"trigger was dropped; --apply puts it back, then cancel the row", org+"/"+id)
			}
			return nil
		}, stmt, a.table.Name)
	})
	v.Compared = Compare(legacy, held)
	return v, store.Wrap("verify", err)
}

// adopted is a row that Daybook holds, with what became of it.
type adopted struct {
	id, org, job, taken, row string
	hash                     int64
	there, free, untouched   bool
}

// GiveBack implements Adopter: jobs that Daybook has not worked, and that no request has changed,
// return to the legacy table as they were.
func (a *Operations) GiveBack(ctx context.Context, after string) (Step, error) {
	const next = `SELECT * FROM daybook.adopted_rows h WHERE h.legacy_table = $1 AND h.legacy_id > $2 ORDER BY h.legacy_id LIMIT $3`
	stmt := `
SELECT h.legacy_id, h.org_id, h.job_id, h.taken_state, h.legacy_row::text, ` + operationHash("h.legacy_id",
		"coalesce(q.type, '')", "q.payload") + `,
       EXISTS (SELECT FROM daybook.jobs x WHERE x.id = h.job_id), q.id IS NOT NULL,
       coalesce(q.state <> 'leased' AND q.generation = h.generation AND q.completed_turn_id IS NULL
                AND NOT EXISTS (SELECT FROM daybook.attempt_log t WHERE t.job_id = h.job_id AND t.turn_id <> 'adopted'), false)
  FROM (` + next + `) h
  LEFT JOIN daybook.jobs q ON q.id = h.job_id AND q.id = ANY ($4)
 ORDER BY h.legacy_id`
	var s Step
	err := store.Begin(ctx, a.pool, func(tx pgx.Tx) error {
		s = Step{}
		if err := Lock(ctx, tx, a.table.Name); err != nil {
			return err
		}
		locked, err := lockJobs(ctx, tx, `SELECT q.id FROM (`+next+`) h JOIN daybook.jobs q ON q.id = h.job_id`,
			a.table.Name, after, BatchRows)
		if err != nil {
			return err
		}
		var back []adopted
		var r adopted
		err = store.Each(ctx, tx, []any{&r.id, &r.org, &r.job, &r.taken, &r.row, &r.hash, &r.there, &r.free, &r.untouched},
			func() error {
				s.Next = r.id
				if r.untouched {
					s.Done.Add(r.org, r.taken, r.hash)
					back = append(back, r)
					return nil
				}
				s.Left.Add(r.org, r.taken, r.hash)
				switch {
				case !r.there:
					s.Problems.Add("JOB_GONE", "Daybook's job was removed: the legacy row stays as it is", r.org+"/"+r.id)
				case !r.free:
					s.Problems.Add("LEASED", "another transaction holds the job at the moment: repeat --undo", r.org+"/"+r.id)
				default:
					s.Problems.Add("WORKED_HERE", "Daybook has worked the job, works it, or was asked for it again: it stays",
						r.org+"/"+r.id)
				}
				return nil
			}, stmt, a.table.Name, after, BatchRows, locked)
		if err != nil || len(back) == 0 {
			return err
		}
		return a.restore(ctx, tx, back)
	})
	return s, store.Wrap("give rows back to "+a.table.Name, err)
}

// restore removes jobs from Daybook and makes their legacy rows what they were.
func (a *Operations) restore(ctx context.Context, tx pgx.Tx, rows []adopted) error {
	ids, jobs, texts := make([]string, len(rows)), make([]string, len(rows)), make([]string, len(rows))
	for i, r := range rows {
		ids[i], jobs[i], texts[i] = r.id, r.job, r.row
	}
	// The rows are the legacy table's before they are changed, so that the trigger leaves them.
	if err := Forget(ctx, tx, a.table.Name, ids); err != nil {
		return err
	}
	for _, stmt := range []string{
		`DELETE FROM daybook.attempt_log WHERE job_id = ANY ($1) AND turn_id = 'adopted'`,
		`DELETE FROM daybook.jobs WHERE id = ANY ($1)`,
	} {
		if _, err := tx.Exec(ctx, stmt, jobs); err != nil {
			return store.Wrap("remove adopted jobs", err)
		}
	}
	set := "status = (r.was ->> 'status')::" + a.table.Column("status").Type
	if a.table.Has("last_error") {
		set += ", last_error = r.was ->> 'last_error'"
	}
	_, err := tx.Exec(ctx, `
UPDATE `+a.table.Name+` t SET `+set+`
  FROM unnest($1::text[], $2::jsonb[]) AS r (id, was)
 WHERE t.id = r.id::`+a.table.Column("id").Type, ids, texts)
	return store.Wrap("restore legacy rows", err)
}

// Finish implements Adopter: when Daybook holds no row of the table any more, its trigger goes.
func (a *Operations) Finish(ctx context.Context) ([]string, error) {
	var held bool
	if err := a.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM daybook.adopted_rows WHERE legacy_table = $1)`,
		a.table.Name).Scan(&held); err != nil {
		return nil, store.Wrap("finish", err)
	}
	if held {
		return []string{"the trigger on " + a.table.Name + " stays, because Daybook holds rows of it"}, nil
	}
	_, err := a.pool.Exec(ctx, `DROP TRIGGER IF EXISTS `+operationsTrigger+` ON `+a.table.Name)
	return []string{"removed the trigger " + operationsTrigger + " from " + a.table.Name},
		store.Wrap("drop the trigger", err)
}
