package adopt

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// operationsTrigger is the trigger on the legacy table that keeps what Daybook holds.
const operationsTrigger = "daybook_keeps_adopted"

// Prepare implements Adopter: it puts the trigger on the legacy table.
func (a *Operations) Prepare(ctx context.Context) ([]string, error) {
	made, err := again(ctx, func() (made bool, err error) {
		err = store.Begin(ctx, a.pool, func(tx pgx.Tx) error {
			var there bool
			if err := Lock(ctx, tx, a.table.Name); err != nil {
				return err
			}
			if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = $1::regclass AND tgname = $2)`,
				a.table.Name, operationsTrigger).Scan(&there); err != nil || there {
				return err
			}
			made = true
			// The statement waits for transactions that write to the table, and others wait behind it.
			if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '3s'`); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `CREATE TRIGGER `+operationsTrigger+` BEFORE UPDATE ON `+a.table.Name+`
FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION daybook.keep_adopted_operation()`)
			return err
		})
		return made, err
	})
	if err != nil || !made {
		return nil, store.Wrap("put a trigger on "+a.table.Name, err)
	}
	return []string{"put the trigger " + operationsTrigger + " on " + a.table.Name}, nil
}

// legacyOperation is a row that is locked to be adopted.
type legacyOperation struct {
	operation
	Submission, Form, Workspace                         *string
	Attempts, Max                                       *int64
	LastAttempt, NextRetry, Completed, Created, Updated *time.Time
	LastError, History, Result                          *string
	Row                                                 string
}

// Take implements Adopter.
func (a *Operations) Take(ctx context.Context, after string) (Step, error) {
	var s Step
	err := store.Begin(ctx, a.pool, func(tx pgx.Tx) error {
		s = Step{}
		if err := Lock(ctx, tx, a.table.Name); err != nil {
			return err
		}
		rows, err := a.lock(ctx, tx, after)
		if err != nil || len(rows) == 0 {
			return err
		}
		s.Next = rows[len(rows)-1].ID
		var take []legacyOperation
		for i := range rows {
			o := &rows[i]
			if code, detail := a.refuse(&o.operation); code != "" {
				s.Left.Add(o.Org, o.Status, o.Hash)
				s.Problems.Add(code, detail, o.Org+"/"+o.ID)
				continue
			}
			take = append(take, *o)
		}
		return a.hold(ctx, tx, take, &s)
	})
	return s, store.Wrap("take rows of "+a.table.Name, err)
}

// lock locks the next rows that no other transaction holds and that Daybook does not hold.
func (a *Operations) lock(ctx context.Context, tx pgx.Tx, after string) ([]legacyOperation, error) {
	t := a.table
	at := func(column string) string {
		x := t.Time("t", column, "NULL::timestamptz")
		return "CASE WHEN " + x + " BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-30 00:00:00+00' THEN " + x + " END"
	}
	number := func(column string) string {
		return "least(greatest((" + t.Text("t", column, "NULL::text") + ")::numeric, 0), 1000000)::bigint"
	}
	stmt := `
SELECT t.id::text, t.operation_type::text, t.status::text, ` + a.org() + `, (` + a.payload() + `)::text, (` +
		a.payload() + `) #>> '` + credentials + `' IS NOT NULL,
       ` + operationHash("t.id", "t.operation_type", a.payload()) + `,
       ` + t.Text("t", "submission_id", "NULL::text") + `, ` + t.Text("t", "form_id", "NULL::text") + `, ` +
		t.Text("t", "workspace_id", "NULL::text") + `,
       ` + number("attempts") + `, ` + number("max_attempts") + `,
       ` + at("last_attempt_at") + `, ` + at("next_retry_at") + `, ` + at("completed_at") + `, ` + at("created_at") +
		`, ` + at("updated_at") + `,
       ` + t.Text("t", "last_error", "NULL::text") + `, ` + t.Text("t", "error_history", "NULL::text") + `, ` +
		t.Text("t", "result", "NULL::text") + `, to_jsonb(t)::text
  FROM ` + t.Name + ` t
 WHERE t.status::text = ANY ($3) AND ($4 = '' OR t.id > nullif($4, '')::` + t.Column("id").Type + `)
   AND NOT EXISTS (SELECT FROM daybook.adopted_rows h WHERE h.legacy_table = $2 AND h.legacy_id = t.id::text)
 ORDER BY t.id
 LIMIT $5
   FOR NO KEY UPDATE OF t SKIP LOCKED`
	return store.Collect(ctx, tx, func(row pgx.CollectableRow) (o legacyOperation, err error) {
		err = row.Scan(&o.ID, &o.Type, &o.Status, &o.Org, &o.Payload, &o.Secret, &o.Hash, &o.Submission, &o.Form,
			&o.Workspace, &o.Attempts, &o.Max,
			&o.LastAttempt, &o.NextRetry, &o.Completed, &o.Created, &o.Updated, &o.LastError, &o.History, &o.Result, &o.Row)
		return o, err
	}, stmt, a.options.Org, t.Name, a.statuses(), after, BatchRows)
}

// hold writes rows to Daybook's queue, marks them in the legacy table, and puts them on record.
func (a *Operations) hold(ctx context.Context, tx pgx.Tx, rows []legacyOperation, s *Step) error {
	if len(rows) == 0 {
		return nil
	}
	ids, err := store.Collect(ctx, tx, pgx.RowTo[string], `SELECT unnest(daybook.new_ids($1))`, len(rows))
	if err != nil {
		return err
	}
	jobs := make([]adoptedJob, len(rows))
	for i := range rows {
		jobs[i] = rows[i].job(ids[i], a.table.Name)
	}
	text, err := json.Marshal(jobs)
	if err != nil {
		return err
	}
	inserted := map[string]bool{}
	var id string
	if err := store.Each(ctx, tx, []any{&id}, func() error { inserted[id] = true; return nil }, insertAdopted,
		string(text)); err != nil {
		return err
	}
	var records []Row
	var marked []string
	for i := range rows {
		o := &rows[i]
		if !inserted[ids[i]] {
			s.Left.Add(o.Org, o.Status, o.Hash)
			s.Problems.Add("KEY_TAKEN", "Daybook has a job with the key of this row: remove that job, or cancel the row",
				o.Org+"/"+o.ID)
			continue
		}
		s.Done.Add(o.Org, o.Status, o.Hash)
		records = append(records,
			Row{LegacyID: o.ID, Kind: "jobs", OrgID: o.Org, JobID: ids[i], State: o.Status, Legacy: o.Row})
		if o.Status != statusCompleted && o.Status != statusCancelled {
			marked = append(marked, o.ID)
		}
	}
	if err := a.mark(ctx, tx, marked); err != nil {
		return err
	}
	if err := Record(ctx, tx, a.table.Name, records); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `SELECT daybook.wake_job_queue()`)
	return err
}

// mark cancels rows in the legacy table: its worker leaves them alone.
func (a *Operations) mark(ctx context.Context, tx pgx.Tx, ids []string) error {
	set := "status = 'cancelled'"
	if a.table.Has("last_error") {
		set += ", last_error = 'held by Daybook'"
	}
	_, err := tx.Exec(ctx, `UPDATE `+a.table.Name+` t SET `+set+` WHERE t.id = ANY ($1::text[]::`+
		a.table.Column("id").Type+`[])`, ids)
	return store.Wrap("mark rows", err)
}
