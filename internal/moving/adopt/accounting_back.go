package adopt

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// heldJob is an adopted row with what became of it in Daybook.
type heldJob struct {
	id, org, document, job, taken string
	version, hint                 int64
	state                         string
	readyAt                       time.Time
	row                           []byte
	// untouched: no request and no attempt since. posted: an impact of the document exists.
	untouched, posted, locked bool
	hash                      int64
}

// GiveBack implements Adopter: jobs that Daybook has not posted and does not work at the moment
// return to the legacy queue, as they are now.
func (a *Accounting) GiveBack(ctx context.Context, after string) (Step, error) {
	var s Step
	if blocking := a.problems.Blocking(); len(blocking) > 0 {
		return s, Refusal(blocking)
	}
	if after == "" {
		// What is inserted from now on stays with the legacy queue.
		if _, err := a.dropTrigger(ctx, forwardTrigger); err != nil {
			return s, err
		}
	}
	err := store.Begin(ctx, a.pool, func(tx pgx.Tx) error {
		s = Step{}
		if err := Lock(ctx, tx, a.table.Name); err != nil {
			return err
		}
		jobs, err := a.lockHeld(ctx, tx, after)
		if err != nil || len(jobs) == 0 {
			return err
		}
		var back []heldJob
		for _, j := range jobs {
			var code, detail string
			switch {
			case j.locked:
				code, detail = "LEASED", "a worker of Daybook holds the job at the moment: repeat --undo"
			case j.posted:
				code, detail = "POSTED_HERE",
					"Daybook has posted the document: it stays, and its next versions go on to Daybook by the trigger"
			case len(j.row) == 0 || j.state == "":
				code, detail = "JOB_GONE", "Daybook's job was removed: the legacy row stays as it is"
			default:
				back = append(back, j)
				s.Done.Add(j.org, j.taken, j.hash)
				continue
			}
			s.Left.Add(j.org, j.taken, j.hash)
			s.Problems.Add(code, detail, j.org+"/"+j.id)
		}
		s.Next = jobs[len(jobs)-1].id
		return a.restore(ctx, tx, back)
	})
	return s, store.Wrap("give rows back to "+a.table.Name, err)
}

// lockHeld locks, of the jobs of the next adopted rows, those that can be had without waiting, and
// returns the rows.
func (a *Accounting) lockHeld(ctx context.Context, tx pgx.Tx, after string) ([]heldJob, error) {
	const next = `
SELECT * FROM daybook.adopted_rows h
 WHERE h.legacy_table = $1 AND (cardinality($2::text[]) = 0 OR h.org_id = ANY ($2)) AND h.legacy_id > $3
 ORDER BY h.legacy_id
 LIMIT $4`
	locked, err := lockJobs(ctx, tx, `
SELECT q.id FROM (`+next+
		`) h JOIN daybook.accounting_work_queue q ON q.org_id = h.org_id AND q.document_id = h.document_id`, a.table.Name,
		a.orgs(), after, BatchRows)
	if err != nil {
		return nil, err
	}
	stmt := `
SELECT h.legacy_id, h.org_id, h.document_id, coalesce(q.id, h.job_id), h.taken_state, h.version, coalesce(q.version_hint, h.version), coalesce(q.state::text, ''),
       coalesce(q.ready_at, clock_timestamp()), h.legacy_row::text,
       coalesce(q.generation = h.generation AND q.completed_turn_id IS NULL, false)
           AND NOT EXISTS (SELECT FROM daybook.attempt_log t WHERE t.job_id = h.job_id AND t.turn_id <> 'adopted'),
       EXISTS (SELECT FROM daybook.impacts i WHERE i.org_id = h.org_id AND i.document_id = h.document_id),
       coalesce(q.state = 'leased', EXISTS (SELECT FROM daybook.accounting_work_queue x WHERE x.org_id = h.org_id AND x.document_id = h.document_id)),
       ` + hash("h.org_id", "h.document_id", "h.version") + `
  FROM (` + next + `) h
  LEFT JOIN daybook.accounting_work_queue q ON q.org_id = h.org_id AND q.document_id = h.document_id AND q.id = ANY ($5)
 ORDER BY h.legacy_id`
	var jobs []heldJob
	var j heldJob
	err = store.Each(ctx, tx, []any{
		&j.id, &j.org, &j.document, &j.job, &j.taken, &j.version, &j.hint, &j.state, &j.readyAt, &j.row,
		&j.untouched, &j.posted, &j.locked, &j.hash,
	}, func() error {
		one := j
		one.row = append([]byte(nil), j.row...)
		jobs = append(jobs, one)
		return nil
	}, stmt, a.table.Name, a.orgs(), after, BatchRows, locked)
	return jobs, store.Wrap("read adopted rows", err)
}

// restore removes the jobs from Daybook, and makes the legacy rows what they were or, if more was
// asked for since, pending.
func (a *Accounting) restore(ctx context.Context, tx pgx.Tx, jobs []heldJob) error {
	ids, names, patches := make([]string, len(jobs)), make([]string, len(jobs)), make([]string, len(jobs))
	var orgs, documents []string
	for i := range jobs {
		j := &jobs[i]
		ids[i], names[i] = j.id, j.job
		orgs, documents = append(orgs, j.org), append(documents, j.document)
		var err error
		if patches[i], err = a.patch(j); err != nil {
			return err
		}
	}
	// The rows are the legacy queue's before they are changed, so that the trigger leaves them.
	if err := Forget(ctx, tx, a.table.Name, ids); err != nil {
		return err
	}
	for _, stmt := range []string{
		`DELETE FROM daybook.attempt_log WHERE job_id = ANY ($1) AND turn_id = 'adopted'`,
		`DELETE FROM daybook.accounting_work_queue WHERE id = ANY ($1)`,
	} {
		if _, err := tx.Exec(ctx, stmt, names); err != nil {
			return store.Wrap("remove adopted jobs", err)
		}
	}
	const forget = `DELETE FROM daybook.posted_elsewhere p USING unnest($1::text[], $2::text[]) AS k (org, document) WHERE p.org_id = k.org AND p.document_id = k.document`
	if _, err := tx.Exec(ctx, forget, orgs, documents); err != nil {
		return store.Wrap("forget what is posted elsewhere", err)
	}
	set := []string{"state = r.state"}
	for _, c := range []string{"version_hint", "ready_at", "run_count", "last_error"} {
		if a.table.Writable(c) {
			set = append(set, c+" = r."+c)
		}
	}
	stmt := `
UPDATE ` + a.table.Name + ` l SET ` + strings.Join(set, ", ") + `
  FROM unnest($1::text[], $2::jsonb[]) AS k (id, patch)
 CROSS JOIN LATERAL jsonb_populate_record(NULL::` + a.table.Name + `, k.patch) r
 WHERE l.id = k.id::` + a.id
	_, err := tx.Exec(ctx, stmt, ids, patches)
	return store.Wrap("restore legacy rows", err)
}

// patch is what a legacy row becomes: what it was, with what Daybook was asked for since.
func (a *Accounting) patch(j *heldJob) (string, error) {
	row := map[string]json.RawMessage{}
	if err := json.Unmarshal(j.row, &row); err != nil {
		return "", err
	}
	change := map[string]any{}
	switch {
	case j.state == "completed" && !j.posted:
		// Daybook has found that the legacy system posted the version, and posted nothing.
		change["state"], change["version_hint"] = "completed", j.hint
	case j.taken == "forwarded" || j.taken == "leased" || !j.untouched:
		at := j.readyAt.UTC().Format("2006-01-02T15:04:05.999")
		if c := a.table.Column("ready_at"); c != nil && !c.Zoneless {
			at += "Z"
		}
		change = map[string]any{
			"state": "pending", "version_hint": j.hint, "ready_at": at, "run_count": 0,
			"last_error": nil,
		}
	}
	for name, value := range change {
		text, err := json.Marshal(value)
		if err != nil {
			return "", err
		}
		row[name] = text
	}
	text, err := json.Marshal(row)
	return string(text), err
}

// Finish implements Adopter: without rows that Daybook holds, the legacy table needs no trigger.
func (a *Accounting) Finish(ctx context.Context) ([]string, error) {
	var held int64
	if err := a.pool.QueryRow(ctx, `SELECT count(*) FROM daybook.adopted_rows WHERE legacy_table = $1`,
		a.table.Name).Scan(&held); err != nil {
		return nil, store.Wrap("count adopted rows", err)
	}
	if held > 0 {
		return []string{"the trigger stays on " + a.table.Name + ", because Daybook holds rows of it"}, nil
	}
	gone, err := a.dropTrigger(ctx, guardTrigger)
	if err != nil || !gone {
		return nil, err
	}
	return []string{"the trigger is off " + a.table.Name}, nil
}
